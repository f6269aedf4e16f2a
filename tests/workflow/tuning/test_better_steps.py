"""What is offered instead of a threshold that is known to be bad: in which order, and with figures that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import Interval, Label, PointState, PointVerdict, StateReason
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning.better_steps import (
    BetterKind,
    count_more_labels,
    find_better_steps,
    find_lower_target,
    find_other_detector,
    order_steps,
)
from calibrate.workflow.tuning.operating_points import choose_point
from calibrate.workflow.tuning.point_state import state_of
from db import Store
from tests.workflow.making import ABOVE, DETECTOR, NOW, fill, give_scores
from tests.workflow.tuning.test_point_state import GOOD

PRECISION = Policy("precision", 0.7)


def bad(why: StateReason, *, disputed: int = 0, figure: Interval = GOOD.precision) -> PointState:
    return PointState(PointVerdict.DO_NOT_RELEASE, why, 0.7, figure, 40, 30, disputed=disputed)


@pytest.mark.parametrize(
    ("why", "policy", "kinds"),
    [
        (StateReason.MOSTLY_BELOW, PRECISION, ["lower target", "other detector", "more labels", "certify"]),
        (StateReason.DISPUTED, PRECISION, ["settle", "lower target", "other detector", "more labels", "certify"]),
        (StateReason.OVERTURNED, PRECISION, ["certify", "lower target", "other detector", "more labels"]),
        (StateReason.NO_BETTER, Policy("elbow"), ["other detector", "more labels"]),
    ],
)
def test_the_best_step_comes_first(why: StateReason, policy: Policy, kinds: list[str]) -> None:
    lower = 0.6 if policy.kind == "precision" else None
    steps = order_steps(bad(why, disputed=3), policy, lower=lower, other=GOOD, labels=240)
    assert [step.kind for step in steps] == kinds


def test_only_steps_that_there_are_are_offered() -> None:
    steps = order_steps(bad(StateReason.WIDE), PRECISION, lower=None, other=None, labels=None)
    assert [step.kind for step in steps] == [BetterKind.CERTIFY]
    assert order_steps(bad(StateReason.WIDE), Policy("manual", 0.4), lower=None, other=None, labels=None) == ()


def world(hits: int, flagged: int, rest: int = 300) -> Sweep:
    """The strictest score flags `flagged` labels, `hits` of them hallucinated; a tenth of the rest is."""
    labels = np.array([True] * hits + [False] * (flagged - hits) + [place % 10 == 0 for place in range(rest)])
    return sweep(labels, np.array([1.0] * flagged + [0.0] * rest), flag_when="above")


@pytest.mark.parametrize(("hits", "flagged"), [(30, 40), (24, 40), (150, 200), (25, 25)])
def test_a_lower_target_is_reached_by_the_exact_bound_of_another_library(hits: int, flagged: int) -> None:
    low = binomtest(hits, flagged, alternative="greater").proportion_ci(0.95, method="exact").low
    lower = find_lower_target(world(hits, flagged), 0.7)
    assert lower is not None
    assert lower <= low
    assert lower + 0.05 > min(low, 0.7 - 1e-9)
    assert lower < 0.7


def test_no_target_is_offered_that_flagging_everything_nearly_has() -> None:
    assert find_lower_target(world(9, 40), 0.7) is None  # a bound of 12%, and 11% of all are hallucinated
    assert find_lower_target(world(4, 4), 0.7) is None  # nothing flags 20 labels


def test_the_labels_that_would_tell_do_so_where_the_precision_stays() -> None:
    """With that many more, as good as these, the one-sided Wilson bound reaches the target; with half it does not."""
    point = replace(GOOD, true_positives=32, false_positives=8)
    more = count_more_labels(point, bad(StateReason.MOSTLY_BELOW, figure=point.precision))
    assert more is not None
    for share, tells in ((1.1, True), (0.5, False)):
        flagged = round(40 * (300 + share * more) / 300)
        test = binomtest(round(flagged * 33 / 42), flagged, alternative="greater")
        assert (test.proportion_ci(0.95, method="wilson").low >= 0.7) == tells
    assert (
        count_more_labels(replace(GOOD, true_positives=25, false_positives=15), bad(StateReason.MOSTLY_BELOW)) is None
    )
    assert count_more_labels(point, bad(StateReason.RECHECK_FELL)) is None


def test_another_detector_is_offered_where_nothing_is_known_against_it(store: Store) -> None:
    labels = [place % 3 == 0 for place in range(240)]
    fill(store, labels, [0.5 + place / 1000 for place in range(240)])
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    give_scores(
        store, traces, [0.9 + place / 1e4 if bad else place / 1e4 for place, bad in enumerate(labels)], name=ABOVE
    )
    useless, good = (loading.load_evidence(store, name) for name in (DETECTOR, ABOVE))
    assert find_other_detector(PRECISION, [useless]) is None
    offered = find_other_detector(PRECISION, [useless, good])
    assert offered is not None
    assert offered.detector == ABOVE
    assert not state_of(good, choose_point(good, parse("precision>=0.7"))).known_bad
    # What is offered is better than what is at hand: two that hold are not offered in each other's place.
    assert state_of(good, choose_point(good, parse("precision>=0.7"))).verdict == PointVerdict.HOLDS
    assert find_other_detector(PRECISION, [good], than=PointVerdict.NOT_SHOWN) is not None
    assert find_other_detector(PRECISION, [good], than=PointVerdict.HOLDS) is None


def test_a_lower_target_that_a_dispute_may_undo_is_not_offered(store: Store) -> None:
    """Of 40 flagged answers 32 are hallucinated; then 12 of these are disputed."""
    labels = [place < 32 for place in range(40)] + [False] * 200
    fill(store, labels, [0.1] * 40 + [0.9] * 200)
    policy = parse("precision>=0.95")

    def lower() -> float | None:
        data = loading.load_evidence(store, DETECTOR)
        point = choose_point(data, policy)
        steps = find_better_steps(data, policy, point, state_of(data, point), [])
        return next((step.target for step in steps if step.kind == BetterKind.LOWER_TARGET), None)

    first = lower()
    assert first is not None
    for row in [row for row in loading.load_evidence(store, DETECTOR).rows if row.gold == "hallucinated"][:12]:
        store.labels.add(row.pk, Label("", "second", "clean"), sample_id=None, now=NOW)
    again = lower()
    assert again is None or again < first
    if again is not None:
        data = loading.load_evidence(store, DETECTOR)
        assert not state_of(data, choose_point(data, Policy("precision", again), strength="bounded")).known_bad
