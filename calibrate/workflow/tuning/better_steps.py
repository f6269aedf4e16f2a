"""What to do instead of releasing a threshold that is known to be bad, the best step first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.choosing.bounded import START, lower_bounds
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import OperatingPoint, PointState, PointVerdict, StateReason
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.tuning.operating_points import choose_point
from calibrate.workflow.tuning.point_state import state_of

STEP = 0.05
"""Targets are offered in steps of 5 points."""
SURE = 1.645
"""The normal quantile of a one-sided 95% bound."""
KNOWN_TO = 0.15
"""Half the width to which a precision without a target should be known."""
HALLUCINATED = 10
"""Hallucinated labels below which one more or less moves every figure."""
MOST_LABELS = 5_000
"""More labels than this are no advice."""


class BetterKind(StrEnum):
    """A step that serves better than releasing."""

    SETTLE = "settle"
    LOWER_TARGET = "lower target"
    OTHER_DETECTOR = "other detector"
    MORE_LABELS = "more labels"
    CERTIFY = "certify"


@dataclass(frozen=True)
class BetterStep:
    """`target`: a precision that a lower bound on these labels reaches. `other`: the point of another detector by the
    same policy. `labels`: about how many more would tell; of `SETTLE`, how many are disputed."""

    kind: BetterKind
    target: float | None = None
    other: OperatingPoint | None = None
    labels: int | None = None


def find_better_steps(
    data: Evidence, policy: Policy, point: OperatingPoint, state: PointState, others: Iterable[Evidence]
) -> tuple[BetterStep, ...]:
    """What to do instead of releasing this point, the best step first. `others`: the same labels beside the scores of
    other detectors."""
    return order_steps(
        state,
        policy,
        lower=_find_lower_that_stands(data, policy) if policy.kind == "precision" else None,
        other=find_other_detector(policy, others, than=state.verdict),
        labels=count_more_labels(point, state),
    )


def order_steps(
    state: PointState, policy: Policy, *, lower: float | None, other: OperatingPoint | None, labels: int | None
) -> tuple[BetterStep, ...]:
    """Put the steps there are in order: what could be settled today, a target these labels reach, a detector that
    reaches the target, more labels, and a certificate last, as it costs fresh labels, and is not to be had where
    nothing reaches the target. A certificate that labels have overturned is made anew first."""
    certify = BetterStep(BetterKind.CERTIFY)
    steps = []
    if state.why == StateReason.DISPUTED:
        steps.append(BetterStep(BetterKind.SETTLE, labels=state.disputed))
    if state.why == StateReason.OVERTURNED:
        steps.append(certify)
    if lower is not None:
        steps.append(BetterStep(BetterKind.LOWER_TARGET, target=lower))
    if other is not None:
        steps.append(BetterStep(BetterKind.OTHER_DETECTOR, other=other))
    if labels is not None:
        steps.append(BetterStep(BetterKind.MORE_LABELS, labels=labels))
    hopeless = state.why in (StateReason.UNMET, StateReason.FINDS_NOTHING)
    if policy.kind == "precision" and certify not in steps and not hopeless:
        steps.append(certify)
    return tuple(steps)


def find_lower_target(sweep: Sweep, target: float) -> float | None:
    """The highest target below this one, in steps of 5 points, that a lower bound on these labels reaches; None where
    flagging everything comes within 5 points of that."""
    enough = sweep.tp_count + sweep.fp_count >= START if not sweep.missing else np.zeros(0, dtype=bool)
    if not enough.any():
        return None
    reached = float(lower_bounds(sweep, only=int(np.argmax(enough)))[0])  # where the walk of `bounded` begins
    steps = min(math.floor(reached / STEP + 1e-9), math.ceil(target / STEP - 1e-9) - 1)
    lower = round(steps * STEP, 2)
    return lower if lower >= (sweep.prevalence or 0.0) + STEP else None


def _find_lower_that_stands(data: Evidence, policy: Policy) -> float | None:
    """The highest lower target whose point nothing is known against: a dispute among its flags may be."""
    lower = find_lower_target(data.sweep, policy.number)
    while lower is not None:
        point = choose_point(data, Policy("precision", lower), strength="bounded")
        if not state_of(data, point).known_bad:
            return lower
        lower = round(lower - STEP, 2)
        if lower < (data.sweep.prevalence or 0.0) + STEP:
            return None
    return None


def find_other_detector(
    policy: Policy, others: Iterable[Evidence], *, than: PointVerdict = PointVerdict.DO_NOT_RELEASE
) -> OperatingPoint | None:
    """Of the detectors whose point by this policy has a better verdict, that which finds most. So no two detectors are
    offered in each other's place."""
    best: OperatingPoint | None = None
    for data in others:
        if policy.kind in ("manual", "alerts") or data.sweep.missing:
            continue
        try:
            point = choose_point(data, policy)
        except BadInput:
            continue
        better = best is None or (point.recall.value or 0.0) > (best.recall.value or 0.0)
        if better and point.feasible and _RANKS[state_of(data, point).verdict] > _RANKS[than]:
            best = point
    return best


def count_more_labels(point: OperatingPoint, state: PointState) -> int | None:
    """About how many more labels would tell: until HALLUCINATED of them are likely to be, and then until Wilson's bound
    of the precision that the flagged ones show reaches the target, or without a target until it is known to +/- 15
    points. None where no number is likely to.

    The precision is drawn towards one half by two labels (Agresti and Coull 1998), so that 5 of 5 is not 100%.
    """
    flagged, n = point.true_positives + point.false_positives, point.n
    if 0 < point.positives < HALLUCINATED:
        return math.ceil((HALLUCINATED - point.positives) * n / point.positives)
    if not flagged or state.why not in _LABELS_TELL:
        return None
    precision = (point.true_positives + 1) / (flagged + 2)
    target = state.target if state.figure == point.precision else None
    gap = KNOWN_TO if target is None else precision - target
    if gap <= 0:
        return None
    at = precision if target is None else target  # Wilson's bound has the variance of the bound itself
    needed = SURE**2 * at * (1 - at) / gap**2
    more = math.ceil((needed - flagged) * n / flagged)
    return more if 0 < more <= MOST_LABELS else None


_RANKS = {PointVerdict.DO_NOT_RELEASE: 0, PointVerdict.NOT_SHOWN: 1, PointVerdict.HOLDS: 2}
_LABELS_TELL = {StateReason.MOSTLY_BELOW, StateReason.FEW_FLAGGED, StateReason.WIDE, StateReason.UNPROVEN}
