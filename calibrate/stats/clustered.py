"""Wilson intervals as wide as a cluster bootstrap says: for shares of answers that share their sources."""

from __future__ import annotations

import numpy as np

from calibrate.stats.design import Bools, Floats, Ints
from calibrate.stats.intervals import Range, wilson
from calibrate.types import Interval


def wilson_of_draws(share: Floats, draws: Floats, most: Floats) -> Range:
    """Wilson's interval of shares at the sizes that the variance of their resampled values, shape (draws, shares), is
    worth: P (1 - P) / V, at most `most` labels. Resamples that could not say are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = share * (1 - share) / np.nanvar(draws, axis=0)
    return wilson(share, np.fmin(np.where(worth > 0, worth, np.inf), most))


def widened(figure: Interval, draws: Floats, rows: Bools, units: Ints) -> Interval:
    """A share of some `rows` (those flagged, for precision) with its interval from resampled values, shape (draws,).

    Where no resample differs, each group of rows counts as one label; `units` numbers every row's group.
    """
    if figure.value is None or not rows.any():
        return figure
    varies = bool(np.nanvar(draws) > 0)
    most = np.count_nonzero(rows) if varies else len(np.unique(units[rows]))
    bounds = wilson_of_draws(np.array([figure.value]), draws[:, None], np.array([float(most)]))
    return Interval(figure.value, float(bounds.low[0]), float(bounds.high[0]))
