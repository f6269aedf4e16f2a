"""Intervals of shares from a stratified draw: of hallucinated traces that were found, for one, and that were missed.

Both are weighted counts. A weighted count is nearly a gamma variable of its mean and variance (Fay and Feuer,
Statistics in Medicine 16, 1997), and the share of two such is a beta variable with its odds scaled. Each count gets
half a label of the heaviest stratum that one could have come from: with equal weights that is Jeffreys' interval of a
share (Brown, Cai and DasGupta, Statistical Science 16, 2001), and in a stratum of large weight it keeps "no miss seen"
from claiming that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.design import Bools, Floats, Ints, StratumCounts

SURE = 1e-4  # relative error of a count of strata that are labelled whole: a gamma variable must have some


@dataclass(frozen=True)
class Count:
    """A weighted count of labels at each point: its sum, its variance, and the mean and variance of one label that the
    heaviest stratum would add."""

    total: Floats
    variance: Floats
    label: Floats
    label_variance: Floats

    @property
    def shape(self) -> Floats:
        return self._mean**2 / self._variance

    @property
    def scale(self) -> Floats:
        return self._variance / self._mean

    @property
    def _mean(self) -> Floats:
        return self.total + self.label / 2

    @property
    def _variance(self) -> Floats:
        return np.maximum(self.variance + self.label_variance / 2, (SURE * self._mean) ** 2)


def found_and_missed(strata: StratumCounts, worth: Floats) -> tuple[Count, Count]:
    """The hallucinated labels that each point flags, and those that it does not. A label is `worth` as much, 0 to 1,
    as one of a trace that shares nothing with others.

    It can be flagged where some of its stratum are, and missed where some are not; where there is no such stratum, in
    any.
    """
    there = strata.rows > 0
    tp, flagged = strata.tp[there], (strata.tp + strata.fp)[there]
    missed, rows = strata.positives[there][:, None] - tp, strata.rows[there]
    weight, left = strata.weight[there], 1 - strata.sampled[there]
    some, others = flagged > 0, flagged < rows[:, None]
    parts = (tp, some), (missed, others)
    found, lost = (_count(labels, possible, rows, weight, left, worth) for labels, possible in parts)
    return found, lost


def flagged_and_passed(strata: StratumCounts, *, clean: bool) -> tuple[Count, Count]:
    """What each point flags, of all labels or of the clean ones, and what it does not. A label more could be flagged in
    any stratum: for strata that know nothing of the score, where few flags mean little."""
    there = strata.rows > 0
    tp, fp, rows = strata.tp[there], strata.fp[there], strata.rows[there]
    part = fp if clean else tp + fp
    rest = (rows - strata.positives[there] if clean else rows)[:, None] - part
    weight, left, worth = strata.weight[there], 1 - strata.sampled[there], np.ones(part.shape[1])
    flagged, passed = (
        _count(labels, possible, rows, weight, left, worth)
        for labels, possible in ((part, np.ones(part.shape, dtype=bool)), (rest, tp + fp < rows[:, None]))
    )
    return flagged, passed


def share(part: Count, rest: Count, *, confidence: float) -> tuple[Floats, Floats]:
    """The lower and upper bound of part / (part + rest): 0 where nothing is in the part, 1 where nothing is in the
    rest, NaN where both are empty."""
    from scipy.special import betaincinv

    with np.errstate(divide="ignore", invalid="ignore"):
        value = part.total / (part.total + rest.total)
        low, high = (
            _unscaled(betaincinv(part.shape, rest.shape, chance), part.scale / rest.scale)
            for chance in (0.5 - confidence / 2, 0.5 + confidence / 2)
        )
    low, high = np.where(part.total > 0, np.fmin(low, value), 0.0), np.where(rest.total > 0, np.fmax(high, value), 1.0)
    unknown = np.isnan(value)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _count(labels: Ints, possible: Bools, rows: Ints, weight: Floats, left: Floats, worth: Floats) -> Count:
    """`labels` per stratum and point, `possible` where one could have been; `left`: the part of a stratum not drawn."""
    spread = weight**2 * left
    at = np.argmax(np.where(possible | ~possible.any(axis=0), weight[:, None], -1.0), axis=0)
    return Count(
        total=weight @ labels,
        variance=spread @ (labels * (1 - labels / rows[:, None])) / worth,
        label=(weight * left)[at],
        label_variance=spread[at] / worth,
    )


def _unscaled(quantile: Floats, scale: Floats) -> Floats:
    """The share whose odds are `scale` times those of the quantile, which is a hair above 1 where shapes are huge."""
    return np.asarray(np.clip(quantile * scale / (quantile * scale + 1 - quantile), 0.0, 1.0))
