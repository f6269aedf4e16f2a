"""After an upgrade: what changed is said, points are chosen anew under the same policies, and old scores stay."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.numbers import limit, share
from calibrate.report.sentences.releasing import recalibration
from calibrate.report.tables.column import cells
from calibrate.report.tables.recalibration import ON_PAGE
from calibrate.runtime import load
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Member, Record, Score, Source, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Caution, Chosen
from calibrate.workflow.releasing import approval, release
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.upgrade import planning
from calibrate.workflow.upgrade import recalibrate as step
from db import Store
from db.releases import ReleaseRequest
from db.tables import PointRow, ScoreRow
from tests.workflow.making import NOW, save

NAME = "token_overlap"
WORDS = ("the warranty covers parts and labour for two years", "delivery takes five days within the country")


def traces(start: int, count: int, *, model: str = "a") -> list[Record]:
    """Answers that quote their source when clean, and else say more; some clean ones do, too."""
    found = []
    for place in range(start, start + count):
        bad = place % 3 == 0
        extra = " and batteries for life besides" if bad or place % 7 == 0 else ""
        answer = f"{WORDS[place % 2]}{extra}{' forever golden' if bad and place % 2 else ''}, case {place}"
        trace = Trace(
            f"t{place}", answer, sources=(Source("1", WORDS[place % 2]),), model=model,
            timestamp=NOW - timedelta(hours=place % 24),
        )  # fmt: skip
        found.append(Record(place + 1, trace, (Label(trace.id, "", "hallucinated" if bad else "clean"),)))
    return found


@pytest.fixture
def released(store: Store) -> Store:
    """v1 of token_overlap, made with the scores of an older version of it, which knew less."""
    records = traces(0, 60)
    store.traces.add(records, labels_as="gold", now=NOW - timedelta(hours=1))
    old = store.scores.config(NAME, "0", {"variant": "default"}, "", now=NOW)
    rng = np.random.default_rng(4)
    values = [(0.2 if place % 3 == 0 else 0.8) + rng.normal(0, 0.25) for place in range(60)]
    pairs = [(r.trace.content_hash(), Score(r.trace.id, float(v))) for r, v in zip(records, values, strict=True)]
    store.scores.save(old.id, pairs, now=NOW)
    save(store, "precision>=0.7")
    release.release(store, ReleaseRequest(note="first", by="ann"), now=NOW)
    return store


def ran(store: Store, **given: Any) -> planning.Plan:
    queued = planning.queue(store, planning.plan(store, **given))
    assert queued is not None
    detect.work(store, run_id=queued.id)
    return planning.plan(store, **given)


def counts(store: Store) -> tuple[int, int, int]:
    """Points, scores and releases in the store."""
    with store.engine.connect() as connection:
        points, scores = (connection.scalar(select(func.count()).select_from(row)) for row in (PointRow, ScoreRow))
    return points or 0, scores or 0, len(store.releases.list())


def test_an_upgrade_is_seen_and_its_scores_are_owed(released: Store) -> None:
    plan = planning.plan(released)
    (due,) = plan.due
    assert due.changes[0] == "version 0 → " + due.config.version  # type: ignore[union-attr]
    assert (due.waiting, plan.labels, plan.new_labels) == (60, 60, 0)
    assert due.config.params["variant"] == "default"  # type: ignore[union-attr]  # as it was released
    assert recalibration.reasons(plan) == [f"Token overlap is not what v1 was made with: {', '.join(due.changes)}"]


def test_the_point_is_what_the_same_policy_chooses_on_the_new_scores(released: Store) -> None:
    plan = ran(released)
    assert plan.waiting == 0
    (one,) = step.redo(released, plan)
    assert one.point is not None
    assert one.before is not None
    assert one.after is not None
    assert one.point.threshold == choose(one.after.sweep, parse("precision>=0.7"), detector=NAME).threshold
    entry = plan.file.detectors[NAME]
    assert one.stood is not None
    assert one.stood.precision.value == pytest.approx(entry.metrics.precision.value)  # the same labels, the old scores
    assert {row.pk for row in one.before.rows} == {row.pk for row in one.after.rows}


def test_a_table_shows_both_thresholds_or_why_the_old_one_stays(released: Store) -> None:
    (moved,) = step.redo(released, ran(released))
    assert moved.point is not None
    assert moved.stood is not None
    stays = replace(moved, point=None, stays=step.Stays("certificate holds"))
    head, *rows = cells(ON_PAGE, [moved, stays])
    first, second = (dict(zip(head, row, strict=True)) for row in rows)
    assert first["Flagged at"] == second["Flagged at"] == moved.due.entry.limit
    assert first["Flags at"] == limit(moved.point.threshold, moved.point.flag_when)
    assert first["Precision"].startswith(
        f"{share(moved.stood.precision.value)} → {share(moved.point.precision.value)} ("
    )
    assert (first["Policy"], first["Says"]) == ("precision at least 70%", "–")
    assert (second["Flags at"], second["Precision"], second["Strength"]) == ("stays", "–", "–")
    assert second["Says"] == "nothing of it changed, and its certificate stands"


def test_looking_keeps_nothing_and_releasing_keeps_all(released: Store, tmp_path: Path) -> None:
    plan = ran(released)
    before = counts(released)
    redone = step.redo(released, plan)
    seen = step.look(released, plan, redone, by="ann", now=NOW)
    assert counts(released) == before
    assert seen.candidate is not None
    assert {change.field for change in seen.changes} >= {"threshold", "version"}
    out = tmp_path / "thresholds.json"
    made = step.release(released, seen, note="up", by="ann", now=NOW, out=out)
    assert made.version == 2  # type: ignore[union-attr]
    assert load(out).detectors[NAME] == seen.candidate.detectors[NAME]
    points, scores, releases = counts(released)
    assert (points, scores, releases) == (before[0] + 1, before[1], 2)  # the old scores are all there
    after = planning.plan(released)
    assert recalibration.reasons(after) == []
    with pytest.raises(BadInput, match="version 2 was released in the meantime"):
        step.release(released, seen, note="", by="ann", now=NOW)
    nothing = step.look(released, after, step.redo(released, after), by="ann", now=NOW)
    with pytest.raises(BadInput, match="nothing changes against v2"):
        step.release(released, nothing, note="", by="ann", now=NOW)
    assert counts(released) == (points, scores, releases)


def test_newer_labels_alone_are_a_reason(released: Store) -> None:
    first = ran(released)
    step.release(
        released, step.look(released, first, step.redo(released, first), by="ann", now=NOW), note="", by="ann", now=NOW
    )
    released.traces.add(traces(60, 30, model="b"), labels_as="gold", now=NOW + timedelta(days=1))
    plan = planning.plan(released)
    assert (plan.labels, plan.new_labels, plan.new_models, plan.upgraded) == (90, 30, ("b",), ())
    assert plan.waiting == 30
    plan = ran(released)
    seen = step.look(released, plan, step.redo(released, plan), by="ann", now=NOW)
    assert seen.candidate is not None
    assert (seen.candidate.data.models, seen.candidate.data.n) == (("a", "b"), 90)


def test_nothing_is_chosen_on_labels_of_flagged_traces_alone(released: Store) -> None:
    found = traces(60, 30)
    unlabelled = [replace(record, labels=()) for record in traces(90, 5)]
    released.traces.add(unlabelled, labels_as=None, now=NOW + timedelta(days=1))
    released.traces.add(found, labels_as="gold", now=NOW + timedelta(days=1))
    members = [Member(released.traces.find(one.trace.id) or 0, 1.0, "flagged") for one in found]
    released.samples.add(
        "certify-1", design="fresh-flagged", by=None, seed=1, pool=30, undated=0, where=TraceFilter(),
        strata={"flagged": (30, 30)}, members=members, now=NOW,
    )  # fmt: skip
    plan = ran(released)
    assert (plan.sample, plan.labels) == (None, 90)
    assert plan.caution == Caution(Chosen.UNSTATED)
    seen = step.look(released, plan, step.redo(released, plan), by="ann", now=NOW)
    assert seen.changes == ()
    assert "nobody has said how the traces with labels were chosen" in str(recalibration.stays(seen.redone[0]))
    named = step.redo(released, planning.plan(released, sample="certify-1"))
    assert "holds flagged traces only" in str(recalibration.stays(named[0]))


def test_a_release_that_is_refused_keeps_no_point(released: Store) -> None:
    plan = ran(released)
    seen = step.look(released, plan, step.redo(released, plan), by="ann", now=NOW)
    before = counts(released)
    with pytest.raises(BadInput, match="gopher"):
        step.release(released, seen, note="", by="ann", now=NOW, out="gopher://somewhere/thresholds.json")
    assert counts(released) == before
    proposed = step.release(released, seen, note="", by="ann", now=NOW, approval=True)
    assert approval.approve(released, proposed.id, by="bob", now=NOW).version == 2  # type: ignore[union-attr]


def test_a_certificate_is_not_carried_over(released: Store) -> None:
    from dataclasses import replace

    from calibrate.types import Guarantee

    data = loading.load_evidence(released, NAME)
    sure = Guarantee("certified", 0.7, 0.95, 0.733, 84, 69, None)
    point = replace(operating_points.choose_point(data, parse("precision>=0.7")), guarantee=sure)
    operating_points.save_point(released, data, point, by="ann", now=NOW)
    release.release(released, ReleaseRequest(by="ann"), now=NOW)
    (one,) = step.redo(released, ran(released))
    assert one.point is not None
    assert one.point.strength in ("bounded", "measured")
    assert f"`certify {NAME}` is next" in str(recalibration.remark(one))


def test_a_bound_shares_its_error_among_as_many_looks_as_before(released: Store) -> None:
    data = loading.load_evidence(released, NAME)
    point = operating_points.choose_point(data, parse("precision>=0.3"), strength="bounded", looks=4)
    operating_points.save_point(released, data, point, reason="a test", by="ann", now=NOW)
    release.release(released, ReleaseRequest(by="ann", reason="a test"), now=NOW)
    (one,) = step.redo(released, ran(released))
    assert one.point is not None
    assert one.point.guarantee is not None
    assert one.point.guarantee.confidence == pytest.approx(1 - 0.05 / 4)


def test_what_cannot_be_redone_stays_and_says_why(released: Store) -> None:
    plan = ran(released)
    (one,) = step.redo(released, plan, policy="alerts<=0.001/day")
    assert one.point is None
    assert "a day" in str(recalibration.stays(one))
    seen = step.look(released, plan, (one,), by="ann", now=NOW)
    assert (seen.candidate, seen.changes) == (None, ())


@pytest.mark.parametrize(
    ("given", "match"),
    [({"params": {"nothing": "1"}}, "none of token_overlap has a parameter 'nothing'"), ({"sample": "w1"}, "'w1'")],
)
def test_bad_input_says_what_to_do(released: Store, given: dict[str, Any], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        planning.plan(released, **given)


def test_without_a_release_there_is_nothing_to_recalibrate(store: Store) -> None:
    with pytest.raises(BadInput, match="nothing is released yet"):
        planning.plan(store)


def test_the_verb_dry_then_for_good(
    released: Store, store_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "thresholds.json"
    before = counts(released)
    call = ["recalibrate", "--store", store_url, "--json"]
    assert main([*call, "--dry-run", "--out", str(out)]) == 0
    dry = json.loads(capsys.readouterr().out)
    assert (dry["version"], out.exists()) == (None, False)
    points, scores, releases = counts(released)
    assert (points, releases) == (before[0], before[2])
    assert scores == before[1] + 60
    assert main([*call, "--out", str(out)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["version"] == 2
    assert made["detectors"] == dry["detectors"]
    assert load(out).detectors[NAME].threshold == dry["detectors"][0]["threshold"]["after"]
    assert main(["recalibrate", "--store", store_url]) == 0
    assert "v2 stands." in capsys.readouterr().out


def test_parameters_change_when_they_are_given(released: Store) -> None:
    (due,) = planning.plan(released, params={"variant": "plain"}).due
    assert "variant default → plain" in due.changes
