"""95% intervals of figures without a closed form, from the values they took in resamples of the labels.

The percentiles of these values are the usual interval, and too narrow where one verdict has few labels: of an AUROC of
.95 at 15 hallucinated labels they hold .81 (docs/adr/0006 has what these hold).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrate.stats.intervals.binomial_intervals import z_value
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import Interval

SURE = 0.95
EDGE = 1e-9
BEYOND = 5  # draws beyond an end: where fewer are, more of them would move it further out


@dataclass(frozen=True)
class Verdicts:
    """How many labels of either verdict there are, or groups of traces that share their sources and hold one, or as how
    many equal ones they count."""

    hallucinated: float
    clean: float

    @classmethod
    def of(cls, labels: Bools, units: Ints | None = None) -> Verdicts:
        """`units`: the number of the group that each label's trace is in, to count groups."""
        if units is None:
            return cls(int(np.count_nonzero(labels)), int(np.count_nonzero(~labels)))
        return cls(len(np.unique(units[labels])), len(np.unique(units[~labels])))

    @classmethod
    def worth(cls, labels: Bools, weights: Floats, units: Ints) -> Verdicts:
        """How many groups of equal weight they are worth (Kish)."""
        sums = (np.bincount(units[verdict], weights=weights[verdict]) for verdict in (labels, ~labels))
        return cls(*(float(each.sum() ** 2 / (each**2).sum()) for each in sums))

    @property
    def few(self) -> float:
        return min(self.hallucinated, self.clean)


def auroc_interval(value: float | None, draws: Floats, n: Verdicts) -> Interval:
    """Newcombe's score interval of an AUROC, at the size that a bootstrap implies.

    The areas from which the measured one is no further than chance takes it, by Hanley and McNeil's variance. The
    labels count for as many as make that variance the one of the draws, and for no more than they are.

    Parameters
    ----------
    value : float or None
        The area that was measured, 0 to 1.
    draws : array of float, shape (resamples,)
        Areas of the resamples, NaN where one class is missing.
    n : Verdicts
        How many labels of either verdict.

    Returns
    -------
    Interval
        0 to 1, without bounds where half of the draws say nothing.

    References
    ----------
    Newcombe, Statistics in Medicine 25 (2006). Hanley and McNeil, Radiology 143 (1982).
    """
    from scipy.optimize import brentq

    areas = _defined_draws(draws)
    if value is None or areas is None:
        return Interval(value)
    spread = float(np.var(areas))
    worth = min(1.0, _auroc_variance(value, n.hallucinated, n.clean) / spread) if spread and 0 < value < 1 else 1.0

    def beyond(area: float, z: float) -> float:
        return value - area - z * math.sqrt(_auroc_variance(area, worth * n.hallucinated, worth * n.clean))

    z = z_value(SURE)
    # At 0 and 1 there is no variance, so that both are solutions there, but not the ones that are meant.
    low = brentq(beyond, 0.0, min(value, 1 - EDGE), args=(z,)) if value > 0 else 0.0
    high = brentq(beyond, max(value, EDGE), 1.0, args=(-z,)) if value < 1 else 1.0
    return Interval(value, float(low), float(high))


def average_precision_interval(value: float | None, draws: Floats, n: Verdicts) -> Interval:
    """Interval of an average precision on the log odds, with Student's t of the rarer verdict's groups.

    Parameters
    ----------
    value : float or None
        The average precision that was measured, 0 to 1.
    draws : array of float, shape (resamples,)
        Of the resamples, NaN where one class is missing.
    n : Verdicts
        How many groups of either verdict.

    Returns
    -------
    Interval
        0 to 1, without bounds where half of the draws say nothing.

    References
    ----------
    Boyd, Eng and Page, ECML PKDD (2013).
    """
    areas = _defined_draws(draws)
    if value is None or areas is None:
        return Interval(value)
    if not 0 < value < 1:  # every hallucinated label is ranked above all clean ones: Jeffreys' bound of that share
        from scipy.special import betaincinv

        return Interval(value, float(betaincinv(n.hallucinated + 0.5, 0.5, (1 - SURE) / 2)), 1.0)
    middle, reach = np.log(value / (1 - value)), _tail_width(n.few) * float(np.std(areas)) / (value * (1 - value))
    low, high = 1 / (1 + np.exp(-(middle + np.array([-reach, reach]))))
    return Interval(value, float(low), float(high))


def percentile_interval(value: float | None, draws: Floats, n: Verdicts, *, confidence: float = SURE) -> Interval:
    """The expanded percentile interval of any other figure.

    It reaches as much further out as Student's t of the rarer verdict's number does, but no further than the `BEYOND`
    outermost draws, and it always holds the figure itself.

    Parameters
    ----------
    value : float or None
        The figure that was measured.
    draws : array of float, shape (resamples,)
        The figure in every resample, NaN where it has none.
    n : Verdicts
        How many groups of either verdict.
    confidence : float
        Above .95 for one of several that hold together.

    Returns
    -------
    Interval
        In the figure's unit, without bounds where draws are all alike or mostly missing.

    References
    ----------
    Hesterberg, The American Statistician 69 (2015).
    """
    valued = _defined_draws(draws)
    if value is None or valued is None or np.ptp(valued) == 0:
        return Interval(value)  # draws that are all alike say that labels are few, and not that the figure is certain
    out = max(_tail_share(n.few, confidence), BEYOND / len(draws))
    low, high = (float(bound) for bound in np.quantile(valued, (out, 1 - out)))
    return Interval(value, min(value, low), max(value, high))


def _defined_draws(draws: Floats) -> Floats | None:
    """The draws that have a value (not NaN); None where they are half or fewer."""
    valued = draws[~np.isnan(draws)]
    return valued if len(valued) > len(draws) / 2 else None


def _auroc_variance(area: float, hallucinated: float, clean: float) -> float:
    """The variance of an area under the ROC curve, both verdicts taken as equally many where they are weighed."""
    half = (hallucinated + clean) / 2 - 1
    return area * (1 - area) * (1 + half * ((1 - area) / (2 - area) + area / (1 + area))) / (hallucinated * clean)


def _tail_width(few: float, confidence: float = SURE) -> float:
    """Standard deviations of a bootstrap, which shows (n - 1) / n of the variance, to either side."""
    from scipy.special import stdtrit

    n = max(few, 2.0)
    return float(stdtrit(n - 1, 0.5 + confidence / 2) * np.sqrt(n / (n - 1)))


def _tail_share(few: float, confidence: float) -> float:
    """The share of a normal's draws that lies further out than that on one side."""
    from scipy.special import ndtr

    return float(ndtr(-_tail_width(few, confidence)))
