"""How well a rule does, measured from its flags alone, however it was made.

Flags may come in several repeats (a cross-validation dealt anew), and a figure is the mean over repeats. Shares are
known as a detector's are (stats.intervals.sweep_intervals), and have the mean of the repeats' intervals. A difference
and a ranking are resampled, and their intervals hold both what other traces and what other folds would have changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.intervals import bootstrap, bootstrap_intervals
from calibrate.stats.intervals.binomial_intervals import z_value
from calibrate.stats.intervals.sweep_intervals import Figures, figures
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval

RESAMPLES = 1000
CELLS = 5_000_000  # weights held at once: 40 MB
LEAST = 200


@dataclass(frozen=True)
class Judged:
    """What a rule says of the labelled traces, shape (repeats, traces): its flags, and its scores, which compare only
    within one fold (`folds`, None: one)."""

    flags: Bools
    scores: Floats
    folds: Ints | None = None


@dataclass(frozen=True)
class Performance:
    """Shares with their 95% intervals, end to end: a trace without any score is not flagged, and misses count."""

    recall: Interval
    precision: Interval
    flag_rate: Interval


@dataclass(frozen=True)
class Drawn:
    """Resamples of the labelled traces: `seen` are their weights, shape (resamples, traces). `unseen` are those of a
    stratified draw that reckon with what it has not seen, and the weights of their columns; None at random."""

    seen: Floats
    unseen: tuple[Unseen, Floats] | None


def draw_resamples(training: TrainingData, *, rng: np.random.Generator, count: int = RESAMPLES) -> Drawn:
    """Draw resamples of the labels, fewer of very many traces.

    Groups are drawn whole, and within strata where each lies in one.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    rng : Generator
        Source of the random draws.
    count : int
        How many resamples.

    Returns
    -------
    Drawn
        Weights of the labels in every resample.
    """
    size = max(min(count, CELLS // max(len(training.labels), 1)), min(count, LEAST))
    units = bootstrap.Units.among(training.groups, training.strata)
    seen = np.concatenate(list(bootstrap.draw_counts(units, size, rng))) * training.weights
    unseen = Unseen.of(training.labels, training.weights, units, training.strata)
    wider = None if unseen is None else (unseen, np.concatenate(list(unseen.drawn(size, rng))))
    return Drawn(np.asarray(seen), wider)


def measure_performance(training: TrainingData, judged: Judged) -> Performance:
    """The figures of one rule.

    Its precision is that of all flags: a repeat counts for as much as it flags.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    judged : Judged
        What a rule flags and scores, out of fold.

    Returns
    -------
    Performance
        Recall, precision and flag rate with intervals.
    """
    each = [measure_flags(training, flags) for flags in judged.flags]
    same, flagged = [1.0] * len(each), [repeat.flag_rate.value or 0.0 for repeat in each]
    return Performance(
        recall=_average([repeat.recall for repeat in each], same),
        precision=_average([repeat.precision for repeat in each], flagged),
        flag_rate=_average([repeat.flag_rate for repeat in each], same),
    )


def measure_flags(training: TrainingData, flags: Bools) -> Figures:
    """Measure flags on the labels.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    flags : array of bool, shape (labels,)
        What is flagged.

    Returns
    -------
    Figures
        Shares with intervals.
    """
    return figures(
        sweep(
            training.labels,
            flags.astype(np.float64),
            weights=training.weights,
            design=training.design,
            groups=training.groups,
        ),
        0.5,
    )


def recall_difference(training: TrainingData, first: Judged, second: Judged, drawn: Drawn) -> Interval:
    """Recall of the first minus recall of the second, -1 to 1: paired, on the same resamples and folds.

    The variance is that of other traces, the repeats averaged, and what dealing the folds anew moves their mean by.
    Around it the interval is Agresti and Min's for matched pairs (Statistics in Medicine 24, 2005) with a quarter of a
    trace for each of the four ways a pair can fall, which keeps a few labels that agree from claiming certainty. Half a
    trace, as they have it, covers .94 to .99 here, none .91 to .95 (docs/adr/0006).

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    first, second : Judged
        Out of fold, on the same folds.
    drawn : Drawn
        Resamples of the labels.

    Returns
    -------
    Interval
        -1 to 1, without bounds where the labels are too few.

    References
    ----------
    Agresti and Min, Statistics in Medicine 24 (2005).
    """
    y, w = training.labels, training.weights
    if not y.any():
        return Interval(None)
    gaps = (first.flags.astype(np.float64) - second.flags) * y  # one of them may have a single repeat
    each = gaps @ w / (y @ w)
    value, dealt = float(each.mean()), float(each.var(ddof=1)) / len(each) if len(each) > 1 else 0.0
    hallucinated = drawn.seen @ y
    draws = (drawn.seen @ gaps.mean(axis=0))[hallucinated > 0] / hallucinated[hallucinated > 0]
    if len(draws) <= len(hallucinated) / 2:
        return Interval(value)
    n = _kish(w[y])
    centre, error = value * n / (n + 1), float(np.sqrt((np.var(draws) + dealt) * n**2 + 0.5)) / (n + 1)
    reach = z_value(0.95) * error
    return Interval(value, max(-1.0, centre - reach), min(1.0, centre + reach))


def auroc_within_folds(training: TrainingData, judged: Judged, drawn: Drawn) -> Interval:
    """AUROC with its interval, over pairs within a fold: scores of two folds come from two fits.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    judged : Judged
        What a rule flags and scores, out of fold.
    drawn : Drawn
        Resamples of the labels.

    Returns
    -------
    Interval
        0 to 1.
    """
    y, repeats = training.labels, len(judged.scores)
    here = [_within(y, judged, repeat, training.weights[None])[0] for repeat in range(repeats)]
    value = float(np.mean(here))
    if not np.isfinite(value):
        return Interval(None)
    if drawn.unseen is None:
        each = [_within(y, judged, repeat, drawn.seen[repeat::repeats]) for repeat in range(repeats)]
        return bootstrap_intervals.auroc_interval(value, np.concatenate(each), bootstrap_intervals.Verdicts.of(y))
    unseen, weights = drawn.unseen
    wider = _take_rows(judged, unseen.rows)
    each = [_within(unseen.labels, wider, repeat, weights[repeat::repeats]) for repeat in range(repeats)]
    return bootstrap_intervals.percentile_interval(value, np.concatenate(each), _number_groups(training))


def auroc_difference(training: TrainingData, first: Judged, second: Judged, drawn: Drawn) -> Interval:
    """AUROC of the first minus AUROC of the second, over pairs within a fold: paired, on the same resamples and folds.

    The variance is that of other traces, the repeats averaged, and what dealing the folds anew moves their mean by. The
    interval reaches as far as Student's t of the rarer verdict's effective number of groups.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    first, second : Judged
        Out of fold, on the same folds.
    drawn : Drawn
        Resamples of the labels.

    Returns
    -------
    Interval
        -1 to 1, without bounds where the labels are too few.
    """
    from scipy.special import stdtrit

    y, repeats = training.labels, len(first.scores)
    each = np.array([_gap(y, first, second, repeat, training.weights[None])[0] for repeat in range(repeats)])
    value = float(each.mean())
    if not np.isfinite(value):
        return Interval(None)
    labels, weights, sides = y, drawn.seen, (first, second)
    if drawn.unseen is not None:
        unseen, weights = drawn.unseen
        labels, sides = unseen.labels, (_take_rows(first, unseen.rows), _take_rows(second, unseen.rows))
    draws = np.mean([_gap(labels, *sides, repeat, weights) for repeat in range(repeats)], axis=0)
    defined = draws[np.isfinite(draws)]
    if len(defined) <= len(draws) / 2:
        return Interval(value)
    dealt = float(each.var(ddof=1)) / repeats if repeats > 1 else 0.0
    units = bootstrap.Units.among(training.groups).of
    few = max(bootstrap_intervals.Verdicts.worth(y, training.weights, units).few, 2.0)
    reach = float(stdtrit(few - 1, 0.975)) * float(np.sqrt(np.var(defined) + dealt))
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach))


def _gap(labels: Bools, first: Judged, second: Judged, repeat: int, weights: Floats) -> Floats:
    return _within(labels, first, repeat, weights) - _within(labels, second, repeat, weights)


def _take_rows(judged: Judged, rows: Ints) -> Judged:
    folds = None if judged.folds is None else judged.folds[:, rows]
    return Judged(judged.flags[:, rows], judged.scores[:, rows], folds)


def _average(each: list[Interval], weights: list[float]) -> Interval:
    """Over the repeats that know the figure; a precision is unknown where nothing is flagged."""
    valued = [(repeat.value, repeat.low, repeat.high) for repeat in each if repeat.value is not None]
    if not valued:
        return Interval(None)
    heavy = [weight for repeat, weight in zip(each, weights, strict=True) if repeat.value is not None]
    value, low, high = np.average(np.array(valued, dtype=np.float64), axis=0, weights=heavy).tolist()
    return Interval(value, low, high)


def _number_groups(training: TrainingData) -> bootstrap_intervals.Verdicts:
    return bootstrap_intervals.Verdicts.of(training.labels, bootstrap.Units.among(training.groups).of)


def _within(y: Bools, judged: Judged, repeat: int, drawn: Floats) -> Floats:
    folds = np.zeros(len(y), dtype=np.int64) if judged.folds is None else judged.folds[repeat]
    won, pairs = np.zeros(len(drawn)), np.zeros(len(drawn))
    for fold in np.unique(folds):
        here = folds == fold
        areas = bootstrap.weighted_auroc(y[here], judged.scores[repeat][here], drawn[:, here])
        weight = (drawn[:, here] @ y[here]) * (drawn[:, here] @ ~y[here])
        won += np.where(weight > 0, areas, 0.0) * weight
        pairs += weight
    area: Floats = np.divide(won, pairs, out=np.full(len(drawn), np.nan), where=pairs > 0)
    return area


def _kish(w: Floats) -> float:
    """Kish's effective number of labels."""
    return float(w.sum()) ** 2 / float((w**2).sum())
