"""Running sums over sorted scores: the inner loop of every sweep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.stats.sweep.design import Bools, Design, Floats, Ints, StratumCounts, stratum_weights


@dataclass(frozen=True)
class Sums:
    """What is flagged at every distinct key, ascending: labels, sums of weights, sums of squared weights."""

    keys: Floats
    tp_count: Ints
    fp_count: Ints
    tp: Floats
    fp: Floats
    tp_squared: Floats
    fp_squared: Floats


def count_sums(keys: Floats, y: Bools) -> Sums:
    """Unweighted sums: the number of hallucinated and of clean rows at or below every distinct key.

    Parameters
    ----------
    keys : array of float, shape (scored,)
        Scores turned so that the most suspicious is lowest.
    y : array of bool, shape (scored,)
        True for hallucinated.

    Returns
    -------
    Sums
        At every distinct key.
    """
    # Sorting values is three times as fast as sorting positions, and nothing but counts is needed.
    ordered = np.sort(keys)
    last = last_of_ties(ordered)
    distinct = ordered[last]
    hits = np.searchsorted(distinct, np.sort(keys[y]))
    tp_count = np.cumsum(np.bincount(hits, minlength=len(distinct)), dtype=np.int64)
    fp_count = last + 1 - tp_count
    tp, fp = tp_count.astype(np.float64), fp_count.astype(np.float64)
    # A weight of one is its own square.
    return Sums(distinct, tp_count, fp_count, tp, fp, tp, fp)


def weighted_sums(keys: Floats, y: Bools, weights: Floats) -> Sums:
    """Weighted sums, and the counts beside them.

    Parameters
    ----------
    keys : array of float, shape (scored,)
        Scores turned so that the most suspicious is lowest.
    y : array of bool, shape (scored,)
        True for hallucinated.
    weights : array of float, shape (scored,)
        What each label stands for.

    Returns
    -------
    Sums
        At every distinct key.
    """
    order = np.argsort(keys, kind="stable")
    ordered, hit, w = keys[order], y[order], weights[order]
    last = last_of_ties(ordered)
    tp_count = np.cumsum(hit, dtype=np.int64)[last]
    # Clean weights are summed for themselves: total minus hallucinated would be a small difference of large sums.
    on_hit, on_clean = np.where(hit, w, 0.0), np.where(hit, 0.0, w)
    return Sums(
        ordered[last],
        tp_count,
        last + 1 - tp_count,
        np.cumsum(on_hit)[last],
        np.cumsum(on_clean)[last],
        np.cumsum(on_hit * on_hit)[last],
        np.cumsum(on_clean * on_clean)[last],
    )


def last_of_ties(ordered: Floats) -> NDArray[np.intp]:
    """Ties share one threshold, so only the last row of each run is reachable.

    Parameters
    ----------
    ordered : array of float, shape (rows,)
        Ascending.

    Returns
    -------
    array of int, shape (distinct,)
        Positions.

    Examples
    --------
    >>> last_of_ties(np.array([1.0, 1.0, 2.0])).tolist()
    [1, 2]
    """
    if not len(ordered):
        return np.empty(0, dtype=np.intp)
    return np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)


def by_stratum(
    keys: Floats, y: Bools, has_score: Bools, design: Design, weights: Floats, distinct: Floats
) -> StratumCounts:
    """Flagged labels of every stratum at every distinct key.

    Rows without a score are in `y` and never flagged.

    Parameters
    ----------
    keys : array of float, shape (scored,)
        Scores of the scored rows, turned so that the most suspicious is lowest.
    y : array of bool, shape (labels,)
        True for hallucinated.
    has_score : array of bool, shape (labels,)
        Which labels have a score.
    design : Design
        How the labels were drawn.
    weights : array of float, shape (labels,)
        What each label stands for.
    distinct : array of float, shape (points,)
        The keys at which a threshold can stand, ascending.

    Returns
    -------
    StratumCounts
        Arrays of shape (strata, points).
    """
    strata = len(design.population)
    tp = np.empty((strata, len(distinct)), dtype=np.int64)
    fp = np.empty_like(tp)
    for h in range(strata):
        here = design.strata[has_score] == h
        for counts, verdict in ((tp, y[has_score]), (fp, ~y[has_score])):
            at = np.searchsorted(distinct, keys[here & verdict])
            counts[h] = np.cumsum(np.bincount(at, minlength=len(distinct)))
    flagged = tp + fp
    # All rows of a stratum have a score or none, and no threshold flags part of two; but few thresholds may do so by
    # chance, a yes or no in two strata for one.
    scored = np.bincount(design.strata[has_score], minlength=strata)[:, None]
    several = int(np.count_nonzero(scored))
    enough = several < 2 or len(distinct) > several
    apart = enough and bool((((flagged > 0) & (flagged < scored)).sum(axis=0) <= 1).all())
    return StratumCounts(
        tp=tp,
        fp=fp,
        rows=design.rows,
        positives=np.bincount(design.strata[y], minlength=strata).astype(np.int64),
        weight=stratum_weights(design, weights),
        ranked=apart and bool(((scored[:, 0] == 0) | (scored[:, 0] == design.rows)).all()),
    )


def auroc(tp: Floats, fp: Floats) -> float:
    """Area under the ROC curve by trapezoids: the chance that a hallucinated trace scores stricter, ties half.

    `tp` and `fp` are running sums, strict to loose, that end above 0.

    Parameters
    ----------
    tp, fp : array of float, shape (points,)
        Running sums of hallucinated and clean weight.

    Returns
    -------
    float
        0 to 1.
    """
    # Products are summed by numpy and not by BLAS, whose threads cost more than they bring where cores are shared.
    area = fp[0] * tp[0] + np.sum((fp[1:] - fp[:-1]) * (tp[1:] + tp[:-1]))
    return float(area / (2 * tp[-1] * fp[-1]))


def average_precision(tp: Floats, fp: Floats) -> float:
    """Sum of precision x gain in recall over the points, as scikit-learn defines it (no interpolation).

    Parameters
    ----------
    tp, fp : array of float, shape (points,)
        Running sums of hallucinated and clean weight.

    Returns
    -------
    float
        0 to 1.
    """
    precision = tp / (tp + fp)
    return float((tp[0] * precision[0] + np.sum((tp[1:] - tp[:-1]) * precision[1:])) / tp[-1])


def corners(precision: Floats, axes: tuple[Floats, ...], max_points: int) -> NDArray[np.intp]:
    """At most `max_points` indices that keep a curve's shape along each of the monotone `axes`.

    The two ends, and the best and worst precision in equal steps of every axis.

    Parameters
    ----------
    precision : array of float, shape (points,)
        The figure whose shape is kept.
    axes : tuple of array of float, shape (points,)
        Monotone axes of charts.
    max_points : int
        How many to keep at most.

    Returns
    -------
    array of int, shape (at most max_points,)
        Positions, ascending.
    """
    buckets = (max_points - 2) // (2 * len(axes))
    keep = np.zeros(len(precision), dtype=bool)
    keep[[0, -1]] = True
    for axis in axes:
        span = axis[-1] - axis[0]
        # A flat axis (no hallucinated trace was scored) has no steps.
        if span:
            step = np.minimum(((axis - axis[0]) / span * buckets).astype(np.intp), buckets - 1)
            keep[_extremes(precision, step)] = True
    return np.flatnonzero(keep)


def _extremes(values: Floats, step: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where `values` is first highest and first lowest within each run of equal `step`."""
    starts = np.append(0, np.flatnonzero(step[1:] != step[:-1]) + 1)
    size = np.diff(np.append(starts, len(step)))
    places = []
    for extreme in (np.maximum.reduceat(values, starts), np.minimum.reduceat(values, starts)):
        at = np.flatnonzero(values == np.repeat(extreme, size))
        _, first = np.unique(step[at], return_index=True)
        places.append(at[first])
    return np.concatenate(places)
