"""Two rankings of the same labels: how far apart they are, and how sure one may be of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from calibrate.errors import BadInput
from calibrate.stats.cumulate import last_of_ties
from calibrate.stats.design import Bools, Floats, check_weights
from calibrate.types import FlagWhen, Interval

RESAMPLES = 2000
CELLS = 2_000_000  # weights held at once: 16 MB
_NOTHING = Interval(None)


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well scores tell hallucinated from clean, threshold aside; both from 0 to 1."""

    auroc: float
    average_precision: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of scores on the same `n` labels, `positives` of them hallucinated, in `clusters` groups of traces.

    `auroc` and `average_precision` are the differences, second minus first, with their 95% interval; above 0 the second
    ranks better. Bounds are None where the labels are too few or too alike to say. `missing` says why there are no
    figures at all.
    """

    n: int
    positives: int
    clusters: int
    first: Ranking | None = None
    second: Ranking | None = None
    auroc: Interval = _NOTHING
    average_precision: Interval = _NOTHING
    missing: str | None = None


def compare(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    rng: Generator,
    flag_when: FlagWhen = "above",
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two sets of scores of the same labelled traces by a paired bootstrap.

    `labels` are True for hallucinated; both scores are finite and in the detector's units. `clusters` names the group
    of every trace (traces that share their sources err together); default: each its own. Whole groups are drawn with
    replacement, the same ones for both scores, and the interval is the 2.5% to 97.5% percentiles of the difference
    (Efron & Tibshirani 1993, ch. 13; Field & Welsh 2007 for clusters). Draws without both classes are left out; when
    they are half or more, there is no interval. `weights` as for a sweep.
    """
    y, scores = _checked(labels, first, second)
    given = check_weights(weights, None, len(y))
    w = np.ones(len(y)) if given is None else given
    names = np.arange(len(y)) if clusters is None else np.asarray(clusters)
    if names.shape != y.shape:
        raise BadInput(f"{names.size} clusters for {len(y)} labels: give one per label")
    group = np.unique(names, return_inverse=True)[1]
    n, positives, many = len(y), int(y.sum()), int(group.max(initial=-1)) + 1
    if not 0 < positives < n:
        what = f"all {n} labels that both scored are of one kind" if n else "no label has a score of both"
        return Comparison(n, positives, many, missing=f"{what}; a comparison needs hallucinated and clean ones")
    orders = [_Order.of(-one if flag_when == "above" else one, y) for one in scores]
    here = [Ranking(*(float(figure[0]) for figure in order.figures(w[None, :]))) for order in orders]
    differences = np.concatenate(
        [
            np.stack(orders[1].figures(some)) - np.stack(orders[0].figures(some))
            for some in drawn(group, w, resamples, rng)
        ],
        axis=1,
    )
    return Comparison(
        n,
        positives,
        many,
        first=here[0],
        second=here[1],
        auroc=_interval(here[1].auroc - here[0].auroc, differences[0]),
        average_precision=_interval(here[1].average_precision - here[0].average_precision, differences[1]),
    )


def drawn(group: NDArray[np.intp], weights: Floats, resamples: int, rng: Generator) -> Iterator[Floats]:
    """The rows' weights in every resample, some resamples (rows of the array) at a time. `group` numbers the clusters
    from 0: as many are drawn as there are."""
    many = int(group.max()) + 1
    step = max(1, CELLS // max(len(group), 1))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        picks = rng.integers(many, size=(size, many)) + np.arange(size)[:, None] * many
        times = np.bincount(picks.ravel(), minlength=size * many).reshape(size, many)
        yield times[:, group] * weights


@dataclass(frozen=True)
class _Order:
    """Rows from strict to loose. `last` are the rows at which a threshold can stand: ties share one."""

    rows: NDArray[np.intp]
    hit: Bools
    last: NDArray[np.intp]

    @classmethod
    def of(cls, keys: Floats, y: Bools) -> _Order:
        rows = np.argsort(keys, kind="stable")
        return cls(rows, y[rows], last_of_ties(keys[rows]))

    def figures(self, weights: Floats) -> tuple[Floats, Floats]:
        """AUROC and average precision for every row of `weights`; NaN where a class has none."""
        w = weights[:, self.rows]
        tp = np.cumsum(np.where(self.hit, w, 0.0), axis=1)[:, self.last]
        fp = np.cumsum(np.where(self.hit, 0.0, w), axis=1)[:, self.last]
        gained, lost = np.diff(tp, axis=1, prepend=0.0), np.diff(fp, axis=1, prepend=0.0)
        whole, wrong = tp[:, -1], fp[:, -1]
        with np.errstate(invalid="ignore", divide="ignore"):
            auroc = np.sum(lost * (tp - gained / 2), axis=1) / (whole * wrong)
            # Before the first drawn row nothing is flagged and nothing gained.
            precision = tp / np.where(tp + fp > 0, tp + fp, 1.0)
            average = np.where(wrong > 0, np.sum(gained * precision, axis=1) / whole, np.nan)
        return auroc, average


def _interval(value: float, differences: Floats) -> Interval:
    known = differences[~np.isnan(differences)]
    if len(known) <= len(differences) / 2:
        return Interval(value)
    low, high = np.percentile(known, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def _checked(labels: ArrayLike, first: ArrayLike, second: ArrayLike) -> tuple[Bools, tuple[Floats, Floats]]:
    y = np.asarray(labels, dtype=bool)
    scores = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    for one in scores:
        if y.ndim != 1 or one.shape != y.shape:
            raise BadInput(f"{y.size} labels and {one.size} scores: give one of each set per label")
        if not np.isfinite(one).all():
            raise BadInput("a score is missing or infinite: leave out the traces that not both could score")
    return y, scores
