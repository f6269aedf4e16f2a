"""What is known against a threshold: each rule by itself, and the cases that used to be saved without a word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.stats.choosing.policy import parse
from calibrate.types import Guarantee, Interval, OperatingPoint, PointState, StateReason, Unmet, UnmetReason
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.point_state import Counted, chance_of, judge_point, state_of
from db import Store
from tests.workflow.making import DETECTOR, fill

GOOD = OperatingPoint(
    detector=DETECTOR, flag_when="below", threshold=0.4, policy="precision>=0.7", feasible=True,
    precision=Interval(0.75, 0.6, 0.86), recall=Interval(0.5, 0.38, 0.62), fpr=Interval(0.04, 0.02, 0.08),
    flag_rate=Interval(0.13, 0.1, 0.17), n=300, positives=60, true_positives=30, false_positives=10,
    false_negatives=30, true_negatives=230, coverage=1.0,
)  # fmt: skip
CERTIFIED = Guarantee("certified", 0.7, 0.95, 0.72, 60, 52, "fresh")
BOUNDED = Guarantee("bounded", 0.7, 0.95, 0.701, 40, 33)


def test_a_chosen_point_holds_only_where_it_is_proven() -> None:
    assert judge_point(GOOD, chance=0.3).verdict == "not shown yet"
    assert judge_point(GOOD, chance=0.3).why == StateReason.UNPROVEN
    assert judge_point(GOOD, chance=0.04).verdict == "holds"
    # 50 of 50 flagged, and the rule errs often on scores with a gap: the threshold's own interval decides.
    sure = replace(GOOD, precision=Interval(1.0, 0.93, 1.0), true_positives=50, false_positives=0)
    assert judge_point(sure, chance=0.97).verdict == "holds"
    assert judge_point(replace(sure, precision=Interval(1.0, 0.69, 1.0)), chance=0.97).known_bad
    assert judge_point(replace(GOOD, guarantee=BOUNDED)).verdict == "holds"
    assert judge_point(replace(GOOD, guarantee=CERTIFIED)).verdict == "holds"
    assert judge_point(replace(GOOD, guarantee=CERTIFIED)).why is None


@pytest.mark.parametrize(
    ("changes", "facts", "why"),
    [
        ({}, {"fell": Counted(40, 20)}, StateReason.RECHECK_FELL),
        ({"guarantee": CERTIFIED}, {"fell": Counted(40, 20)}, StateReason.RECHECK_FELL),
        ({"guarantee": CERTIFIED}, {"overturned": Counted(60, 44)}, StateReason.OVERTURNED),
        ({"feasible": False, "why": Unmet(UnmetReason.PRECISION)}, {}, StateReason.UNMET),
        ({"recall": Interval(0.0, 0.0, 0.06)}, {"chance": 0.01}, StateReason.FINDS_NOTHING),
        ({"policy": "manual:0.4", "recall": Interval(0.0, 0.0, 0.06)}, {}, StateReason.FINDS_NOTHING),
        ({"precision": Interval(0.69, 0.5, 0.8)}, {"chance": 0.3}, StateReason.BELOW_TARGET),
        ({"policy": "recall>=0.9", "recall": Interval(0.85, 0.7, 0.95)}, {}, StateReason.BELOW_TARGET),
        ({}, {"chance": 0.53}, StateReason.MOSTLY_BELOW),
        ({"true_positives": 4, "false_positives": 0}, {"chance": 0.3}, StateReason.FEW_FLAGGED),
        ({"policy": "f-beta:1", "true_positives": 3, "false_positives": 1}, {}, StateReason.FEW_FLAGGED),
        ({"precision": Interval(0.83, 0.11, 1.0), "true_positives": 5, "false_positives": 1}, {}, StateReason.WIDE),
        ({"policy": "alerts<=20/day", "precision": Interval(0.5, 0.1, 0.75)}, {}, StateReason.WIDE),
        ({"policy": "f-beta:2", "recall": Interval(1, 0.9, 1), "fpr": Interval(1, 0.9, 1)}, {}, StateReason.NO_BETTER),
        ({"policy": "elbow", "recall": Interval(0.1, 0, 0.2), "fpr": Interval(0.2, 0, 0.3)}, {}, StateReason.NO_BETTER),
        ({}, {"chance": 0.3, "disputed": 3}, StateReason.DISPUTED),  # 30 of 43 is .698
        ({"guarantee": BOUNDED}, {"disputed": 1}, StateReason.DISPUTED),
    ],
)  # fmt: skip
def test_what_is_known_against_a_point(changes: dict[str, object], facts: dict[str, object], why: StateReason) -> None:
    state = judge_point(replace(GOOD, **changes), **facts)  # type: ignore[arg-type]
    assert (state.verdict, state.why) == ("do not release", why)
    assert state.known_bad


@pytest.mark.parametrize(
    ("changes", "facts", "verdict"),
    [
        ({}, {"chance": 0.3, "disputed": 2}, "not shown yet"),  # 30 of 42 is .714: no two disputes can turn it
        ({"guarantee": CERTIFIED}, {"disputed": 9}, "holds"),  # a certificate counts them against itself already
        ({"guarantee": BOUNDED, "precision": Interval(0.9, 0.2, 1.0)}, {}, "holds"),
        ({"policy": "manual:0.4"}, {}, "not shown yet"),  # by hand it promises nothing
        ({"policy": "elbow"}, {}, "holds"),  # .38 to .62 of the hallucinated, .02 to .08 of the clean
        ({"policy": "elbow", "fpr": Interval(0.3, 0.2, 0.4)}, {}, "not shown yet"),
        ({"policy": "recall>=0.45"}, {}, "not shown yet"),
        ({"policy": "recall>=0.35"}, {}, "holds"),
    ],
)
def test_what_is_not_known_against_it(changes: dict[str, object], facts: dict[str, object], verdict: str) -> None:
    assert judge_point(replace(GOOD, **changes), **facts).verdict == verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("moved_from", "changes", "facts", "why"),
    [
        ("precision>=0.8", {}, {}, StateReason.BELOW_TARGET),  # it measures 75%
        ("recall>=0.6", {}, {}, StateReason.BELOW_TARGET),  # it finds half
        ("precision>=0.7", {}, {"chance": 0.6}, StateReason.MOSTLY_BELOW),
        ("precision>=0.7", {}, {"disputed": 3}, StateReason.DISPUTED),
        ("precision>=0.1", {"recall": Interval(0.1, 0, 0.2), "fpr": Interval(0.2, 0, 0.3)}, {}, StateReason.NO_BETTER),
        ("precision>=0.7", {}, {"chance": 0.3}, StateReason.UNPROVEN),
        ("precision>=0.55", {}, {"chance": 0.6}, StateReason.UNPROVEN),  # its own interval begins at 60%
        ("elbow", {}, {}, StateReason.UNPROVEN),
        (None, {}, {}, StateReason.UNPROVEN),
    ],
)
def test_moving_a_threshold_by_hand_does_not_mend_it(
    moved_from: str | None, changes: dict[str, object], facts: dict[str, object], why: StateReason
) -> None:
    """It stays judged by the target last asked for, and never holds."""
    moved = replace(GOOD, policy="manual:0.4", **changes)  # type: ignore[arg-type]
    state = judge_point(moved, moved_from=moved_from, **facts)  # type: ignore[arg-type]
    assert state.why == why
    assert state.known_bad == (why != StateReason.UNPROVEN)
    assert PointState.from_json(state.to_json()) == state
    assert judge_point(GOOD, moved_from="precision>=0.99").moved_from is None  # its own policy judges it


def test_the_labels_counted_are_those_that_the_reason_is_about() -> None:
    state = judge_point(GOOD, fell=Counted(40, 20), chance=0.3)
    assert (state.flagged, state.hits, state.target) == (40, 20, 0.7)
    state = judge_point(GOOD, chance=0.3)
    assert (state.flagged, state.hits, state.figure) == (40, 30, GOOD.precision)
    assert judge_point(replace(GOOD, policy="recall>=0.4")).figure == GOOD.recall
    assert judge_point(replace(GOOD, policy="elbow")).target is None


def test_a_state_outlives_its_document() -> None:
    for state in (judge_point(GOOD, chance=0.6, disputed=2), judge_point(replace(GOOD, guarantee=CERTIFIED))):
        assert PointState.from_json(state.to_json()) == state


def test_a_threshold_on_six_flags_is_known_to_be_wrong(store: Store) -> None:
    """80 labels, of which the strictest scores happen to be right: 5 of 6, an interval from about 40 to 100%."""
    rng = np.random.default_rng(3)
    labels = [bool(one) for one in rng.random(80) < 0.25]
    scores: list[float | None] = [float(value) for value in rng.uniform(0.2, 1, 80)]
    bad = [place for place, label in enumerate(labels) if label][:5]
    for place in (*bad, labels.index(False)):
        scores[place] = 0.01 + place / 10_000
    fill(store, labels, scores)
    data = loading.load_evidence(store, DETECTOR)
    point = operating_points.choose_point(data, parse("precision>=0.7"))
    state = state_of(data, point)
    assert point.feasible
    assert state.known_bad
    assert state.chance == pytest.approx(chance_of(data, point), abs=0.001)
