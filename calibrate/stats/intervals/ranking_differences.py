"""Two rankings of the same labels: how far apart they are, and how sure one may be of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.intervals import bootstrap_intervals
from calibrate.stats.intervals.bootstrap import RESAMPLES, Areas, Order, Units, draw_counts
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Floats, Ints, check_weights
from calibrate.stats.sweep.sweep import Missing, missing_of
from calibrate.types import FlagWhen, Interval

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
    missing: Missing | None = None


def compare_rankings(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    rng: Generator,
    flag_when: FlagWhen = "above",
    second_flag_when: FlagWhen | None = None,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    strata: Ints | None = None,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two sets of scores of the same labelled traces by a paired bootstrap.

    `labels` are True for hallucinated; both scores are finite and in the detector's units; `second_flag_when` is for a
    second detector whose suspicious side is another. `clusters` names the group of every trace (traces that share their
    sources err together); default: each its own. Whole groups are drawn, the same ones for both scores (Field and Welsh
    2007); the interval of the difference is that of `resampled.figure`. Draws without both classes are left out; when
    they are half or more, there is no interval. `weights` as for a sweep, `strata` a code per label that says which
    were drawn together: a hallucinated label that was not seen may speak against either (`unseen_positives`).
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
        return Comparison(n, positives, many, missing=missing_of(n, positives, n, positives))
    sides = flag_when, second_flag_when or flag_when
    keys = [-suspicion(values, side) for values, side in zip(scores, sides, strict=True)]
    here = [Order.of(one, y).areas(w[None, :]) for one in keys]
    units = Units.of_codes(group.astype(np.int64), strata)
    unseen = Unseen.of(y, given, units, strata)
    if unseen is None:
        verdicts = bootstrap_intervals.Verdicts.of(y, group)
        low = _under(keys, y, (times * w for times in draw_counts(units, resamples, rng)))
        high = low
    else:
        verdicts = bootstrap_intervals.Verdicts.worth(y, w, group)
        first_place, second_place = (_placed(one, y, w) for one in keys)
        low, high = (
            _under([one[end.rows] for one in keys], end.labels, end.drawn(resamples, rng))
            for end in unseen.leaning(second_place - first_place)
        )
    places = [np.unique(one, return_inverse=True)[1] for one in keys]
    alike = np.array_equal(places[0], places[1])
    nothing = Interval(0.0, 0.0, 0.0)  # of two scores that rank all traces alike, whatever is drawn
    return Comparison(
        n,
        positives,
        many,
        first=_ranking(here[0]),
        second=_ranking(here[1]),
        auroc=nothing if alike else _difference("auroc", here, low, high, verdicts),
        average_precision=nothing if alike else _difference("average_precision", here, low, high, verdicts),
    )


def _ranking(areas: Areas) -> Ranking:
    return Ranking(float(areas.auroc[0]), float(areas.average_precision[0]))


def _placed(keys: Floats, y: Bools, w: Floats) -> Floats:
    """The share of the clean traces that is less suspicious than each trace, ties half: 0 to 1."""
    order = np.argsort(keys[~y], kind="stable")
    clean, more = keys[~y][order], np.append(0.0, np.cumsum(w[~y][order]))
    stricter = (more[np.searchsorted(clean, keys, "left")] + more[np.searchsorted(clean, keys, "right")]) / 2
    return np.asarray(1 - stricter / more[-1])


def _under(keys: Sequence[Floats], y: Bools, weights: Iterator[Floats]) -> list[Areas]:
    """The areas of either ranking in every resample, whose weights come some at a time."""
    orders = [Order.of(one, y) for one in keys]
    parts = [[order.areas(some) for order in orders] for some in weights]
    return [
        Areas(
            *(np.concatenate([getattr(part[side], name) for part in parts]) for name in ("auroc", "average_precision"))
        )
        for side in range(len(keys))
    ]


def _difference(
    figure: str, here: list[Areas], low: list[Areas], high: list[Areas], verdicts: bootstrap_intervals.Verdicts
) -> Interval:
    """Second minus first, with its interval over the same resamples of both, `low` and `high` for either end."""
    value, least, most = (getattr(second, figure) - getattr(first, figure) for first, second in (here, low, high))
    return bootstrap_intervals.percentile_interval(float(value[0]), least, verdicts, high=most)


def _checked(labels: ArrayLike, first: ArrayLike, second: ArrayLike) -> tuple[Bools, tuple[Floats, Floats]]:
    y = np.asarray(labels, dtype=bool)
    scores = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    for one in scores:
        if y.ndim != 1 or one.shape != y.shape:
            raise BadInput(f"{y.size} labels and {one.size} scores: give one of each set per label")
        if not np.isfinite(one).all():
            raise BadInput("a score is missing or infinite: leave out the traces that not both could score")
    return y, scores
