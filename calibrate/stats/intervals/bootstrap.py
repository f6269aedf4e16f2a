"""The bootstrap: how far a figure would move had other traces been labelled.

Labels are drawn again within the strata of their sample, as many in each as it has (Efron and Tibshirani 1993, ch. 8).
Traces that share their sources err together, so whole groups of them are drawn, as many as there are (the cluster
bootstrap, Field and Welsh 2007): within strata where every group lies in one stratum, else over all of them. Either way
a row keeps its weight. A stratum of n rows shows (n - 1) / n of its variance; `intervals` has all of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.stats.sweep.cumulative import last_of_ties
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Bools, Floats, Ints

RESAMPLES = 2000
BLOCK = 100_000  # weights held at once: what a processor's cache holds


@dataclass(frozen=True)
class Units:
    """What is drawn, as many as there are: rows, or groups of them. `of` gives each row's unit, numbered stratum by
    stratum; `sizes` are the units of each stratum."""

    of: Ints
    sizes: Ints

    @classmethod
    def among(cls, groups: Sequence[Hashable], strata: Ints | None = None) -> Units:
        """`groups`: a row's group, None for a group of its own. `strata`: a code per row."""
        numbers: dict[Hashable, int] = {}
        group = np.array(
            [numbers.setdefault(("", i) if g is None else ("g", g), len(numbers)) for i, g in enumerate(groups)]
        )
        return cls.of_codes(group.astype(np.int64), strata)

    @classmethod
    def of_codes(cls, group: Ints, strata: Ints | None = None) -> Units:
        """The same for groups numbered from 0."""
        many = int(group.max(initial=-1)) + 1
        if strata is None or not len(group):
            return cls(group, np.array([many]))
        home = np.zeros(many, dtype=np.int64)
        home[group] = strata
        if np.any(home[group] != strata):
            return cls(group, np.array([many]))
        place = np.empty(many, dtype=np.int64)
        place[np.argsort(home, kind="stable")] = np.arange(many)
        return cls(place[group], np.bincount(home))


def draw_counts(units: Units, count: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Draw how often each row is in every resample, some resamples at a time.

    Parameters
    ----------
    units : Units
        What is drawn.
    count : int
        How many resamples.
    rng : Generator
        Source of the random draws.

    Yields
    ------
    array of int, shape (resamples, rows)
        Some resamples at a time.
    """
    many, rows = int(units.sizes.sum()), len(units.of)
    size, start = np.repeat(units.sizes, units.sizes), np.repeat(np.cumsum(units.sizes) - units.sizes, units.sizes)
    step = max(1, BLOCK // max(rows, 1))
    for begun in range(0, count, step):
        block = min(step, count - begun)
        picks = (rng.random((block, many)) * size).astype(np.int64) + start + np.arange(block)[:, None] * many
        yield np.bincount(picks.ravel(), minlength=block * many).reshape(block, many)[:, units.of]


def weighted_auroc(labels: Bools, scores: Floats, weights: Floats) -> Floats:
    """Area under the ROC curve for each row of weights; NaN where a row holds one class only.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Finite, higher is more suspicious.
    weights : array of float, shape (rows, labels)
        What each label counts, a row per area.

    Returns
    -------
    array of float, shape (rows,)
        Areas, 0 to 1.
    """
    return Order.of(-scores, labels).areas(weights).auroc


@dataclass(frozen=True)
class Order:
    """Scored rows from strict to loose. `last` are the rows at which a threshold can stand: ties share one."""

    rows: NDArray[np.intp]
    hit: Bools
    last: NDArray[np.intp]

    @classmethod
    def of(cls, keys: Floats, y: Bools) -> Order:
        """`keys` ascend from strict to loose; rows with NaN are left out."""
        rows = np.argsort(keys, kind="stable")[: len(keys) - np.count_nonzero(np.isnan(keys))]
        return cls(rows, y[rows], last_of_ties(keys[rows]))

    def curve(self, weights: Floats, positives: Floats, n: Floats) -> Curve:
        """The curve of every row of `weights`, shape (resamples, rows)."""
        w = weights[:, self.rows]
        tp, fp = np.cumsum(w * self.hit, axis=1), np.cumsum(w * ~self.hit, axis=1)
        if len(self.last) < len(self.rows):
            tp, fp = tp[:, self.last], fp[:, self.last]
        return Curve(tp, fp, positives, n)

    def areas(self, weights: Floats) -> Areas:
        return Areas.under(self.curve(weights, np.zeros(1), np.zeros(1)))


@dataclass(frozen=True)
class Areas:
    """AUROC and average precision of every resample's scored rows; NaN where a class has none."""

    auroc: Floats
    average_precision: Floats

    @classmethod
    def under(cls, curve: Curve, *, reach: float = 1.0) -> Areas:
        """`reach`: how far into the rows that share a threshold precision is read; to their end where they are ties, to
        their middle (0.5) where they only share a bin."""
        tp, fp = curve.tp, curve.fp
        if not tp.shape[-1]:
            return cls(np.full(len(tp), np.nan), np.full(len(tp), np.nan))
        whole, wrong = tp[:, -1], fp[:, -1]
        gained = np.diff(tp, axis=1, prepend=0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            # Twice what lies above the ROC curve: the clean weight flagged before each hallucinated row, ties half.
            above = np.einsum("ij,ij->i", gained, fp) + np.einsum("ij,ij->i", gained[:, 1:], fp[:, :-1])
            # Before the first drawn row nothing is flagged and nothing gained.
            hits, flagged = tp, tp + fp
            if reach < 1:
                hits, flagged = (
                    hits - (1 - reach) * gained,
                    flagged - (1 - reach) * np.diff(flagged, axis=1, prepend=0.0),
                )
            average = np.einsum("ij,ij->i", gained, hits / np.where(flagged > 0, flagged, 1.0)) / whole
            return cls(1 - above / (2 * whole * wrong), np.where(wrong > 0, average, np.nan))
