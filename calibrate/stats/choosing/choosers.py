"""Where a policy's rule puts the threshold: on the measured curve, or on each of many resampled ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrate.stats.choosing.policy import Policy
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Bools, Floats, Ints

# A measured 0.7 summed in weights may come out as 0.6999999999999999.
SLACK = 1e-12


@dataclass(frozen=True)
class Picks:
    """The point picked on each curve, and whether it meets the policy; where none does it is the nearest."""

    index: Ints
    feasible: Bools


def pick_point(curve: Curve, policy: Policy, *, daily: Floats | None = None) -> Picks:
    """The policy's point on every curve; of points that serve it equally, the strictest.

    Parameters
    ----------
    curve : Curve
        One curve, or many along leading axes.
    policy : Policy
        The rule that chooses a point.
    daily : array of float, shape (points,), optional
        Flags a day at every point, for `alerts`.

    Returns
    -------
    Picks
        The point chosen on every curve, and whether it meets the policy.
    """
    return RULES[policy.kind](curve, policy, daily)


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


def _precision(curve: Curve, policy: Policy, _: Floats | None) -> Picks:
    """Most recall among the points whose precision reaches the target; or else the highest precision."""
    enough = curve.precision >= policy.number - SLACK
    return _either(enough, [curve.recall], [curve.precision, curve.recall])


def _recall(curve: Curve, policy: Policy, _: Floats | None) -> Picks:
    """The highest precision among the points whose recall, end to end, reaches the target; or else most recall."""
    enough = curve.recall >= policy.number - SLACK
    return _either(enough, [curve.precision, curve.recall], [curve.recall])


def _f_beta(curve: Curve, policy: Policy, _: Floats | None) -> Picks:
    return best_point(curve.f_beta(policy.number))


def _cost(curve: Curve, policy: Policy, _: Floats | None) -> Picks:
    """The lowest cost, which must not be above that of flagging nothing."""
    miss = policy.miss or 0.0
    cost = curve.cost(policy.number, miss)
    index = _first_best([-cost])
    lowest = np.take_along_axis(cost, index[..., None], -1)[..., 0]
    nothing = (miss * curve.positives / curve.n)[..., 0]
    return Picks(index, np.asarray(lowest <= nothing * (1 + SLACK)))


def _alerts(curve: Curve, policy: Policy, daily: Floats | None) -> Picks:
    """Most recall among the points that flag few enough a day; or else the strictest of all."""
    assert daily is not None
    enough = np.broadcast_to(daily <= policy.number * (1 + SLACK), curve.tp.shape)
    return _either(enough, [curve.recall], [-np.broadcast_to(daily, curve.tp.shape)])


RULES: dict[str, Callable[[Curve, Policy, Floats | None], Picks]] = {
    "precision": _precision,
    "recall": _recall,
    "f-beta": _f_beta,
    "cost": _cost,
    "alerts": _alerts,
}


def _either(enough: Bools, best: list[Floats], nearest: list[Floats]) -> Picks:
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
