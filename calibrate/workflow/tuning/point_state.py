"""Whether an operating point may go out: it holds, is not shown to hold yet, or its own evidence is against it.

Saving, the Release page, the home page, the release guard and the thresholds file all take the answer from here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.orientation import flags
from calibrate.stats.choosing.chance_below_target import chance_below
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.types import Ensemble, Interval, OperatingPoint, PointState, PointVerdict, StateReason
from calibrate.workflow.evidence.evidence import Evidence

MOSTLY = 0.525
"""A chance above this is "in most cases": one in two, and the 2.5 points to which a simulated chance is worth."""
SURE = 0.05
"""A measured threshold holds where it is below its target no more often than a certificate may be."""
FEWEST = 5
"""Flagged labels below which a precision says nothing: 4 of 4 leave a 95% interval from 40 to 100%."""
WITH_TARGET = ("precision", "recall")
"""The policies that name what a figure must reach."""
WIDEST = 0.6
"""The width of a 95% interval of the precision that spans nearly everything."""


@dataclass(frozen=True)
class Counted:
    """Labels of flagged traces that were counted apart from the point's own, `hits` of them hallucinated; of all
    traffic, or of a segment (`part`)."""

    flagged: int
    hits: int
    part: str | None = None


def state_of(data: Evidence, point: OperatingPoint) -> PointState:
    """The state of a point chosen on these labels, by these labels alone."""
    return judge_point(point, chance=chance_of(data, point), disputed=count_disputed(data, point))


def goal_of(point: OperatingPoint, moved_from: str | None) -> Policy:
    """The policy that a point is judged by: its own; of one set by hand what it was moved from if that has a target."""
    policy = parse(point.policy)
    if policy.kind != "manual" or moved_from is None:
        return policy
    goal = parse(moved_from)
    return goal if goal.kind in WITH_TARGET else policy


def count_disputed(data: Evidence, point: OperatingPoint) -> int:
    """How many labels that the point flags are disputed, and so in none of its figures."""
    disputed = [row.value for row in data.undecided if row.gold == "disputed" and row.value is not None]
    return sum(bool(flags(value, point.threshold, point.flag_when)) for value in disputed)


def chance_of(data: Evidence, point: OperatingPoint, moved_from: str | None = None) -> float | None:
    """The chance that a threshold chosen by the point's policy on these labels is truly below its target; None where
    the policy has no precision, none is met, or a guarantee stands in its place. The same labels, the same chance.
    `moved_from` as for `judge_point`."""
    if point.guarantee or not point.feasible:
        return None
    return chance_below(data.sweep, goal_of(point, moved_from), rng=np.random.default_rng(0))


def judge_point(
    point: OperatingPoint,
    *,
    chance: float | None = None,
    disputed: int = 0,
    fell: Counted | None = None,
    overturned: Counted | None = None,
    moved_from: str | None = None,
) -> PointState:
    """Judge a point by what is known of it.

    `chance` is `chance_of` the point. `disputed` labels are flagged and in no figure. `fell` are the labels of a
    recheck that found this threshold below its target, `overturned` those of its certificate as they stand now.

    A precision holds where the lower end of its own interval is past the target, whatever the chance: the chance is
    that of the rule over all that it might have chosen. A policy without a target (F-beta, cost, flags a day, elbow)
    holds where the threshold is shown to flag hallucinated traces more often than clean ones, and is known bad where
    the labels show it does not. A threshold set by hand promises nothing that could hold. It is known bad by the policy
    with a target that it was `moved_from`, as moving a threshold that misses its target does not mend it: what is known
    of that policy's choice speaks against it until its own interval is past the target.
    """
    policy, goal = parse(point.policy), goal_of(point, moved_from)
    moved = goal.kind != policy.kind
    past_target = goal.kind == "precision" and (point.precision.low or 0.0) >= goal.number
    if past_target or (moved and (chance is None or chance <= MOSTLY)):
        chance = None
    flagged = Counted(point.true_positives + point.false_positives, point.true_positives)
    bad = _find_fault(point, goal, flagged, chance, disputed, fell, overturned)
    if bad is not None:
        verdict, why = PointVerdict.DO_NOT_RELEASE, bad
    elif _is_shown(point, policy, chance, past_target=past_target):
        verdict, why = PointVerdict.HOLDS, None
    else:
        verdict, why = PointVerdict.NOT_SHOWN, StateReason.UNPROVEN
    counted = {StateReason.RECHECK_FELL: fell, StateReason.OVERTURNED: overturned}.get(why) if why else None
    counted = counted or flagged
    return PointState(
        verdict=verdict,
        why=why,
        target=goal.value if goal.kind in WITH_TARGET else None,
        figure=point.recall if goal.kind == "recall" else point.precision,
        flagged=counted.flagged,
        hits=counted.hits,
        chance=None if chance is None else round(chance, 3),
        disputed=disputed,
        moved_from=str(goal) if moved else None,
        part=counted.part,
    )


def judge_ensemble(ensemble: Ensemble) -> PointState:
    """Judge an ensemble by its figures, which are out of fold. It holds where it is shown to find more than the best
    single detector. How many labels it flags is another number in every fold: where it is few, their mean is said."""
    figures, difference, data = ensemble.figures, ensemble.difference, ensemble.data
    faults = {
        StateReason.FINDS_NOTHING: not figures.recall.value,
        StateReason.FEW_FLAGGED: data.flagged is not None and data.flagged < FEWEST,
        StateReason.WIDE: _spans(figures.precision),
        StateReason.WORSE_THAN_SINGLE: difference.high is not None and difference.high < 0,
    }
    why = next((why for why, present in faults.items() if present), None)
    if why is not None:
        few = why == StateReason.FEW_FLAGGED
        flagged, hits = (round(data.flagged or 0), round(data.hits or 0)) if few else (0, 0)
        return PointState(
            PointVerdict.DO_NOT_RELEASE, why, figure=figures.precision, flagged=flagged, hits=min(flagged, hits)
        )
    if difference.low is None or difference.low <= 0:
        return PointState(PointVerdict.NOT_SHOWN, StateReason.NO_GAIN, figure=figures.precision)
    return PointState(PointVerdict.HOLDS, figure=figures.precision)


def _find_fault(
    point: OperatingPoint,
    goal: Policy,
    flagged: Counted,
    chance: float | None,
    disputed: int,
    fell: Counted | None,
    overturned: Counted | None,
) -> StateReason | None:
    """What is known against the point, the plainest evidence first."""
    certified = point.strength == "certified"
    target = goal.value if goal.kind == "precision" else None
    promised = target is not None and parse(point.policy).kind != "manual"
    faults = {
        StateReason.RECHECK_FELL: fell is not None,
        StateReason.OVERTURNED: overturned is not None,
        StateReason.UNMET: not point.feasible,
        StateReason.FINDS_NOTHING: not certified and point.recall.value == 0,
        StateReason.BELOW_TARGET: not certified and _is_below(point, goal),
        StateReason.MOSTLY_BELOW: chance is not None and chance > MOSTLY,
        StateReason.FEW_FLAGGED: point.guarantee is None and flagged.flagged < FEWEST,
        StateReason.WIDE: point.guarantee is None and _spans(point.precision),
        StateReason.NO_BETTER: not promised and _is_no_better(point),
        StateReason.DISPUTED: not certified and target is not None and _could_turn(point, target, flagged, disputed),
    }
    return next((why for why, present in faults.items() if present), None)


def _is_below(point: OperatingPoint, policy: Policy) -> bool:
    """Whether the figure that the policy is about is below its target: the labels have changed since it was chosen."""
    figure = {"precision": point.precision, "recall": point.recall}.get(policy.kind)
    return figure is not None and figure.value is not None and figure.value < policy.number - 1e-9


def _spans(precision: Interval) -> bool:
    return precision.low is not None and precision.high is not None and precision.high - precision.low > WIDEST


def _is_no_better(point: OperatingPoint) -> bool:
    recall, fpr = point.recall.value, point.fpr.value
    return recall is not None and fpr is not None and recall <= fpr


def _could_turn(point: OperatingPoint, target: float, flagged: Counted, disputed: int) -> bool:
    """Whether the point would miss its target were every disputed label that it flags clean."""
    sure = point.guarantee.bound if point.guarantee else point.precision.value
    if not disputed or sure is None:
        return False
    return sure * flagged.flagged / (flagged.flagged + disputed) < target


def _is_shown(point: OperatingPoint, policy: Policy, chance: float | None, *, past_target: bool) -> bool:
    if policy.kind == "precision":
        return point.guarantee is not None or past_target or (chance is not None and chance <= SURE)
    if policy.kind == "recall" and (point.recall.low is None or point.recall.low < policy.number):
        return False
    if policy.kind == "manual":
        return False
    recall, fpr = point.recall.low, point.fpr.high
    return recall is not None and fpr is not None and recall > fpr
