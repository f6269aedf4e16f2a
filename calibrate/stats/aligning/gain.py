"""What one way of scoring gains over another on the same labels: in AUROC, and in precision at one recall."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.intervals.bootstrap import RESAMPLES, Order, Units, draw_counts
from calibrate.stats.intervals.bootstrap_intervals import Verdicts, percentile_interval
from calibrate.stats.intervals.ranking_differences import Comparison, compare_rankings
from calibrate.stats.sweep.design import Floats, Ints
from calibrate.types import FlagWhen, Interval

BY_CHANCE = 0.05  # of comparisons that change nothing, at most, are called better: half of it for either figure
_NOTHING = Interval(None)


class Gained(StrEnum):
    """What a comparison says of the second way of scoring."""

    BETTER = "better"  # one figure is better beyond its interval, and none is worse
    WORSE = "worse"  # one is worse beyond its interval
    OPEN = "open"  # neither shows


@dataclass(frozen=True, slots=True)
class PrecisionGain:
    """Precision where each way of scoring first reaches a `recall`, and the second's minus the first's.

    `interval` is at 95%, `together` at the confidence that several looks at the same labels ask for. All are shares,
    None where the labels do not say.
    """

    recall: float
    first: float | None
    second: float | None
    interval: Interval
    together: Interval


@dataclass(frozen=True, slots=True)
class Gain:
    """The second way of scoring against the first, by AUROC and by precision at one recall."""

    ranking: Comparison
    precision: PrecisionGain
    verdict: Gained


def measure_gain(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    recall: float,
    rng: Generator,
    flag_when: FlagWhen = "above",
    groups: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
    strata: Ints | None = None,
    looks: int = 1,
) -> Gain:
    """Compare two ways of scoring the same labelled traces.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    first, second : array of float, shape (labels,)
        Scores in one unit, all finite.
    recall : float
        The recall at which precision is compared, above 0 and at most 1.
    rng : Generator
        Source of the random draws.
    flag_when : {"above", "below"}
        The suspicious side of the scores.
    groups : sequence of hashable, optional
        The sources that a trace shares with others; whole groups are drawn together.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for.
    strata : array of int, shape (labels,), optional
        Which labels were drawn together.
    looks : int
        How many comparisons share the 5%: those made on these labels so far, with this one.

    Returns
    -------
    Gain
        With a verdict that calls a second way of scoring better by chance at most once in 20 over all `looks`, and
        likewise worse.

    Raises
    ------
    BadInput
        For lengths that differ, scores that are missing, and a recall out of range.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 8. Field and Welsh, Journal of the Royal
    Statistical Society B 69 (2007): groups drawn whole.
    """
    if not 0 < recall <= 1:
        raise BadInput(f"a recall of {recall:g} cannot be compared at: give one above 0 and at most 1")
    sure = 1 - BY_CHANCE / max(1, looks)
    y = np.asarray(labels, dtype=bool)
    units = Units.among([None] * len(y) if groups is None else list(groups), strata)
    ranking = compare_rankings(
        y, first, second, rng=rng, flag_when=flag_when, clusters=units.of, weights=weights, strata=strata,
        confidence=sure,
    )  # fmt: skip
    ranking = replace(ranking, auroc=_exact(ranking.auroc), auroc_together=_exact(ranking.auroc_together))
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    keys = [-suspicion(np.asarray(scores, dtype=np.float64), flag_when) for scores in (first, second)]
    if ranking.missing is not None:
        nothing = PrecisionGain(recall, None, None, _NOTHING, _NOTHING)
        return Gain(ranking, nothing, Gained.OPEN)
    orders = [Order.of(each, y) for each in keys]
    here = [float(precision_at(order, w[None, :], recall)[0]) for order in orders]
    draws = np.concatenate(
        [
            precision_at(orders[1], counts * w, recall) - precision_at(orders[0], counts * w, recall)
            for counts in draw_counts(units, RESAMPLES, rng)
        ]
    )
    few = Verdicts.worth(y, w, units.of)
    alone, together = (
        _exact(percentile_interval(here[1] - here[0], draws, few, confidence=confidence)) for confidence in (0.95, sure)
    )
    precision = PrecisionGain(recall, here[0], here[1], alone, together)
    return Gain(ranking, precision, _judge(ranking.auroc_together, together))


def precision_at(order: Order, weights: Floats, recall: float) -> Floats:
    """Precision at the strictest threshold that reaches a recall.

    Parameters
    ----------
    order : Order
        The scored rows from strict to loose.
    weights : array of float, shape (resamples, labels)
        What each label counts, a row per figure.
    recall : float
        Above 0, at most 1.

    Returns
    -------
    array of float, shape (resamples,)
        NaN where a resample holds nothing hallucinated.
    """
    positives = (weights[:, order.rows] * order.hit).sum(axis=1)
    curve = order.curve(weights, positives, weights.sum(axis=1))
    reaches = curve.tp >= (recall * positives)[:, None] - 1e-9 * np.maximum(positives, 1.0)[:, None]
    place = np.argmax(reaches, axis=1)
    rows = np.arange(len(weights))
    hits, wrong = curve.tp[rows, place], curve.fp[rows, place]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(positives > 0, hits / (hits + wrong), np.nan))


def _exact(difference: Interval) -> Interval:
    """The interval without what floating point adds: two figures that are alike differ by 0, never by 1e-17."""
    low, value, high = (
        None if each is None else round(each, 12) + 0.0 for each in (difference.low, difference.value, difference.high)
    )
    return Interval(value, low, high)


def _judge(*differences: Interval) -> Gained:
    if any(each.high is not None and each.high < 0 for each in differences):
        return Gained.WORSE
    return Gained.BETTER if any(each.low is not None and each.low > 0 for each in differences) else Gained.OPEN
