"""The rate of a verdict in each category, out of fold: what a category alone says of a label."""

from __future__ import annotations

import numpy as np

from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.sweep.design import Bools, Floats, Ints

FOLDS = 5


def rate_categories(
    labels: Bools, categories: Ints, *, weights: Floats, units: Ints, rng: np.random.Generator, folds: int = FOLDS
) -> Floats:
    """Give each label how much more often its category is hallucinated than all are, by the labels of other folds.

    A category's rate is drawn towards the common one by its number of labels and by how far categories differ beyond
    chance: one of which a fold holds few labels says little, and categories that do not differ say nothing (all 0).
    Whole groups are left out, so that no label has a part in its own rate. The deviation is taken from the common rate
    of the same folds, as that one is the lower the more of the hallucinated labels are left out.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    categories : array of int, shape (labels,)
        The code of each label's category, below 0 where it is not known.
    weights : array of float, shape (labels,)
        How many traces of the traffic each label stands for.
    units : array of int, shape (labels,)
        The group of every label, numbered from 0.
    rng : Generator
        Deals the folds.
    folds : int
        How many.

    Returns
    -------
    array of float, shape (labels,)
        -1 to 1; NaN where the category is not known.

    References
    ----------
    DerSimonian and Laird, Controlled Clinical Trials 7 (1986): the variance between categories. Micci-Barreca, SIGKDD
    Explorations 3 (2001): a category's rate as a predictor.
    """
    rates = np.full(len(labels), np.nan)
    rows = np.flatnonzero(categories >= 0)
    if not len(rows):
        return rates
    y, codes, w = labels[rows], categories[rows], weights[rows]
    own_units = np.unique(units[rows], return_inverse=True)[1].astype(np.int64)
    fold = deal_folds(y, own_units, folds=folds, rng=rng)
    many = int(codes.max()) + 1
    for left_out in range(folds):
        fitted, judged = fold != left_out, fold == left_out
        rates[rows[judged]] = _shrink(y[fitted], codes[fitted], w[fitted], many)[codes[judged]]
    return rates


def _shrink(labels: Bools, codes: Ints, weights: Floats, many: int) -> Floats:
    """Each category's deviation from the common rate, drawn towards 0."""
    if not len(labels):
        return np.zeros(many)
    total = np.bincount(codes, weights, many)
    squares = np.bincount(codes, weights**2, many)
    n = np.divide(total**2, squares, out=np.zeros(many), where=squares > 0)  # labels of equal weight (Kish)
    common = float(np.average(labels, weights=weights))
    rate = np.divide(np.bincount(codes, weights * labels, many), total, out=np.full(many, common), where=total > 0)
    variance = common * (1 - common)
    spread = n.sum() - (n**2).sum() / n.sum()
    if variance == 0 or spread <= 0:
        return np.zeros(many)
    excess = float((n * (rate - common) ** 2).sum()) - (np.count_nonzero(n) - 1) * variance
    between = max(0.0, excess / spread)
    shrunk: Floats = n * between / (n * between + variance) * (rate - common)
    return shrunk
