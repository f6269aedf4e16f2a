"""Folds of cross-validation: whole groups of traces, with the hallucinated labels shared out evenly."""

from __future__ import annotations

import numpy as np

from calibrate.stats.sweep.design import Bools, Ints


def deal_folds(labels: Bools, units: Ints, *, folds: int, rng: np.random.Generator) -> Ints:
    """Deal labels out to folds, whole groups at a time.

    Each group goes to the fold with the fewest hallucinated labels, or a clean group to the one with the fewest labels;
    those with most of either are dealt first. scikit-learn's StratifiedGroupKFold does the same more slowly
    (docs/adr/dependencies.md).

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    units : array of int, shape (labels,)
        The group of every label, numbered from 0: traces that share their sources.
    folds : int
        How many folds, at least 2.
    rng : Generator
        Breaks ties.

    Returns
    -------
    array of int, shape (labels,)
        The fold of every label, 0 to `folds` - 1.
    """
    many = int(units.max(initial=-1)) + 1
    hits, rows = np.bincount(units, weights=labels, minlength=many), np.bincount(units, minlength=many)
    order = np.lexsort((rng.random(many), -rows, -hits))
    dealt = np.empty(many, dtype=np.int64)
    if rows.max(initial=0) <= 1:  # single traces go round in turn
        dealt[order] = np.arange(many) % folds
        return dealt[units]
    held = [[0.0, 0.0, chance] for chance in rng.random(folds)]
    for unit in order:
        first = 0 if hits[unit] else 1
        fold = min((held[fold][first:], fold) for fold in range(folds))[1]
        held[fold][0] += hits[unit]
        held[fold][1] += rows[unit]
        dealt[unit] = fold
    return dealt[units]
