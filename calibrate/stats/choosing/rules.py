"""How each policy places its cut: on the measured curve, or on each of many resampled curves.

A new policy is one entry of `RULES`, beside its spelling in `policy.py`. The entry also says what to report when no cut
meets the policy. Of those without one, `alerts` is placed on the traffic's scores, not on the labels'; `elbow` on the
smoothed curve; `manual` anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.pool import Pool
from calibrate.stats.fitting.smoothed_curve import smooth_sweep
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import FlagWhen, Unmet, UnmetReason

# A measured 0.7 summed in weights may come out as 0.6999999999999999.
SLACK = 1e-12


@dataclass(frozen=True)
class Picks:
    """The point picked on each curve, and whether it meets the policy; where none does it is the nearest."""

    index: Ints
    feasible: Bools


@dataclass(frozen=True)
class Cut:
    """A threshold in the detector's units. `unmet` says why it does not meet the policy; None where it does."""

    threshold: float
    unmet: Unmet | None = None


@dataclass(frozen=True)
class Rule:
    """How a policy picks a point of a curve, and what to report where none meets it.

    `explain` takes the curve, the policy and the index of the nearest point; None for a policy that some point always
    meets.
    """

    pick: Callable[[Curve, Policy], Picks]
    explain: Callable[[Curve, Policy, int], Unmet] | None = None


def place_cut(sweep: Sweep, policy: Policy, pool: Pool | None = None) -> Cut:
    """Place the policy's cut on a sweep; where none meets the policy, the nearest one.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    policy : Policy
        The rule that chooses a point.
    pool : Pool, optional
        The traffic, for `alerts`: its scores are the cuts, and flags are counted there.

    Returns
    -------
    Cut
        The threshold, and why it does not meet the policy where it does not.

    Raises
    ------
    BadInput
        For `alerts` without scored traffic, and for traffic without times.
    """
    if policy.kind == "manual":
        return Cut(float(policy.number))
    if policy.kind == "elbow":
        # Among equals the strictest: argmax takes the first.
        return Cut(float(sweep.thresholds[np.argmax(smooth_sweep(sweep).f1)]))
    if policy.kind == "alerts":
        return _place_alerts(sweep.flag_when, policy, pool)
    rule, curve = RULES[policy.kind], Curve.of(sweep)
    picks = rule.pick(curve, policy)
    index = int(picks.index)
    unmet = None if picks.feasible or rule.explain is None else rule.explain(curve, policy, index)
    return Cut(float(sweep.thresholds[index]), unmet)


def pick_point(curve: Curve, policy: Policy) -> Picks:
    """The policy's point on every curve; of points that serve it equally, the strictest.

    Parameters
    ----------
    curve : Curve
        One curve, or many along leading axes.
    policy : Policy
        The rule that chooses a point; any but `alerts`, `elbow` and `manual`.

    Returns
    -------
    Picks
        The point chosen on every curve, and whether it meets the policy.
    """
    return RULES[policy.kind].pick(curve, policy)


def best_point(figure: Floats) -> Picks:
    """The strictest point at which a figure is highest.

    Parameters
    ----------
    figure : array of float, shape (..., points)
        Higher is better; NaN is never best.

    Returns
    -------
    Picks
        The first of the highest on every curve.
    """
    index = _first_best([figure])
    return Picks(index, np.ones(index.shape, dtype=bool))


def _precision(curve: Curve, policy: Policy) -> Picks:
    """Most recall among the points whose precision reaches the target; or else the highest precision."""
    enough = curve.precision >= policy.number - SLACK
    return _pick_feasible(enough, [curve.recall], [curve.precision, curve.recall])


def _recall(curve: Curve, policy: Policy) -> Picks:
    """The highest precision among the points whose recall, end to end, reaches the target; or else most recall."""
    enough = curve.recall >= policy.number - SLACK
    return _pick_feasible(enough, [curve.precision, curve.recall], [curve.recall])


def _f_beta(curve: Curve, policy: Policy) -> Picks:
    return best_point(curve.f_beta(policy.number))


def _cost(curve: Curve, policy: Policy) -> Picks:
    """The lowest cost, which must not be above that of flagging nothing."""
    miss = policy.miss or 0.0
    cost = curve.cost(policy.number, miss)
    index = _first_best([-cost])
    lowest = np.take_along_axis(cost, index[..., None], -1)[..., 0]
    nothing = (miss * curve.positives / curve.n)[..., 0]
    return Picks(index, np.asarray(lowest <= nothing * (1 + SLACK)))


def _place_alerts(flag_when: FlagWhen, policy: Policy, pool: Pool | None) -> Cut:
    """The loosest of the traffic's own scores at which few enough are flagged a day; or else the strictest."""
    limit = f"{policy.number:g} a day"
    if pool is None or np.isnan(pool.scores).all():
        raise BadInput(f"flags cannot be kept to {limit}: the traffic has no scores; run the detector over it")
    if pool.per_day is None:
        raise BadInput(
            f"flags cannot be kept to {limit}: the traces carry no time; import them with one, or take another policy"
        )
    cuts = pool.cuts(flag_when)
    daily = pool.flag_rate(cuts, flag_when) * pool.per_day
    fit = int(np.count_nonzero(daily <= policy.number * (1 + SLACK)))
    if not fit:
        return Cut(float(cuts[0]), Unmet(UnmetReason.ALERTS, best=float(daily[0])))
    return Cut(float(cuts[fit - 1]))


def _no_precision(curve: Curve, policy: Policy, index: int) -> Unmet:
    return Unmet(UnmetReason.PRECISION)


def _no_recall(curve: Curve, policy: Policy, index: int) -> Unmet:
    return Unmet(UnmetReason.RECALL)


def _no_saving(curve: Curve, policy: Policy, index: int) -> Unmet:
    miss = policy.miss or 0.0
    cost = float(curve.cost(policy.number, miss)[index])
    return Unmet(UnmetReason.COST, best=cost, instead=miss * float((curve.positives / curve.n)[0]))


RULES: dict[str, Rule] = {
    "precision": Rule(_precision, _no_precision),
    "recall": Rule(_recall, _no_recall),
    "f-beta": Rule(_f_beta),
    "cost": Rule(_cost, _no_saving),
}


def _pick_feasible(enough: Bools, best: list[Floats], nearest: list[Floats]) -> Picks:
    feasible = np.asarray(enough.any(axis=-1))
    return Picks(np.where(feasible, _first_best(best, enough), _first_best(nearest)), feasible)


def _first_best(keys: list[Floats], among: Bools | None = None) -> Ints:
    """The first point with the highest first key, of equals the second ...; points run strict to loose."""
    left = ~np.isnan(keys[0]) if among is None else among
    for key in keys:
        value = np.where(left, key, -np.inf)
        top = value.max(axis=-1, keepdims=True)
        # -inf where nothing is left: then all are equal.
        left = value >= np.where(np.isfinite(top), top - SLACK * np.maximum(1.0, np.abs(top)), top)
    return np.asarray(np.argmax(left, axis=-1))
