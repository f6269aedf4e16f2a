"""Two-sided intervals of a share measured on n labels, fractions of a label allowed: Wilson's and Jeffreys'."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.sweep.design import Floats

RARE = 3  # up to so many labels on one side, their count is nearly Poisson


@dataclass(frozen=True)
class Range:
    """Lower and upper bounds, one pair per point; NaN where the figure itself is unknown."""

    low: Floats
    high: Floats


def z_value(confidence: float) -> float:
    """The normal quantile of a two-sided interval: 1.96 for 0.95.

    Parameters
    ----------
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    float
        Standard deviations.

    Raises
    ------
    BadInput
        For a confidence outside 0 to 1.

    Examples
    --------
    >>> round(z_value(0.95), 2)
    1.96
    """
    if not 0 < confidence < 1:
        raise BadInput(f"confidence {confidence} must lie between 0 and 1, 0.95 for instance")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(share: Floats, n: Floats, *, confidence: float = 0.95) -> Range:
    """Wilson's score interval of a share measured on `n` labels, effective sizes (fractions) allowed.

    Where at most `RARE` labels fall on one side, that side's bound is the Poisson one if it is further out (Brown, Cai
    and DasGupta, Statistical Science 16, 2001, section 4.1.1): of 15 labels from a share of .99, Wilson's own interval
    leaves out the truth whenever one of them is clean.

    Parameters
    ----------
    share : array of float, shape (points,)
        Measured shares, 0 to 1, NaN where unknown.
    n : array of float, shape (points,)
        Labels behind each, fractions allowed.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Range
        Shares, one pair per point.

    References
    ----------
    Wilson, Journal of the American Statistical Association 22 (1927). Brown, Cai and DasGupta, Statistical Science 16
    (2001).
    """
    z2 = z_value(confidence) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (share + z2 / (2 * n)) / (1 + z2 / n)
        half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = np.fmin(centre - half, _poisson_lower_bound(share, n, confidence))
    high = np.fmax(centre + half, 1 - _poisson_lower_bound(1 - share, n, confidence))
    # Rounding must not push a bound past the figure or past 0 and 1.
    return Range(np.clip(low, 0.0, share), np.clip(high, share, 1.0))


def _poisson_lower_bound(share: Floats, n: Floats, confidence: float) -> Floats:
    """The Poisson lower bound of a share that few labels are behind; NaN where they are more, or none."""
    from scipy.special import gammaincinv

    bounds = np.full(np.broadcast(share, n).shape, np.nan)
    count = share * n
    rare = (count > 0) & (count <= RARE + 1e-9) & (share < 0.5)  # (1 - 6 / 9) * 9 is a hair above 3
    bounds[rare] = gammaincinv(count[rare], 1 - confidence) / np.broadcast_to(n, bounds.shape)[rare]
    return bounds


def jeffreys(share: Floats, n: Floats, *, confidence: float = 0.95) -> Range:
    """Jeffreys' equal-tailed interval of a share: from 0 where it is 0, to 1 where it is 1.

    Parameters
    ----------
    share : array of float, shape (points,)
        Measured shares, 0 to 1, NaN where unknown.
    n : array of float, shape (points,)
        Labels behind each, fractions allowed.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Range
        Shares, one pair per point.

    References
    ----------
    Brown, Cai and DasGupta, Statistical Science 16 (2001).
    """
    from scipy.special import betaincinv

    part, rest = n * share + 0.5, n * (1 - share) + 0.5
    low, high = (betaincinv(part, rest, chance) for chance in (0.5 - confidence / 2, 0.5 + confidence / 2))
    low, high = np.where(share == 0, 0.0, np.fmin(low, share)), np.where(share == 1, 1.0, np.fmax(high, share))
    unknown = np.isnan(share)
    return Range(np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))
