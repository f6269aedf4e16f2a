"""The `bounded` strength of a precision target: a lower bound at least as high as the target, on the labels at hand.

The bound is Korn and Graubard's (Survey Methodology 24, 1998): Clopper and Pearson's at the effective sample size that
the design leaves, one-sided. The walk tests cuts from strict to loose and stops at the first that fails. Approximate:
the weights make the bound inexact, and the labels that choose the cut are the labels that judge it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.exact_tests import ALPHA, walk_down
from calibrate.stats.intervals.variance import precision_ratio, variance
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Missing, Sweep
from calibrate.types import Unmet, UnmetReason

START = 20
"""Flagged labels at the strictest cut that is tested: fewer cannot pass unless all but one or two are hallucinated."""


@dataclass(frozen=True)
class Bounded:
    """The loosest cut the walk passed: `threshold` in the detector's units, whose precision is at least `bound`.

    `labels` are flagged at it. `thresholds` and `bounds` are the whole walk, from its start to where it failed.
    """

    threshold: float
    bound: float
    labels: int
    target: float
    alpha: float
    thresholds: Floats
    bounds: Floats


@dataclass(frozen=True)
class NotBounded:
    """No cut's bound reaches the target, or (`missing`) the labels make no sweep. Never a threshold.

    `labels` are flagged at the nearest cut, with the measured `precision`: the first that was tested, else the loosest.
    """

    unmet: Unmet
    missing: Missing | None
    labels: int
    precision: float | None
    target: float
    alpha: float
    thresholds: Floats
    bounds: Floats


def bounded(sweep: Sweep, target: float, *, alpha: float = ALPHA) -> Bounded | NotBounded:
    """Walk a sweep's cuts, strict to loose, from the first with START flagged labels while the bound is >= `target`.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    target : float
        The precision to meet, between 0 and 1.
    alpha : float
        One-sided error of each bound, between 0 and 1.

    Returns
    -------
    Bounded or NotBounded
        The loosest cut that passed, or why none did; never a threshold then.

    Raises
    ------
    BadInput
        For a target outside 0 to 1.

    References
    ----------
    Korn and Graubard, Survey Methodology 24 (1998).
    """
    if not 0 < target < 1:
        raise BadInput(f"no labels show a precision of {target:g}: the target must lie between 0 and 1, like 0.7")
    flagged = sweep.tp_count + sweep.fp_count
    enough = flagged >= START
    nothing = np.empty(0)
    if sweep.missing or not enough.any():
        most = int(flagged[-1]) if len(flagged) else 0
        return NotBounded(Unmet(UnmetReason.FEW_FLAGGED), sweep.missing, most, None, target, alpha, nothing, nothing)
    bounds = lower_bounds(sweep, alpha=alpha)
    # A walk in bounds instead of p-values: what fails is a bound below the target.
    last = int(walk_down(-bounds[None], enough[None], -target)[0])
    first = int(np.argmax(enough))
    seen = slice(first, min(max(last, first - 1) + 2, len(sweep)))
    thresholds, walked = sweep.thresholds[seen], bounds[seen]
    if last < 0:
        unmet, best = Unmet(UnmetReason.BOUND, best=float(walked[0])), float(sweep.precision[first])
        return NotBounded(unmet, None, int(flagged[first]), best, target, alpha, thresholds, walked)
    at = float(sweep.thresholds[last])
    return Bounded(at, float(bounds[last]), int(flagged[last]), target, alpha, thresholds, walked)


def lower_bounds(sweep: Sweep, *, alpha: float = ALPHA, only: int | None = None) -> Floats:
    """One-sided Korn-Graubard lower bound of the precision at every point; without weights Clopper-Pearson's, exactly.

    n* = min(flagged, P (1 - P) / V) x (t with flagged - 1 / t with flagged - strata degrees of freedom)^2.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    alpha : float
        One-sided error, between 0 and 1.
    only : int, optional
        The one point to bound: a million inverse beta functions take seconds.

    Returns
    -------
    array of float, shape (points,) or (1,)
        Lower bounds of precision, 0 to 1.

    References
    ----------
    Korn and Graubard, Survey Methodology 24 (1998).
    """
    from scipy.special import betaincinv, stdtrit

    ratio = precision_ratio(sweep)
    n, p = np.asarray(ratio.labels, dtype=np.float64), ratio.value
    spread = variance(sweep, ratio)
    kish = ratio.kish
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where(spread > 0, p * (1 - p) / spread, kish)
    strata = np.ones(len(sweep)) if ratio.whole is None else np.count_nonzero(ratio.whole, axis=0)
    if only is not None:
        n, p, effective, strata = (figure[only : only + 1] for figure in (n, p, effective, strata))
    freedom = np.maximum(n - strata, 1.0)
    shrink = (stdtrit(np.maximum(n - 1, 1.0), 1 - alpha) / stdtrit(freedom, 1 - alpha)) ** 2
    effective = np.minimum(effective, n) * np.minimum(shrink, 1.0)
    hits = effective * p
    bound = betaincinv(np.maximum(hits, 1e-12), effective - hits + 1, alpha)
    return np.where(hits > 0, bound, 0.0)
