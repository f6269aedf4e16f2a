"""Is a probability of 30% right three times in ten? The map from score to P(hallucinated), and what it is worth.

The map is a ridge logistic (stats.fitting.ridge). It is judged on probabilities it gave to traces it was not fitted
on (10 times 5-fold cross-validation, traces that share their sources in one fold), by a reliability diagram and the
Brier score (Brier, Monthly Weather Review 78, 1950).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.probability import ProbabilityMap
from calibrate.stats.choosing.policies import NotEnoughLabels
from calibrate.stats.fitting import ridge
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.intervals import bootstrap_intervals as intervals
from calibrate.stats.intervals.binomial_intervals import Range, wilson
from calibrate.stats.intervals.bootstrap import Units, draw_counts
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints, check_weights
from calibrate.types import FlagWhen, Interval

FOLDS, REPEATS = 5, 10
RESAMPLES = 1000
FEW = 10  # labels of either verdict: below that a map is one label's opinion
BINS, PER_BIN = 10, 20
TINY = 1e-15  # probabilities are kept this far from 0 and 1 in the log-loss, as in scikit-learn


@dataclass(frozen=True)
class Bin:
    """`n` labels of like probability: what was `predicted` on average, and the share that was `hallucinated`.

    `mass` is the share of the traffic that they stand for. All from 0 to 1.
    """

    predicted: float
    hallucinated: Interval
    n: int
    mass: float


@dataclass(frozen=True)
class Reliability:
    """How far probabilities may be trusted, on `n` labels in `clusters` groups of traces that share their sources.

    `brier` is the mean squared error (0 perfect; `base_brier` is that of always saying the prevalence, `gain` what is
    won over it), `log_loss` in nats, `ece` the mean distance of predicted from true share over the bins, weighted by
    traffic, as commonly computed: chance alone keeps it above 0, by .04 at 300 labels of perfect probabilities.
    """

    bins: tuple[Bin, ...]
    brier: Interval
    base_brier: float
    gain: Interval
    log_loss: float
    ece: float
    n: int
    positives: int
    clusters: int


@dataclass(frozen=True)
class MapCurve:
    """The map at evenly spaced scores, in the detector's units, over the scores it was fitted on."""

    scores: Floats
    probabilities: Floats

    @property
    def monotone(self) -> bool:
        """False when the map turns: somewhere a more suspicious score means a smaller probability."""
        steps = np.diff(self.probabilities)
        return bool(np.all(steps >= -1e-9) or np.all(steps <= 1e-9))


@dataclass(frozen=True)
class Fitted:
    """A map fitted on every scored label, its reliability on traces it was not fitted on, and the `apparent` one on
    those it was, which flatters it."""

    map: ProbabilityMap
    curve: MapCurve
    reliability: Reliability
    apparent: Reliability


def fit_map(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    flag_when: FlagWhen,
    rng: np.random.Generator,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Fitted:
    """Fit and judge the map of one detector.

    A trace without a score (NaN) is left out.

    `labels` are True for hallucinated, `design` is how they were drawn (None: at random), `groups` the sources a trace
    shares with others (None: a group of its own).

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    rng : Generator
        Deals the folds and draws the resamples.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, length labels, optional
        The sources that a trace shares with others; default: none shares any.

    Returns
    -------
    Fitted
        The map and what it is worth, out of fold.

    Raises
    ------
    NotEnoughLabels
        Below 10 scored labels of either verdict, or 5 groups of either.
    """
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    given = check_weights(None, design, len(y))
    scored = ~np.isnan(values)
    scored_groups = [group for group, here in zip(groups or [None] * len(y), scored, strict=True) if here]
    strata = None if design is None else _numbered(design.strata[scored])
    units = Units.among(scored_groups, strata)
    y, values, w = y[scored], values[scored], (np.ones(len(y)) if given is None else given)[scored]
    _check_enough(y, units.of)
    fitted = ridge.fit_probability_map(y, values, weights=w, flag_when=flag_when)
    span = np.linspace(values.min(), values.max(), 121)
    unseen = np.stack([_unseen(y, values, w, units.of, flag_when, rng) for _ in range(REPEATS)])
    return Fitted(
        ProbabilityMap(fitted.centre, fitted.spread, fitted.coefficients, flag_when),
        MapCurve(span, fitted.at(span)),
        judge_probabilities(y, unseen, weights=w, units=units, strata=strata, rng=rng),
        judge_probabilities(y, fitted.at(values), weights=w, units=units, strata=strata, rng=rng),
    )


def judge_probabilities(
    labels: ArrayLike,
    probability: ArrayLike,
    *,
    rng: np.random.Generator,
    weights: ArrayLike | None = None,
    units: Units | None = None,
    strata: Ints | None = None,
    bins: int | None = None,
) -> Reliability:
    """Judge probabilities, 0 to 1, by labels they have not seen.

    `probability` has shape (labels,), or (repeats, labels) where cross-validation was repeated: losses are then
    averaged, bins use the mean. Bins hold equal numbers of labels (ties stay together), by default 10, or fewer so that
    each holds about 20. `units` are what the bootstrap behind the intervals draws, default every label on its own;
    `strata`, a code per label, says which were drawn together (calibrate.stats.intervals.unseen_positives).

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    probability : array of float, shape (labels,) or (repeats, labels)
        P(hallucinated), 0 to 1.
    rng : Generator
        Source of the random draws.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: all alike.
    units : Units, optional
        What the bootstrap draws; default: every label on its own.
    strata : array of int, shape (labels,), optional
        A code per label: which labels were drawn together.
    bins : int, optional
        How many bins; default: 10, or fewer so that each holds about 20 labels.

    Returns
    -------
    Reliability
        Losses with intervals, and the bins of a reliability diagram.

    References
    ----------
    Brier, Monthly Weather Review 78 (1950).
    """
    y, every = np.asarray(labels, dtype=bool), np.atleast_2d(np.asarray(probability, dtype=np.float64))
    given = check_weights(weights, None, len(y))
    w = np.ones(len(y)) if given is None else given
    units = Units.among([None] * len(y)) if units is None else units
    p = every.mean(axis=0)
    place = equal_bins(p, min(BINS, max(2, len(y) // PER_BIN)) if bins is None else bins)
    loss = ((every - y) ** 2).mean(axis=0)
    inside = np.clip(every, TINY, 1 - TINY)
    totals = _Totals.of(place, w, p, y, loss)
    resampled, verdicts = _resampled(totals, units, rng), intervals.Verdicts.of(y, units.of)
    brier, base = (float(figure[0]) for figure in (totals.whole.loss, totals.whole.base))
    losses, bases = resampled.loss, resampled.base
    if unseen := Unseen.of(y, w, units, strata):
        losses, bases = _with_unseen(unseen, ((every[:, unseen.rows] - unseen.labels) ** 2).mean(axis=0), rng)
    return Reliability(
        bins=_bins(totals.whole, resampled, place, w),
        brier=intervals.percentile_interval(brier, losses, verdicts),
        base_brier=base,
        gain=intervals.percentile_interval(base - brier, bases - losses, verdicts),
        log_loss=float(np.average(-np.log(np.where(y, inside, 1 - inside)).mean(axis=0), weights=w)),
        ece=float(totals.whole.weight[0] @ np.abs(totals.whole.gap[0]) / w.sum()),
        n=len(y),
        positives=int(y.sum()),
        clusters=int(units.sizes.sum()),
    )


def equal_bins(values: Floats, count: int) -> Ints:
    """The bin of every value, from 0 in rising order: equal numbers of values in each, equal values in one bin.

    Parameters
    ----------
    values : array of float, shape (labels,)
        What to bin.
    count : int
        How many bins, at most.

    Returns
    -------
    array of int, shape (labels,)
        Bin numbers from 0.
    """
    run, times = np.unique(values, return_inverse=True, return_counts=True)[1:]
    middle = np.cumsum(times) - times / 2
    place = np.minimum((middle * count / len(values)).astype(np.int64), count - 1)
    return _numbered(place[run])


@dataclass(frozen=True)
class _Sums:
    """Weighted sums per bin, shape (draws, bins), and the mean loss, shape (draws,)."""

    weight: Floats
    predicted: Floats
    hallucinated: Floats
    loss: Floats

    @classmethod
    def of(cls, flat: Floats) -> _Sums:
        weight, predicted, hallucinated = np.split(flat[:, :-1], 3, axis=1)
        return cls(weight, predicted, hallucinated, flat[:, -1] / weight.sum(axis=1))

    @property
    def base(self) -> Floats:
        """The Brier score of always saying the prevalence, shape (draws,)."""
        prevalence = self.hallucinated.sum(axis=1) / self.weight.sum(axis=1)
        return np.asarray(prevalence * (1 - prevalence))

    @property
    def share(self) -> Floats:
        """The share hallucinated; NaN in a draw without any of the bin's labels."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.hallucinated / self.weight)

    @property
    def gap(self) -> Floats:
        """Share hallucinated minus predicted."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self.hallucinated - self.predicted) / self.weight)


@dataclass(frozen=True)
class _Totals:
    """Every label's part in the sums, shape (labels, 3 x bins + 1)."""

    parts: Floats

    @classmethod
    def of(cls, place: Ints, w: Floats, p: Floats, y: Bools, loss: Floats) -> _Totals:
        member = (place[:, None] == np.arange(place.max() + 1)) * w[:, None]
        return cls(np.column_stack([member, member * p[:, None], member * y[:, None], w * loss]))

    @property
    def whole(self) -> _Sums:
        return _Sums.of(self.parts.sum(axis=0)[None, :])


def _resampled(totals: _Totals, units: Units, rng: np.random.Generator) -> _Sums:
    """The sums had other groups been labelled: all of them are sums over groups, so only groups are drawn."""
    sums = np.zeros((int(units.sizes.sum()), totals.parts.shape[1]))
    np.add.at(sums, units.of, totals.parts)
    groups = Units(np.arange(len(sums)), units.sizes)
    return _Sums.of(np.concatenate([times @ sums for times in draw_counts(groups, RESAMPLES, rng)]))


def _with_unseen(unseen: Unseen, loss: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The Brier score, and that of always saying the prevalence, in every resample; `loss` is each column's."""
    losses, bases = [], []
    for weights in unseen.drawn(RESAMPLES, rng):
        whole = weights.sum(axis=1)
        prevalence = weights @ unseen.labels / whole
        losses.append(weights @ loss / whole)
        bases.append(prevalence * (1 - prevalence))
    return np.concatenate(losses), np.concatenate(bases)


def _bins(whole: _Sums, resampled: _Sums, place: Ints, w: Floats) -> tuple[Bin, ...]:
    """Each bin with a Wilson interval at the size its bootstrap variance is worth, at most its number of labels."""
    share, predicted = whole.share[0], whole.predicted[0] / whole.weight[0]
    labels = np.bincount(place).astype(np.float64)
    varies = np.nanvar(resampled.share, axis=0) > 0
    bounds = _wilson_of_draws(share, resampled.share, np.where(varies, labels, _effective(place, w)))
    mass = whole.weight[0] / whole.weight.sum()
    return tuple(
        Bin(
            float(predicted[b]),
            Interval(float(share[b]), float(bounds.low[b]), float(bounds.high[b])),
            int(labels[b]),
            float(mass[b]),
        )
        for b in range(len(share))
    )


def _effective(place: Ints, w: Floats) -> Floats:
    """Kish's effective number of labels of every bin."""
    return np.asarray(np.bincount(place, w) ** 2 / np.bincount(place, w**2))


def _unseen(y: Bools, values: Floats, w: Floats, units: Ints, flag_when: FlagWhen, rng: np.random.Generator) -> Floats:
    """Every label's probability by a map that was fitted without its group."""
    fold, probability = deal_folds(y, units, folds=FOLDS, rng=rng), np.empty(len(y))
    for number in range(FOLDS):
        here = fold == number
        fitted = ridge.fit_probability_map(y[~here], values[~here], weights=w[~here], flag_when=flag_when)
        probability[here] = fitted.at(values[here])
    return probability


def _numbered(codes: Ints) -> Ints:
    """The codes that occur, numbered from 0 in their order."""
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.int64)


def _check_enough(y: Bools, code: Ints) -> None:
    for kind, here in (("hallucinated", y), ("clean", ~y)):
        n, groups = int(here.sum()), len(np.unique(code[here]))
        if n < FEW:
            raise NotEnoughLabels(
                f"{n} {kind} {'label' if n == 1 else 'labels'} with a score: a probability map needs at least {FEW}; "
                "label more traces"
            )
        if groups < FOLDS:
            raise NotEnoughLabels(
                f"the {n} {kind} labels come from {groups} groups of shared sources: a probability map needs at least "
                f"{FOLDS}, to be judged on sources it has not seen; label traces of other sources"
            )


def _wilson_of_draws(share: Floats, draws: Floats, most: Floats) -> Range:
    """Wilson's interval of shares at the sizes that the variance of their resampled values, shape (draws, shares), is
    worth: P (1 - P) / V, at most `most` labels. Resamples that could not say are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = share * (1 - share) / np.nanvar(draws, axis=0)
    return wilson(share, np.fmin(np.where(worth > 0, worth, np.inf), most))
