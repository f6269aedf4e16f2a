"""The guard at a release: old and new point on the same gold labels, by the scores each was made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing import impact as sentences
from calibrate.stats.choosing import policy
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Interval, Label, Record, Score, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing import release as step
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.releasing.impact import Impact, impact
from calibrate.workflow.tuning import operating_points
from db import Store
from db.releases import ReleaseRequest
from db.scores import Row
from tests.workflow.making import DETECTOR, NOW, draw, fill, give_scores, keep_sample, save


def release(store: Store, **given: Any) -> Any:
    return step.release(store, ReleaseRequest(by="ann", **given), now=NOW)


def candidate(store: Store, before: ThresholdsFile, **given: Any) -> ThresholdsFile:
    request = ReleaseRequest(by="ann", **given)
    return build_candidate(store, request, points=store.points.latest(), previous=before, now=NOW)


def seen(store: Store) -> Impact:
    before = history.live_release(store)
    assert before is not None
    return impact(store, before, candidate(store, before))


@pytest.fixture
def live(store: Store) -> Store:
    """120 labels, two thirds clean; v1 flags below 0.55."""
    labels, scores = draw(120)
    fill(store, labels, scores)
    save(store, "manual:0.55")
    release(store)
    return store


def rescored(store: Store, *, noise: float) -> None:
    """The detector in a new version whose scores are the old ones with noise, and a point of it at the same place."""
    rng = np.random.default_rng(1)
    config = store.scores.config(DETECTOR, "2", {"variant": "default"}, "", now=NOW)
    rows = loading.load_evidence(store, DETECTOR).rows
    store.scores.save(
        config.id,
        [
            (r.content_hash, Score(r.trace_id, None if r.value is None else r.value + rng.normal(0, noise)))
            for r in rows
        ],
        now=NOW,
    )
    data = loading.load_evidence(store, DETECTOR, config=config)
    operating_points.save_point(
        store, data, operating_points.choose_point(data, policy.Policy("manual", 0.55)), by="ann", now=NOW
    )


def test_a_much_stricter_threshold_is_refused_without_a_reason_and_the_reason_is_kept(live: Store) -> None:
    save(live, "manual:0.2")
    with pytest.raises(BadInput, match=rf"{DETECTOR} is worse than in v1 on the same 120 labels: recall \d+% instead"):
        release(live)
    assert len(live.releases.list()) == 1
    row = release(live, note="quieter", reason="Too many pages at night.")
    file = history.read_release(row)
    assert file.extra["x-reason"] == "Too many pages at night."
    assert row.note == file.note == "quieter\nReason: Too many pages at night."


def test_the_same_figures_as_counted_by_hand(live: Store) -> None:
    keep_sample(live, ["all" if place % 2 else "top" for place in range(120)], {"all": 900, "top": 100})
    save(live, "manual:0.4", sample="w47")
    (row,) = seen(live).rows
    assert row.check
    found = row.check.paired
    assert found
    rows = loading.load_evidence(live, DETECTOR, sample="w47").rows
    weight = {"all": 900 / 60, "top": 100 / 60}

    def weigh(rows: Iterable[Row]) -> float:
        return sum(weight[row.strata[0].name] for row in rows)

    def counted(at: float) -> dict[str, float]:
        flagged = [r for r in rows if r.value is not None and r.value <= at]
        hit, bad = (weigh(r for r in part if r.gold == "hallucinated") for part in (flagged, rows))
        return {"precision": hit / weigh(flagged), "recall": hit / bad, "caught": hit / 1000}

    before, after = counted(0.55), counted(0.4)
    for name in ("precision", "recall", "caught"):
        assert getattr(found, name).value == pytest.approx(after[name] - before[name])
    # By hand: the share of 1,000 traces that is flagged, of traces an hour apart.
    flagged = weigh(r for r in rows if r.value is not None and r.value <= 0.4) / 1000
    assert found.second.flag_rate == pytest.approx(flagged)
    assert row.flags_after == pytest.approx(24 * flagged, rel=0.02)


def test_a_new_version_is_compared_by_the_scores_of_each(live: Store) -> None:
    rescored(live, noise=1.0)
    assert seen(live).worse
    with pytest.raises(BadInput, match="is worse than in v1"):
        release(live)


def test_a_new_version_that_scores_alike_passes(live: Store) -> None:
    rescored(live, noise=0.001)
    found = seen(live)
    assert (found.worse, found.missing) == ((), ())
    assert release(live).version == 2


def test_without_the_old_scores_it_says_so_and_how_to_get_them(store: Store) -> None:
    labels, scores = draw(60)
    first = fill(store, labels, scores)
    rows = loading.load_evidence(store, DETECTOR).rows
    version = registry.get(DETECTOR).version
    other = store.scores.config(DETECTOR, version, {"variant": "plain"}, "", now=NOW)
    store.scores.save(other.id, [(row.content_hash, Score(row.trace_id, row.value)) for row in rows[:30]], now=NOW)
    data = loading.load_evidence(store, DETECTOR, config=other)
    operating_points.save_point(
        store, data, operating_points.choose_point(data, policy.Policy("manual", 0.5)), by="ann", now=NOW
    )
    release(store)
    data = loading.load_evidence(store, DETECTOR, config=first)
    operating_points.save_point(
        store, data, operating_points.choose_point(data, policy.Policy("manual", 0.3)), by="ann", now=NOW
    )
    found = seen(store)
    said = sentences.missing(*found.missing)
    assert said.startswith("Token overlap cannot be compared with v1 on the same labels: it was not run on them")
    assert f"`detect {DETECTOR} --labelled --param variant=plain`" in said
    assert found.flags is None
    assert "is unknown" in sentences.summary(found)
    assert release(store).version == 2  # what is unknown is said, not held against the point


def test_labels_given_since_the_point_was_chosen_are_not_judged_by(live: Store) -> None:
    save(live, "manual:0.5")
    chosen = live.points.latest()[DETECTOR]
    live.points.save(replace(chosen, data=replace(chosen.data, labels=chosen.data.labels[:40])))
    (row,) = seen(live).rows
    assert row.check
    assert row.check.paired
    assert row.check.paired.n == 40


def test_the_release_as_a_whole_counts_its_decisions(live: Store) -> None:
    save(live, "manual:0.65")
    before = history.live_release(live)
    assert before
    found = impact(live, before, candidate(live, before, tiers={DETECTOR: "page"}))
    assert found.pages
    assert found.flags
    values = [row.value for row in loading.load_evidence(live, DETECTOR).rows]
    assert found.pages.first.flagged == 0
    assert found.pages.second.flagged == sum(v is not None and v <= 0.65 for v in values)
    assert found.flags.first.flagged == sum(v is not None and v <= 0.55 for v in values)
    assert sentences.summary(found).startswith("v2 pages ")
    assert " more a day than v1 and in all tiers finds " in sentences.summary(found)


def test_in_tier_off_nothing_is_flagged(live: Store) -> None:
    before = history.live_release(live)
    assert before
    save(live, "manual:0.65")
    off = candidate(live, before, tiers={DETECTOR: "off"})
    (row,) = impact(live, before, off).rows
    assert row.flags_before
    assert row.flags_after == 0
    assert sentences.detector(row).startswith(
        "Token overlap: flags nothing by itself in tier off, its point is at ≤ 0.65 (was ≤ 0.55)"
    )
    assert ", 0 flags a day (was " in sentences.detector(row)
    (row,) = impact(live, off, candidate(live, off, tiers={DETECTOR: "signal"})).rows
    assert row.flags_before == 0
    assert row.flags_after


def test_undated_traffic_has_unknown_flags_a_day(store: Store) -> None:
    labels, scores = draw(60)
    traces = [Trace(f"t{place}", answer=f"answer {place}") for place in range(60)]
    given = [Label(f"t{place}", "", "hallucinated" if bad else "clean") for place, bad in enumerate(labels)]
    records = [Record(i + 1, trace, (label,)) for i, (trace, label) in enumerate(zip(traces, given, strict=True))]
    store.traces.add(records, labels_as="gold", now=NOW)
    give_scores(store, traces, scores)
    save(store, "manual:0.5")
    release(store)
    save(store, "manual:0.6")
    found = seen(store)
    assert "how many a day is unknown: the traces carry no time" in sentences.summary(found)
    assert found.rows[0].flags_after is None


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (Interval(9.3, 4.4, 15.2), "9.3 more hallucinations a day (4.4–15)"),
        (Interval(-9, -15, -4), "9 fewer hallucinations a day (4–15)"),
        (Interval(0.467, -0.0543, 1.23), "0.5 more hallucinations a day (between 0.1 fewer and 1.2 more)"),
        (Interval(2, -6, 10), "2 more hallucinations a day (between 6 fewer and 10 more)"),
        (Interval(0.01, -1, 1), "as many hallucinations a day"),
        (Interval(1234, 1004, 1567), "1,200 more hallucinations a day (1,000–1,600)"),
    ],
)
def test_differences_read_as_people_say_them(figure: Interval, said: str) -> None:
    from calibrate.report.sentences.releasing.impact import change

    assert change(figure, "hallucinations a day", bounds=True) == said


def test_arrays_flag_as_single_scores_do() -> None:
    from calibrate.orientation import flags
    from tests.thresholds.make import entry

    values = np.array([0.1, 0.3, 0.30000001, np.nan, 0.9])
    for way in ("above", "below"):
        one = entry(0.3, flag_when=way)
        assert flags(values, 0.3, one.flag_when).tolist() == [flags(float(v), 0.3, one.flag_when) for v in values]
