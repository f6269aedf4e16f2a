"""The demo leaves a store in which every page has something true to show, and a week with work left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from calibrate.errors import BadInput
from calibrate.stats.sampling import designs
from calibrate.types import TraceFilter
from calibrate.workflow.demo import shop, story
from calibrate.workflow.labelling import agreement
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.sampling.pace import pace_of_each, team_pace
from calibrate.workflow.week.week import monday, week
from db import Store, open_store
from db.decisions import StoredDecision

NOW = datetime(2026, 11, 25, 15, 30, tzinfo=UTC)  # a Wednesday


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('demo')}/demo.db")
    story.fill(store, NOW)
    yield store
    store.close()


def test_the_week_at_hand_has_disputes_and_labels_left(told: Store) -> None:
    state = week(told, name=designs.default_name(NOW), labeller="you", now=NOW)
    assert state.steps[:2] == ("settle", "label")
    assert not state.known_bad
    assert state.sample is not None
    assert state.sample.name == designs.default_name(NOW)
    assert monday(NOW) <= state.sample.created_at <= NOW


def test_traces_end_now_and_begin_two_months_ago(told: Store) -> None:
    summary = told.traces.summary()
    assert summary.first is not None
    assert summary.last is not None
    assert NOW - timedelta(days=1) < summary.last <= NOW
    assert timedelta(days=55) < summary.last - summary.first < timedelta(days=70)
    assert set(summary.models) == {"shop-assistant-1", "shop-assistant-2"}


def test_the_last_week_is_finished_and_its_disputes_are_settled(told: Store) -> None:
    samples = {sample.name: sample for sample in told.samples.list()}
    last = samples[designs.default_name(NOW - timedelta(weeks=1))]
    verdicts = Counter(verdict for _, verdict in told.samples.verdicts(last.id))
    assert verdicts[None] == verdicts["disputed"] == 0
    assert agreement.look(told, last.name).adjudicated > 0


def test_two_releases_and_a_month_of_decisions_on_the_days_they_were_for(told: Store) -> None:
    newest, first = told.releases.list()
    assert timedelta(days=28) < newest.released_at - first.released_at
    times, decisions = times_of(told), decisions_by(told, first.version)
    assert len(decisions) > 500
    late = [each.decided_at - times[each.trace_pk] for each in decisions]
    assert timedelta(0) <= min(late)
    assert max(late) <= timedelta(days=1)
    days = {each.decided_at.date() for each in decisions}
    assert len(days) >= 30


def test_decisions_are_what_the_released_threshold_says(told: Store) -> None:
    """Counted again from the scores: below the threshold is flagged."""
    first = told.releases.list()[-1]
    entry = read_release(first).detectors["token_overlap"]
    kept = decisions_by(told, first.version)
    flagged = {each.trace_pk for each in kept if each.tier != "off"}
    expected = {each.trace_pk for each in kept if (score := each.scores["token_overlap"]) is not None
                and score <= entry.threshold}  # fmt: skip
    assert flagged == expected
    assert len(flagged) > 50


def test_one_recheck_ended_by_its_own_test(told: Store) -> None:
    (recheck,) = told.rechecks.of()
    assert recheck.outcome is not None
    assert recheck.outcome["decision"] == "holds"


def test_nothing_happens_in_the_future_or_before_its_time(told: Store) -> None:
    """A trace is in a sample only if it was logged before the sample was drawn, and labelled after."""
    times = times_of(told)
    for sample in told.samples.list():
        assert sample.created_at <= NOW
        for pk, _ in told.samples.keys(sample.id):
            assert times[pk] <= sample.created_at
    for pk, logged in times.items():
        for label in told.labels.of_trace(pk):
            assert label.created_at is not None
            assert logged < label.created_at <= NOW


def test_labels_are_those_of_the_data(told: Store) -> None:
    readings = shop.read_readings()
    labels = list(told.labels.export())
    assert {label.labeller for label in labels} == {"ada", "ben", "lena"}
    assert all(label.verdict == readings[label.trace_id, label.labeller].verdict for label in labels)


def test_labels_took_as_long_as_it_takes_to_read_what_they_are_of(told: Store) -> None:
    """By hand: a quarter of a second a word, and at most the 40 seconds between two labels."""
    timed = [label for label in told.labels.export() if label.seconds is not None]
    assert {label.labeller for label in timed} == {"ada", "ben"}
    label = timed[0]
    (trace,) = told.traces.load([told.traces.find(label.trace_id) or 0])
    read = " ".join([trace.question or "", trace.answer, *(source.text for source in trace.sources)])
    assert label.seconds == pytest.approx(min(len(read.split()) / 4, 40), abs=0.05)
    assert all(20 < (label.seconds or 0) <= 40 for label in timed)
    assert set(pace_of_each(told)) == {"ada", "ben"}
    assert team_pace(told).is_measured


@pytest.mark.parametrize("hours", [0, 167])
def test_any_hour_of_a_week_leaves_something_next(hours: int, tmp_path: Path) -> None:
    now = datetime(2026, 12, 28, 0, 5, tzinfo=UTC) + timedelta(hours=hours)
    store = open_store(f"sqlite:///{tmp_path}/demo.db")
    story.fill(store, now)
    state = week(store, name=designs.default_name(now), labeller="you", now=now)
    assert state.next in ("settle", "label")
    assert not state.known_bad
    assert len(store.releases.list()) == 2
    store.close()


def test_the_same_moment_gives_the_same_demo(told: Store, tmp_path: Path) -> None:
    again = open_store(f"sqlite:///{tmp_path}/again.db")
    story.fill(again, NOW)
    assert [row.sha256 for row in again.releases.list()] == [row.sha256 for row in told.releases.list()]
    assert list(again.labels.export()) == list(told.labels.export())
    again.close()


def test_a_store_with_traces_is_left_alone(told: Store) -> None:
    before = told.traces.count(TraceFilter())
    with pytest.raises(BadInput, match="empty store"):
        story.fill(told, NOW)
    assert told.traces.count(TraceFilter()) == before


def test_readings_fit_the_traces() -> None:
    """Each trace is read by both, each span lies in the answer, and the lead decides exactly where the two differ."""
    answers = {row["trace_id"]: row["answer"] for row in map(json.loads, shop.TRACES.read_text().splitlines())}
    readings = shop.read_readings()
    assert {trace_id for trace_id, _ in readings} == set(answers)
    for trace_id, answer in answers.items():
        ada, ben = readings[trace_id, "ada"], readings[trace_id, "ben"]
        assert {ada.verdict, ben.verdict} <= {"clean", "hallucinated", "unsure"}
        assert ((trace_id, "lena") in readings) == ({ada.verdict, ben.verdict} == {"clean", "hallucinated"})
        for label in (ada, ben):
            assert bool(label.spans) == bool(label.kinds) == (label.verdict == "hallucinated")
            assert all(0 <= span.start < span.end <= len(answer) for span in label.spans)


def times_of(store: Store) -> dict[int, datetime]:
    """When each trace was logged, by key."""
    pks = [pk for batch in store.traces.keys(TraceFilter()) for pk, _ in batch]
    times = {pk: trace.timestamp for pk, trace in zip(pks, store.traces.load(pks), strict=True)}
    return {pk: moment for pk, moment in times.items() if moment is not None}


def decisions_by(store: Store, version: int) -> list[StoredDecision]:
    return [each for pk in times_of(store) for each in store.decisions.of(pk) if each.version == version]
