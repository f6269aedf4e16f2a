"""A recalibration of a detector with thresholds per segment chooses them again, or says that they go."""

from __future__ import annotations

import pytest

from calibrate.report.sentences.releasing import recalibration
from calibrate.stats.choosing.policy import parse
from calibrate.thresholds.states import states_in
from calibrate.types import Interval, Label, Record, Score, Segments, SegmentThreshold, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis
from calibrate.workflow.releasing import known_bad, release
from calibrate.workflow.releasing.known_bad import state_of_choice
from calibrate.workflow.tuning import segments
from calibrate.workflow.tuning.operating_points import choose_point
from calibrate.workflow.upgrade import planning
from calibrate.workflow.upgrade import recalibrate as step
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.making import ABOVE, NOW, give_scores
from tests.workflow.tuning.test_segmented import POLICY, fill


@pytest.fixture
def store(sqlite_url: str) -> Store:
    return open_store(sqlite_url)


def released(store: Store, shift: dict[str, float]) -> segments.Segmented:
    data = fill(store, shift)
    segmented = segments.segment_labels(store, data, POLICY, by="operation")
    segments.save(store, data, segmented, reason="a test", by="ann", now=NOW)
    release.release(store, ReleaseRequest(note="first", by="ann", reason="a test"), now=NOW)
    return segmented


def test_they_are_chosen_again_or_said_to_go(store: Store) -> None:
    before = released(store, {"chat": 0.0, "search": 4.0})
    plan = planning.plan(store)
    (due,) = plan.due
    assert due.config is not None
    assert before.own_point is not None
    scores = [(row.content_hash, Score(row.trace_id, row.value)) for row in loading.load_evidence(store, ABOVE).rows]
    store.scores.save(due.config.id, scores, now=NOW)  # the detector as it runs now scores alike
    assert due.entry.segments == before.segments
    (again,) = step.redo(store, plan)
    assert again.segments == before.segments  # the same labels, the same policy
    assert not again.drops_segments
    assert "its thresholds by operation are chosen again: operation chat" in (recalibration.remark(again) or "")
    outcome = step.look(store, plan, [again], by="ann", now=NOW)
    assert outcome.candidate is not None
    assert outcome.candidate.detectors[ABOVE].segments == before.segments
    assert states_in(outcome.candidate)[0].state.flagged == before.own_point.true_positives + (
        before.own_point.false_positives
    )
    (by_hand,) = step.redo(store, plan, policy="manual:2")
    assert by_hand.drops_segments
    remark = recalibration.remark(by_hand) or ""
    assert "its thresholds by operation are dropped" in remark
    assert f"`segments {ABOVE} --by operation --save`" in remark
    outcome = step.look(store, plan, [by_hand], by="ann", now=NOW)
    assert outcome.candidate is not None
    assert outcome.candidate.detectors[ABOVE].segments is None


def disputed(store: Store, rows: list[tuple[str, float, str | None]]) -> None:
    """Traces of an operation, with a score and a verdict; None: two people who differ."""
    records, traces = [], []
    for place, (operation, _, verdict) in enumerate(rows):
        trace = Trace(f"d{place}", answer=f"d {place}", operation=operation)
        traces.append(trace)
        labels = (Label(trace.id, "", verdict or "disputed"),)  # type: ignore[arg-type]
        records.append(Record(place + 1, trace, labels))
    store.traces.add(records, labels_as="gold", now=NOW)
    give_scores(store, traces, [score for _, score, _ in rows], name=ABOVE)


def test_disputed_labels_count_where_their_segment_flags_them(store: Store) -> None:
    rows: list[tuple[str, float, str | None]] = [("qa", 1.0 + place % 5, "hallucinated") for place in range(20)]
    rows += [("qa", 0.0, "clean")] * 10
    # By hand: qa flags at 1 and more, the tie among them; all else at 3 and more.
    rows += [("qa", 1.0, None), ("qa", 2.0, None), ("qa", 0.9, None), ("chat", 2.0, None), ("chat", 3.0, None)]
    disputed(store, rows)
    data = loading.load_evidence(store, ABOVE, basis=Basis(None))
    point = choose_point(data, parse("manual:3"))
    own = Segments("operation", {"qa": SegmentThreshold(1.0, 30, 20, Interval(None), Interval(None))})
    assert state_of_choice(store, data, point).disputed == 1
    assert state_of_choice(store, data, point, segments=own).disputed == 3


def test_a_saved_point_is_measured_again_at_its_own_thresholds(store: Store) -> None:
    rows: list[tuple[str, float, str | None]] = [("qa", 1.0, "hallucinated")] * 8 + [("qa", 0.0, "clean")] * 8
    rows += [("chat", 1.0, "clean")] * 8 + [("chat", 3.0, "hallucinated")] * 4
    disputed(store, rows)
    data = loading.load_evidence(store, ABOVE, basis=Basis(None))
    point = choose_point(data, parse("manual:3"))
    own = Segments("operation", {"qa": SegmentThreshold(1.0, 16, 8, Interval(None), Interval(None))})
    again = known_bad._measure_again(store, data, point, own)
    assert (again.threshold, again.true_positives, again.false_positives) == (3.0, 12, 0)
    common = known_bad._measure_again(store, data, point, None)
    assert (common.true_positives, common.false_positives) == (4, 0)
