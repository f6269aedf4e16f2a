"""Two rankings of the same labels: how far apart they are, and how sure one may be of it.

The variance of the difference is that of the stratified jackknife: each trace is left out in turn, the others of its
stratum standing for it; traces that share their sources are left out together. It is the replicate method of survey
sampling, and of an AUROC at random nearly DeLong's variance. docs/statistics/simplify.md has what its intervals hold.

References
----------
Wolter, Introduction to Variance Estimation, 2nd ed. (2007), chapter 4. Kott, Journal of Official Statistics 17 (2001):
groups of traces left out together. DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.intervals.bootstrap import BLOCK, Areas, Order, Units
from calibrate.stats.intervals.bootstrap_intervals import SURE, Verdicts
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Floats, Ints, check_weights
from calibrate.stats.sweep.sweep import Missing, enough_to_rank, missing_of
from calibrate.types import FlagWhen, Interval

_NOTHING = Interval(None)
MOST = 1000  # units left out in turn: more are left out some at a time


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well scores tell hallucinated from clean, threshold aside; both from 0 to 1."""

    auroc: float
    average_precision: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of scores on the same `n` labels, `positives` of them hallucinated, in `clusters` groups of traces.

    `auroc` and `average_precision` are the differences, second minus first, with their 95% interval; above 0 the second
    ranks better. `auroc_together` has the interval at the confidence that was asked for, to hold together with others.
    Bounds are None where the labels are too few or too alike to say. `missing` says why there are no figures at all.
    """

    n: int
    positives: int
    clusters: int
    first: Ranking | None = None
    second: Ranking | None = None
    auroc: Interval = _NOTHING
    average_precision: Interval = _NOTHING
    missing: Missing | None = None
    auroc_together: Interval = _NOTHING


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
    confidence: float = SURE,
    most: int = MOST,
) -> Comparison:
    """Compare two sets of scores of the same labelled traces.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    first, second : array of float, shape (labels,)
        Scores in their detectors' units, all finite.
    rng : Generator
        Draws which units are left out together where there are more than `most`; else the answer is always the same.
    flag_when, second_flag_when : {"above", "below"}
        The suspicious side of the first scores and of the second; the second's is the first's by default.
    clusters : array, shape (labels,), optional
        The group of every trace: traces that share their sources err together. Default: each trace is its own.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: all alike.
    strata : array of int, shape (labels,), optional
        Which labels were drawn together. With unequal weights half a hallucinated label that was not seen counts in the
        heaviest stratum, at the scores of any clean label there (`unseen_positives`).
    confidence : float
        The confidence of `auroc_together`. Give more than .95 if several intervals must hold together.
    most : int
        The most units that are left out one by one. Where there are more, they are put into this many random groups,
        and the groups are left out one by one.

    Returns
    -------
    Comparison
        Both rankings and their differences, with intervals at Student's t of the rarer verdict's effective number.

    Raises
    ------
    BadInput
        For arrays of different lengths, and for scores that are missing or infinite.
    """
    y, scores = _check_inputs(labels, first, second)
    given = check_weights(weights, None, len(y))
    w = np.ones(len(y)) if given is None else given
    names = np.arange(len(y)) if clusters is None else np.asarray(clusters)
    if names.shape != y.shape:
        raise BadInput(f"{names.size} clusters for {len(y)} labels: give one per label")
    group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    n, positives, many = len(y), int(y.sum()), int(group.max(initial=-1)) + 1
    if not 0 < positives < n:
        return Comparison(n, positives, many, missing=missing_of(n, positives, n, positives))
    if not enough_to_rank(positives, n - positives):
        return Comparison(n, positives, many, missing=Missing.FEW_TO_RANK)
    sides = flag_when, second_flag_when or flag_when
    keys = [-suspicion(values, side) for values, side in zip(scores, sides, strict=True)]
    here = [Order.of(each, y).areas(w[None, :]) for each in keys]
    units = _merge_units(most, Units.of_codes(group, strata), strata, rng)
    unseen = Unseen.of(y, given, units, strata)
    rows, verdicts = (np.arange(n), y) if unseen is None else (unseen.rows, unseen.labels)
    orders = Order.of(keys[0][rows], verdicts), Order.of(keys[1][rows], verdicts)
    left_out = _measure_areas(orders, _jackknife_weights(units, w), len(rows))
    added = None if unseen is None else _measure_areas(orders, unseen.added(), len(rows))
    few = max(Verdicts.worth(y, w, group).few, 2.0)
    places = [np.unique(each, return_inverse=True)[1] for each in keys]
    auroc, average, together = (
        Interval(0.0, 0.0, 0.0)  # both rank all traces alike, whatever is drawn
        if np.array_equal(places[0], places[1])
        else _measure_difference(name, here, left_out, added, units, few, sure)
        for name, sure in (("auroc", SURE), ("average_precision", SURE), ("auroc", confidence))
    )
    first_ranking, second_ranking = (_make_ranking(areas) for areas in here)
    return Comparison(n, positives, many, first_ranking, second_ranking, auroc, average, auroc_together=together)


def _make_ranking(areas: Areas) -> Ranking:
    return Ranking(float(areas.auroc[0]), float(areas.average_precision[0]))


def _merge_units(most: int, units: Units, strata: Ints | None, rng: Generator) -> Units:
    """The units, or random groups of them within their strata, about `most` in all."""
    total = int(units.sizes.sum())
    if total <= most:
        return units
    codes, begun = np.empty(total, dtype=np.int64), 0
    for size in units.sizes:
        groups = min(int(size), max(2, round(most * size / total)))
        codes[begun : begun + size] = begun + rng.permutation(int(size)) % max(groups, 1)
        begun += size
    return Units.of_codes(np.unique(codes[units.of], return_inverse=True)[1].astype(np.int64), strata)


def _jackknife_weights(units: Units, w: Floats) -> Iterator[Floats]:
    """Weights of the rows with each unit left out in turn, the others of its stratum standing for it: shape (units,
    rows), some units at a time."""
    size = np.repeat(units.sizes, units.sizes)
    stratum = np.repeat(np.arange(len(units.sizes)), units.sizes)
    step = max(1, BLOCK // len(w))
    for begun in range(0, len(size), step):
        unit = np.arange(begun, min(begun + step, len(size)))[:, None]
        heavier = (size / np.maximum(size - 1, 1))[unit]
        yield w * np.where(stratum[units.of] == stratum[unit], heavier, 1.0) * (units.of != unit)


def _measure_areas(orders: tuple[Order, Order], weights: Iterator[Floats], columns: int) -> tuple[Areas, Areas]:
    """The areas of either ranking under each row of `weights`, which come some at a time; columns that these lack weigh
    nothing."""
    parts = []
    for block in weights:
        whole = np.zeros((len(block), columns))
        whole[:, : block.shape[1]] = block
        parts.append([order.areas(whole) for order in orders])
    first, second = (
        Areas(
            np.concatenate([part[side].auroc for part in parts]),
            np.concatenate([part[side].average_precision for part in parts]),
        )
        for side in (0, 1)
    )
    return first, second


def _measure_difference(
    name: str,
    here: list[Areas],
    left_out: tuple[Areas, Areas],
    added: tuple[Areas, Areas] | None,
    units: Units,
    few: float,
    confidence: float,
) -> Interval:
    """Second minus first. `left_out` are the areas without each unit, `added` those with each label that was not seen:
    half of one counts, as Jeffreys' interval adds to a count. No bounds where a unit's absence leaves one class."""
    from scipy.special import stdtrit

    value = float((getattr(here[1], name) - getattr(here[0], name))[0])
    off = getattr(left_out[1], name) - getattr(left_out[0], name) - value
    size = np.repeat(units.sizes, units.sizes)
    variance = float(np.sum(off**2 * np.where(size > 1, (size - 1) / size, 1.0)))
    if added is not None:
        variance += float(np.mean((getattr(added[1], name) - getattr(added[0], name) - value) ** 2)) / 2
    if not np.isfinite(variance) or variance == 0:
        return Interval(value)
    reach = float(stdtrit(few - 1, 0.5 + confidence / 2)) * variance**0.5
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach))


def _check_inputs(labels: ArrayLike, first: ArrayLike, second: ArrayLike) -> tuple[Bools, tuple[Floats, Floats]]:
    y = np.asarray(labels, dtype=bool)
    scores = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    for each in scores:
        if y.ndim != 1 or each.shape != y.shape:
            raise BadInput(f"{y.size} labels and {each.size} scores: give one of each set per label")
        if not np.isfinite(each).all():
            raise BadInput("a score is missing or infinite: leave out the traces that not both could score")
    return y, scores
