"""How well scores rank answers that are alike in what could stand in for the error: of one model and one operation.

Where models err at different rates, scores that only tell the models apart rank well. Compared with each other are then
a hallucinated and a clean label of the same stratum alone, and the pairs of all strata are pooled: van Elteren's
stratified Mann-Whitney statistic with a pair for a weight, which is the covariate-adjusted area under the ROC curve.

References
----------
van Elteren, Bulletin of the International Statistical Institute 37 (1960). Janes and Pepe, Biometrika 96 (2009).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.intervals.bootstrap import Order, Units, draw_counts
from calibrate.stats.intervals.bootstrap_intervals import Verdicts, auroc_interval, percentile_interval
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.stats.sweep.sweep import enough_to_rank
from calibrate.types import FlagWhen, Interval

CHANCE = 0.5
_NOTHING = Interval(None)


class Recognizes(StrEnum):
    """What the scores tell apart, as far as the labels show it."""

    ERROR = "error"  # above chance within strata
    STRATUM = "stratum"  # above chance overall, not within, and the fall is shown
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Within:
    """The area within strata, on `n` scored labels of known stratum in `strata` strata that hold both verdicts.

    `positives` of the `n` are hallucinated; `scored` labels have a score, of known stratum or not. `overall` is the
    area of the same labels without strata, and `fall` is overall minus within.
    """

    n: int
    positives: int
    scored: int
    strata: int
    auroc: Interval = _NOTHING
    overall: Interval = _NOTHING
    fall: Interval = _NOTHING

    @property
    def recognizes(self) -> Recognizes:
        """What is shown at 95%."""
        lows = self.auroc.low, self.overall.low, self.fall.low
        if lows[0] is not None and lows[0] > CHANCE:
            return Recognizes.ERROR
        shown = None not in lows and (self.overall.low or 0) > CHANCE and (self.fall.low or 0) > 0
        return Recognizes.STRATUM if shown else Recognizes.UNCLEAR


def rank_within(
    labels: Bools,
    scores: Floats,
    within: Ints,
    *,
    flag_when: FlagWhen,
    rng: np.random.Generator,
    clusters: Ints,
    weights: Floats,
    strata: Ints | None = None,
    count: int,
) -> Within:
    """Measure the area under the ROC curve of pairs of one stratum.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    within : array of int, shape (labels,)
        The code of what the two of a pair must share, below 0 where it is not known.
    flag_when : {"above", "below"}
        The suspicious side.
    rng : Generator
        Source of the random draws.
    clusters : array of int, shape (labels,)
        The group of every trace: those of one err together.
    weights : array of float, shape (labels,)
        How many traces of the traffic each label stands for.
    strata : array of int, shape (labels,), optional
        Which labels were drawn together.
    count : int
        How many resamples.

    Returns
    -------
    Within
        Without areas where fewer than two strata are known, or where those with both verdicts have too few labels.
    """
    scored = np.isfinite(scores)
    rows = scored & (within >= 0)
    y, codes = labels[rows], np.unique(within[rows], return_inverse=True)[1]
    mixed = np.flatnonzero((np.bincount(codes[y], minlength=1 + codes.max(initial=0)) > 0)
                           & (np.bincount(codes[~y], minlength=1 + codes.max(initial=0)) > 0))  # fmt: skip
    paired = np.isin(codes, mixed)
    counts = int(rows.sum()), int(y.sum()), int(scored.sum()), len(mixed)
    few = not enough_to_rank(int(y[paired].sum()), int((~y[paired]).sum()))
    if few or codes.max(initial=0) == 0:
        return Within(*counts)
    w, drawn_from = weights[rows], None if strata is None else strata[rows]
    units = Units.of_codes(np.unique(clusters[rows], return_inverse=True)[1].astype(np.int64), drawn_from)
    unseen = Unseen.of(y, w, units, drawn_from)
    column, verdicts = (np.arange(len(y)), y) if unseen is None else (unseen.rows, unseen.labels)
    areas = _Areas(-suspicion(scores[rows], flag_when)[column], verdicts, codes[column])
    resamples = _weigh(units, w, count, rng) if unseen is None else unseen.drawn(count, rng)
    drawn = [areas.under(block) for block in resamples]
    draws = [np.concatenate(each) for each in zip(*drawn, strict=True)]
    own = np.zeros((1, len(column)))
    own[0, : len(w)] = w
    value, overall = (float(each[0]) for each in areas.under(own))
    each_verdict, groups = Verdicts.of(y[paired]), Verdicts.of(y[paired], units.of[paired])
    within_area, whole_area = (
        auroc_interval(area, of_draws, each_verdict) if unseen is None else percentile_interval(area, of_draws, groups)
        for area, of_draws in ((value, draws[0]), (overall, draws[1]))
    )
    fall = percentile_interval(overall - value, draws[1] - draws[0], groups)
    return Within(*counts, within_area, whole_area, fall)


def _weigh(units: Units, weights: Floats, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    for block in draw_counts(units, count, rng):
        yield block * weights


class _Areas:
    """Rows from strict to loose, all of them and stratum by stratum."""

    def __init__(self, keys: Floats, labels: Bools, codes: Ints) -> None:
        self._labels, self._whole = labels, Order.of(keys, labels)
        members = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
        self._strata = [(rows, Order.of(keys[rows], labels[rows])) for rows in members]

    def under(self, weights: Floats) -> tuple[Floats, Floats]:
        """The areas within strata and overall for each row of `weights`; NaN where there is no pair."""
        won, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for rows, order in self._strata:
            w, hit = weights[:, rows], self._labels[rows]
            here = w[:, hit].sum(axis=1) * w[:, ~hit].sum(axis=1)
            won += np.where(here > 0, order.areas(w).auroc, 0.0) * here
            pairs += here
        within = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
        return within, self._whole.areas(weights).auroc
