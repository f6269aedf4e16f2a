"""A recheck of one segment: its own threshold, its own traffic, and which segment is due. Flags are counted by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from calibrate.report.sentences.watching import drift as drift_sentences
from calibrate.report.sentences.watching import live as live_sentences
from calibrate.report.sentences.watching import recheck as sentences
from calibrate.types import Interval, Label, Record, Segments, SegmentThreshold, Trace
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.tuning.point_state import Counted
from calibrate.workflow.watching import drift, recheck
from calibrate.workflow.watching.live import CHECK_AFTER, Because, Due, LiveThreshold, live_thresholds
from calibrate.workflow.watching.recheck_plan import look
from db import Store
from tests.workflow.aftermath import RELEASED, released
from tests.workflow.making import ABOVE, NOW, give_scores
from tests.workflow.releasing.test_by_segment import with_segments

BY = "attributes.tier"
OWN, GOLD_FLAGS = 0.5, 12
SCORES = {"gold": [0.5] * 5 + [0.9] * 7 + [0.49] * 20, "free": [1.4] * 9}
"""Five of gold tie with its threshold; free is below its own, and so are both below the common one, 1.5."""


def segments(by: str = BY, gold: float = OWN) -> Segments:
    nothing = Interval(None)
    return Segments(
        by,
        {
            "gold": SegmentThreshold(gold, 50, 20, nothing, nothing),
            "free": SegmentThreshold(1.45, 80, 20, nothing, nothing),
        },
    )


def traffic(store: Store, *, start: datetime = RELEASED + timedelta(hours=1)) -> None:
    """Traces after the release, by tier; the tier true is logged as a boolean."""
    rows = [(tier, score) for tier, scores in SCORES.items() for score in scores] + [(True, 2.0)]
    traces = [
        Trace(
            f"new-{place}", answer=f"answer {place}", question="?", model="m1", operation="qa",
            timestamp=start + timedelta(minutes=place), attributes={"tier": tier},
        )
        for place, (tier, _) in enumerate(rows)
    ]  # fmt: skip
    store.traces.add([Record(line, trace) for line, trace in enumerate(traces, 1)], labels_as="gold", now=start)
    give_scores(store, traces, [score for _, score in rows], name=ABOVE)


@pytest.fixture
def live(store: Store) -> Store:
    released(store)
    with_segments(store, segments())
    traffic(store)
    return store


def row_of(store: Store, now: datetime) -> LiveThreshold:
    (row,) = live_thresholds(store, judged=(), report=None, now=now, changes={})
    return row


def label(store: Store, sample: str, verdict: str) -> None:
    drawn = store.samples.get(sample)
    assert drawn is not None
    traces = store.traces.load([member.trace_pk for member in store.samples.members(drawn.id)])
    records = [
        Record(line, trace, (Label(trace.id, "", verdict),))  # type: ignore[arg-type]
        for line, trace in enumerate(traces, 1)
    ]
    store.traces.add(records, labels_as="gold", now=NOW)


def test_it_draws_from_the_segment_at_its_own_threshold(live: Store) -> None:
    assert look(live, ABOVE, segment="gold", now=NOW).flagged == GOLD_FLAGS
    assert look(live, ABOVE, segment="free", now=NOW).flagged == 0
    begun = recheck.begin(live, ABOVE, segment="gold", target=0.7, seed=1, by="ann", now=NOW)
    state = recheck.state(live, begun, now=NOW)
    assert (state.pool, state.left, state.plan.threshold, state.plan.part) == (GOLD_FLAGS, GOLD_FLAGS, OWN, "tier gold")
    assert "in the tier gold traffic of" in sentences.verdict(state)
    assert recheck.newest(live, ABOVE) is None
    assert recheck.newest(live, ABOVE, segment="gold") == begun


def test_a_boolean_attribute_is_a_segment_by_its_text(live: Store) -> None:
    own = SegmentThreshold(2.0, 50, 20, Interval(None), Interval(None))
    with_segments(live, Segments(BY, {"true": own}))
    assert look(live, ABOVE, segment="true", now=NOW).flagged == 1


def test_a_segment_that_fell_speaks_against_the_detector_and_is_named(live: Store) -> None:
    begun = recheck.begin(live, ABOVE, segment="gold", target=0.7, seed=1, by="ann", now=NOW)
    sample = recheck.peek(live, begun).sample
    label(live, sample.name, "clean")
    state = recheck.state(live, begun, now=NOW)
    assert state.decision == "fell below"
    fell = [
        known_bad.fell_in_recheck(live, ABOVE, begun.config_id, 1.5, own)
        for own in (segments(), None, segments("operation"), segments(gold=0.6))
    ]
    assert fell == [Counted(state.counted, 0, "tier gold"), None, None, None]


def test_drift_asks_for_a_recheck_of_a_segment_that_has_flags(live: Store) -> None:
    report = drift.drift(live, now=NOW)
    (line,) = report.lines
    assert (line.urgent, line.segments) == (True, ("gold",))
    assert f"`recheck {ABOVE} --segment gold --target 0.7`" in drift_sentences.next_step(report)


def test_without_flagged_traces_a_gate_is_due(store: Store) -> None:
    released(store)
    with_segments(store, segments())
    row = replace(row_of(store, NOW), under_way=True)
    assert (row.due, live_sentences.recheck(row)) == (Due.GATE, "`gate`")
    assert "label a sample" in live_sentences.why(row)


def test_the_segment_that_can_be_rechecked_is_due(live: Store) -> None:
    late = RELEASED + CHECK_AFTER + timedelta(days=1)
    assert row_of(live, NOW).due is None
    recheck.begin(live, ABOVE, segment="gold", target=0.7, seed=1, by="ann", now=NOW)
    row = row_of(live, late)
    assert (row.due, row.because, row.segment) == (Due.RECHECK, Because.UNDER_WAY, "gold")
    assert live_sentences.recheck(row) == f"`recheck {ABOVE} --segment gold`"
    assert "tier gold is next" in live_sentences.why(row)
