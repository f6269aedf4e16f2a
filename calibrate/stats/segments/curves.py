"""Segments' curves on labelled rows: fitted to all of them, or each row by a fit without its fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.fitting.ridge import with_one
from calibrate.stats.segments.pooling import PooledCurves, pool_curves
from calibrate.stats.segments.rows import SegmentRows
from calibrate.stats.sweep.design import Floats

FOLDS, REPEATS = 5, 4
DISTINCT, STEPS = 50, 512
"""Scores of more than DISTINCT values may be cut anywhere: at one of STEPS more places."""


@dataclass(frozen=True)
class SegmentCurves:
    """Log odds of hallucinated, never falling with the score, on a grid of suspicious scores.

    `grid` has shape (scores,), ascending; `odds` (segments with enough labels, scores); `pooled` are the coefficients.
    """

    grid: Floats
    odds: Floats
    pooled: PooledCurves

    def cut_at(self, odds: float) -> Floats:
        """The lowest score of each segment whose log odds reach `odds`; just past the grid where none does."""
        reached = self.odds >= odds
        first = np.where(reached.any(-1), reached.argmax(-1), len(self.grid))
        return np.append(self.grid, np.nextafter(self.grid[-1], np.inf))[first]


def fit_curves(rows: SegmentRows) -> SegmentCurves:
    """Fit the segments' curves to all labels.

    Parameters
    ----------
    rows : SegmentRows
        With at least one segment that has enough labels.

    Returns
    -------
    SegmentCurves
        A curve for each such segment.
    """
    features, labels, weights = _padded_rows(rows)
    pooled = pool_curves(features, labels, weights)
    grid = _grid(rows)
    return SegmentCurves(grid, _rising(pooled.each @ with_one(rows.features(grid)).T), pooled)


def odds_out_of_fold(rows: SegmentRows, *, rng: np.random.Generator, repeats: int = REPEATS) -> Floats:
    """Log odds of every modelled row by curves fitted without its fold, whole groups at a time.

    Parameters
    ----------
    rows : SegmentRows
        With at least one segment that has enough labels.
    rng : Generator
        Deals the folds.
    repeats : int
        How often the folds are dealt anew; the log odds are the mean.

    Returns
    -------
    array of float, shape (labels,)
        NaN for rows that are not modelled.
    """
    modelled, table = np.flatnonzero(rows.modelled), rows.padded
    units = np.unique(rows.units.of[modelled], return_inverse=True)[1]
    dealt = np.zeros((repeats, len(rows.labels)), dtype=np.int64)
    for repeat in range(repeats):
        dealt[repeat, modelled] = deal_folds(rows.labels[modelled], units, folds=FOLDS, rng=rng)
    features, labels, weights = _padded_rows(rows)
    fitted = dealt[:, None, table] != np.arange(FOLDS)[:, None, None]
    pooled = pool_curves(features, labels, weights * fitted)
    order = modelled[np.argsort(rows.suspicious[modelled], kind="stable")]
    odds = _rising(pooled.each @ with_one(rows.features(rows.suspicious[order])).T)
    place = (np.cumsum(rows.enough) - 1)[rows.segment[order]]
    fit, row = np.arange(repeats)[:, None], np.arange(len(order))
    result = np.full(len(rows.labels), np.nan)
    result[order] = odds[fit, dealt[:, order], place, row].mean(0)
    return result


def _padded_rows(rows: SegmentRows) -> tuple[Floats, Floats, Floats]:
    """Features, labels and weights in the layout of `pool_curves`; padding weighs nothing."""
    table = rows.padded
    used = table >= 0
    features = np.where(used[..., None], rows.features(np.where(used, rows.suspicious[table], 0.0)), 0.0)
    return features, np.where(used, rows.labels[table], False).astype(np.float64), rows.information[table] * used


def _grid(rows: SegmentRows) -> Floats:
    distinct = np.unique(rows.suspicious[rows.modelled])
    if len(distinct) <= DISTINCT:
        return distinct
    return np.union1d(distinct, np.linspace(distinct[0], distinct[-1], STEPS))


def _rising(odds: Floats) -> Floats:
    """A threshold flags all that is above it: where a curve turns down, it counts as flat."""
    return np.maximum.accumulate(odds, axis=-1)
