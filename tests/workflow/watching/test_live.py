"""A live threshold's row: what is known of it now, from which labels, and what it needs first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from calibrate.report.sentences.watching import live as sentences
from calibrate.thresholds.states import Judged
from calibrate.types import Interval, Label, PointState, PointVerdict, StateReason, TraceFilter
from calibrate.workflow.releasing import release
from calibrate.workflow.watching import recheck
from calibrate.workflow.watching.drift_report import DetectorDrift, DriftState
from calibrate.workflow.watching.live import CHECK_AFTER, Because, Due, Estimate, LiveThreshold
from calibrate.workflow.week import standing
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, draw, fill, save

QUIET = LiveThreshold(
    DETECTOR, "signal", False, "≤ 0.4", 0.7, "measured", None, Estimate(Interval(None), None, None, 0, 0, None, None),
    NOW, False, False, False, (), {},
)  # fmt: skip
FELL = Judged(DETECTOR, PointState(PointVerdict.DO_NOT_RELEASE, StateReason.RECHECK_FELL, 0.7), "")
WIDE = Judged(DETECTOR, PointState(PointVerdict.DO_NOT_RELEASE, StateReason.WIDE), "a pilot")


def line(state: DriftState, traces: int = 100, model: str = "m") -> DetectorDrift:
    return DetectorDrift(
        DETECTOR, model, "signal", 0.4, "below", "≤ 0.4", state, state == DriftState.RECALIBRATE, traces, traces,
        traces, traces, None, None, None, None, None, None, 0.7,
    )  # fmt: skip


def test_what_needs_most_is_due_whatever_else_is_so() -> None:
    """All states: the reasons have one order, and nothing is due only where there is none."""
    order = [Because.BAD, Because.FELL, Because.CHANGED, Because.UNDER_WAY, Because.MOVED, Because.OVERDUE,
             Because.UNSCORED]  # fmt: skip
    drifts = (DriftState.HOLDS, DriftState.MOVED, DriftState.NOT_SCORED)
    for judged, changed, under_way, drift, stale, rechecked, promised in product(
        (None, FELL, WIDE), (False, True), (False, True), drifts, (False, True), (False, True), (None, 0.7)
    ):
        row = replace(
            QUIET, judged=judged, changes=("version 1 → 2",) if changed else (), under_way=under_way, stale=stale,
            lines=(line(drift),), rechecked=rechecked, promised=promised,
        )  # fmt: skip
        true = {
            Because.BAD: judged is WIDE,
            Because.FELL: judged is FELL,
            Because.CHANGED: changed,
            Because.UNDER_WAY: under_way,
            Because.MOVED: drift == DriftState.MOVED and (stale or not rechecked),
            Because.OVERDUE: stale and promised is not None,
            Because.UNSCORED: drift == DriftState.NOT_SCORED,
        }
        assert row.because == next((reason for reason in order if true[reason]), None)
        assert (row.due is None) == (row.because is None)
        assert bool(sentences.why(row)) == (row.due is not None)


def test_the_reason_of_a_release_against_a_red_verdict_is_said() -> None:
    assert sentences.against(replace(QUIET, judged=WIDE)).endswith("Released because: a pilot.")
    assert sentences.against(replace(QUIET, judged=FELL)).startswith("A recheck found it below its target of 70%")
    assert sentences.against(QUIET) == ""


def test_one_word_sums_up_the_models() -> None:
    """What moved or is unknown is said however little its traffic; else what is known of the most traffic."""
    few = line(DriftState.TOO_FEW, 5, "rare")
    assert replace(QUIET, lines=(line(DriftState.HOLDS), few)).drift == DriftState.HOLDS
    assert replace(QUIET, lines=(line(DriftState.HOLDS), line(DriftState.MOVED, 5))).drift == DriftState.MOVED
    assert replace(QUIET, lines=(few, line(DriftState.RECALIBRATE, 9, "new"))).drift == DriftState.RECALIBRATE
    assert replace(QUIET, lines=()).drift is None


@pytest.fixture
def released(store: Store) -> Store:
    labels, scores = draw(60)
    fill(store, labels, scores)
    save(store, "precision>=0.6")
    release.release(store, ReleaseRequest(by="ann", reason="a test"), now=NOW - timedelta(days=2))
    return store


@pytest.mark.both_databases
def test_a_row_says_what_the_release_and_its_labels_say(released: Store) -> None:
    (row,) = standing.look(released, now=NOW).thresholds
    assert (row.name, row.promised, row.rechecked, row.stale) == (DETECTOR, 0.6, False, False)
    assert row.checked_at == NOW - timedelta(days=2)
    assert row.estimate.hits is not None
    assert row.estimate.flagged is not None
    assert row.estimate.precision.value == pytest.approx(row.estimate.hits / row.estimate.flagged)
    (late,) = standing.look(released, now=NOW + CHECK_AFTER).thresholds
    assert late.due in (Due.RECHECK, Due.CHOOSE, Due.RECALIBRATE)


def test_the_labels_of_a_recheck_are_what_is_known(released: Store) -> None:
    """Its figure is that of the labels counted by hand, and whoever looks writes nothing."""
    one = recheck.begin(released, DETECTOR, target=0.6, labels=8, seed=1, by="ann", now=NOW, since=None)
    before = released.revision()
    for place, member in enumerate(released.samples.members(one.sample_id)):
        label = Label("", "lead", "hallucinated" if place % 2 else "clean", adjudicates=True)
        released.labels.add(member.trace_pk, label, sample_id=one.sample_id, now=NOW)
    labelled = released.revision()
    assert labelled != before
    (row,) = standing.look(released, now=NOW).thresholds
    assert released.revision() == labelled
    drawn = len(released.samples.members(one.sample_id))
    assert (row.estimate.recheck, row.estimate.open, row.estimate.flagged) == (True, True, drawn)
    assert row.estimate.hits == drawn // 2
    assert row.due == Due.CHOOSE if row.judged and row.judged.state.known_bad else Due.RECHECK
    assert "recheck of" in sentences.precision_from(row.estimate)


def test_nothing_is_live_before_a_release(store: Store) -> None:
    assert standing.look(store, now=datetime.now(UTC)).thresholds == ()
    assert store.decisions.flagged(TraceFilter(), limit=5) == []


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({}, "no decision here"),
        ({"2026-11-20": 0}, "none"),
        ({"2026-11-20": 12}, "12 on one day"),
        ({"2026-11-01": 6, "2026-11-20": 0}, "6 in 20 days"),
        ({"2026-11-20": 17, "2026-11-23": 20}, "about 9 a day, over 4 days"),
        ({"2026-11-01": 1, "2026-11-10": 2}, "3 in 10 days"),
    ],
)
def test_flags_are_counted_from_the_first_on(flags: dict[str, int], text: str) -> None:
    assert sentences.flags(replace(QUIET, flags=flags)) == text
