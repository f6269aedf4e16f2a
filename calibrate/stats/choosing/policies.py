"""The point that a policy chooses on a sweep, and how sure one may be of it.

`choose` is `measured`: judged on the labels that chose it. `choose_bounded` holds a lower bound of the precision, on
the same labels, against the target. A certified point comes from `certify`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.choosing.bounded import Bounded, bounded
from calibrate.stats.choosing.choosers import pick_point
from calibrate.stats.choosing.policy import POLICIES, Policy, parse
from calibrate.stats.fitting.smoothed_curve import smooth_sweep
from calibrate.stats.intervals.exact_tests import ALPHA
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import FlagWhen, Guarantee, OperatingPoint, Unmet, UnmetReason

__all__ = ["POLICIES", "NotEnoughLabels", "Policy", "Pool", "choose", "choose_bounded", "parse"]


class NotEnoughLabels(BadInput):
    """The labels cannot choose a threshold; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Pool:
    """Traffic, labelled or not: a detector's `scores`, NaN for a trace it could not score, and traces a day.

    `per_day` is None for traces without a time.
    """

    scores: Floats
    per_day: float | None

    def __post_init__(self) -> None:
        if np.isinf(self.scores).any():
            raise BadInput(f"{np.isinf(self.scores).sum()} scores are infinite: a detector that cannot score abstains")

    def flag_rate(self, thresholds: Floats, flag_when: FlagWhen) -> Floats:
        """The share of the traffic that is flagged at each threshold, 0 to 1."""
        keys = np.sort(-suspicion(self.scores[~np.isnan(self.scores)], flag_when))
        return np.searchsorted(keys, -suspicion(thresholds, flag_when), side="right") / max(len(self.scores), 1)

    def flags_a_day(self, threshold: float, flag_when: FlagWhen) -> float | None:
        """How many traces a threshold flags a day; None for traces without a time."""
        rate = float(self.flag_rate(np.array([threshold]), flag_when)[0])
        return None if self.per_day is None else rate * self.per_day


@dataclass(frozen=True)
class _Choice:
    threshold: float
    feasible: bool = True
    why: Unmet | None = None


def choose(
    sweep: Sweep, policy: Policy, *, detector: str = "", threshold: float | None = None, pool: Pool | None = None
) -> OperatingPoint:
    """The operating point that a policy picks on a sweep, `measured`.

    When no threshold meets the policy the point is the nearest one, `feasible` is False and `why` says so.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    policy : Policy
        The rule that chooses a point.
    detector : str
        Named in errors and in the point.
    threshold : float, optional
        For `manual` without a number, in the detector's units.
    pool : Pool, optional
        The traffic, for `alerts`: flags are counted there.

    Returns
    -------
    OperatingPoint
        The point chosen; the nearest one, not `feasible`, where no threshold meets the policy.

    Raises
    ------
    NotEnoughLabels
        Where a class has no scored label.
    """
    # A threshold set by hand needs no labels; what they cannot measure is then None.
    if policy.kind != "manual":
        _refuse_one_class(sweep, detector)
    elif threshold is not None:
        policy = Policy("manual", threshold)
    chooser = _APART.get(policy.kind, _by_rule)
    return _point(sweep, policy, chooser(sweep, policy, pool), detector)


def choose_bounded(sweep: Sweep, policy: Policy, *, detector: str = "", alpha: float = ALPHA) -> OperatingPoint:
    """The loosest threshold whose lower bound on precision still meets the target of a `precision` policy.

    Without one the point is where the walk began, without a guarantee, `feasible` False and with a `why`.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    policy : Policy
        A `precision` policy.
    detector : str
        Named in errors and in the point.
    alpha : float
        One-sided error of the bound, between 0 and 1.

    Returns
    -------
    OperatingPoint
        With a `bounded` guarantee, or not `feasible`.

    Raises
    ------
    BadInput
        For another policy, and for a target of 1.
    NotEnoughLabels
        Where a class has no scored label.
    """
    if policy.kind != "precision":
        raise BadInput(
            f"the policy {policy} cannot be bounded, only a precision can: write precision>=0.7, or measure it"
        )
    _refuse_one_class(sweep, detector)
    walk = bounded(sweep, policy.number, alpha=alpha)
    if not isinstance(walk, Bounded):
        # Where nothing flags enough labels to be tested, the nearest is what flags most.
        nearest = walk.thresholds[0] if len(walk.thresholds) else sweep.thresholds[-1]
        return _point(sweep, policy, _Choice(float(nearest), feasible=False, why=walk.unmet), detector)
    point = _point(sweep, policy, _Choice(walk.threshold), detector)
    guarantee = Guarantee("bounded", walk.target, 1 - alpha, walk.bound, walk.labels, point.true_positives)
    return replace(point, guarantee=guarantee)


def _refuse_one_class(sweep: Sweep, detector: str) -> None:
    if sweep.missing:
        raise NotEnoughLabels(
            f"{detector}{': ' if detector else ''}a threshold needs hallucinated and clean labels with a score: of "
            f"{sweep.n} labels {sweep.positives} are hallucinated, and {sweep.scored} have a score, "
            f"{sweep.scored_positives} of them hallucinated. Label more traces, or see why the detector abstained"
        )


def _point(sweep: Sweep, policy: Policy, choice: _Choice, detector: str) -> OperatingPoint:
    measured = figures(sweep, choice.threshold)
    return OperatingPoint(
        detector=detector,
        flag_when=sweep.flag_when,
        threshold=choice.threshold,
        policy=str(policy),
        feasible=choice.feasible,
        precision=measured.precision,
        recall=measured.recall,
        fpr=measured.fpr,
        flag_rate=measured.flag_rate,
        n=sweep.n,
        positives=sweep.positives,
        true_positives=measured.true_positives,
        false_positives=measured.false_positives,
        false_negatives=measured.false_negatives,
        true_negatives=measured.true_negatives,
        coverage=sweep.coverage or 0.0,
        why=choice.why,
    )


def _by_rule(sweep: Sweep, policy: Policy, pool: Pool | None) -> _Choice:
    """The rules that look at the measured curve alone, or with the traffic's flags a day."""
    daily = _daily(sweep, policy, pool) if policy.kind == "alerts" else None
    picked = pick_point(Curve.of(sweep), policy, daily=daily)
    at = int(picked.index)
    threshold = float(sweep.thresholds[at])
    if picked.feasible:
        return _Choice(threshold)
    return _Choice(threshold, feasible=False, why=_UNMET[policy.kind](sweep, policy, at, daily))


def _by_elbow(sweep: Sweep, _: Policy, __: Pool | None) -> _Choice:
    """The observed score at which the smoothed curve's F1 is highest; of equals the strictest."""
    return _Choice(float(sweep.thresholds[np.argmax(smooth_sweep(sweep).f1)]))


def _by_hand(sweep: Sweep, policy: Policy, _: Pool | None) -> _Choice:
    return _Choice(float(policy.number))


_APART: dict[str, Callable[[Sweep, Policy, Pool | None], _Choice]] = {"elbow": _by_elbow, "manual": _by_hand}


def _daily(sweep: Sweep, policy: Policy, pool: Pool | None) -> Floats:
    """Flags a day of the traffic at every threshold of the sweep."""
    limit = f"{policy.number:g} a day"
    if pool is None or np.isnan(pool.scores).all():
        raise BadInput(f"flags cannot be kept to {limit}: the traffic has no scores; run the detector over it")
    if pool.per_day is None:
        raise BadInput(
            f"flags cannot be kept to {limit}: the traces carry no time; import them with one, or take another policy"
        )
    return pool.flag_rate(sweep.thresholds, sweep.flag_when) * pool.per_day


def _no_precision(sweep: Sweep, policy: Policy, at: int, _: Floats | None) -> Unmet:
    return Unmet(UnmetReason.PRECISION)


def _no_recall(sweep: Sweep, policy: Policy, at: int, _: Floats | None) -> Unmet:
    return Unmet(UnmetReason.RECALL)


def _no_gain(sweep: Sweep, policy: Policy, at: int, _: Floats | None) -> Unmet:
    miss = policy.miss or 0.0
    cost = float(Curve.of(sweep).cost(policy.number, miss)[at])
    return Unmet(UnmetReason.COST, best=cost, instead=miss * (sweep.prevalence or 0.0))


def _no_silence(sweep: Sweep, policy: Policy, at: int, daily: Floats | None) -> Unmet:
    assert daily is not None
    return Unmet(UnmetReason.ALERTS, best=float(daily[at]))


_UNMET: dict[str, Callable[[Sweep, Policy, int, Floats | None], Unmet]] = {
    "precision": _no_precision,
    "recall": _no_recall,
    "cost": _no_gain,
    "alerts": _no_silence,
}
