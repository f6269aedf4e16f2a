"""Is a probability of 30% right three times in ten? Probabilities judged by labels they have not seen.

By a reliability diagram, the Brier score (Brier, Monthly Weather Review 78, 1950) and the log-loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.stats.intervals import bootstrap_intervals as intervals
from calibrate.stats.intervals.binomial_intervals import Range, wilson
from calibrate.stats.intervals.bootstrap import Units, draw_counts
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Floats, Ints, check_weights
from calibrate.types import Interval

RESAMPLES = 1000
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
    """Judge probabilities by labels they have not seen.

    Where cross-validation was repeated, losses are averaged and bins use the mean probability. Bins hold equal numbers
    of labels, ties together.

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
    resampled, verdicts = _resample(totals, units, rng), intervals.Verdicts.of(y, units.of)
    brier, base = (float(figure[0]) for figure in (totals.whole.loss, totals.whole.base))
    losses, bases = resampled.loss, resampled.base
    if unseen := Unseen.of(y, w, units, strata):
        losses, bases = _with_unseen(unseen, ((every[:, unseen.rows] - unseen.labels) ** 2).mean(axis=0), rng)
    return Reliability(
        bins=_make_bins(totals.whole, resampled, place, w),
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
    """Bin values so that each bin holds as many, equal values in one bin.

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
    return _number_codes(place[run])


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


def _resample(totals: _Totals, units: Units, rng: np.random.Generator) -> _Sums:
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


def _make_bins(whole: _Sums, resampled: _Sums, place: Ints, w: Floats) -> tuple[Bin, ...]:
    """Each bin with a Wilson interval at the size its bootstrap variance is worth, at most its number of labels."""
    share, predicted = whole.share[0], whole.predicted[0] / whole.weight[0]
    labels = np.bincount(place).astype(np.float64)
    varies = np.nanvar(resampled.share, axis=0) > 0
    bounds = _wilson_of_draws(share, resampled.share, np.where(varies, labels, _effective_sizes(place, w)))
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


def _effective_sizes(place: Ints, w: Floats) -> Floats:
    """Kish's effective number of labels of every bin."""
    return np.asarray(np.bincount(place, w) ** 2 / np.bincount(place, w**2))


def _number_codes(codes: Ints) -> Ints:
    """The codes that occur, numbered from 0 in their order."""
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.int64)


def _wilson_of_draws(share: Floats, draws: Floats, most: Floats) -> Range:
    """Wilson's interval of shares at the sizes that the variance of their resampled values, shape (draws, shares), is
    worth: P (1 - P) / V, at most `most` labels. Resamples that could not say are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = share * (1 - share) / np.nanvar(draws, axis=0)
    return wilson(share, np.fmin(np.where(worth > 0, worth, np.inf), most))
