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

from calibrate.stats.sweep.design import Floats, Ints, StratumCounts

SURE = 1e-4  # relative error of a count that nothing leaves open: a gamma variable must have some


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


def right_and_wrong(strata: StratumCounts, worth: Floats) -> tuple[Count, Count]:
    """The hallucinated labels that each point flags, and the clean ones: one more of either where there are some. A
    label is `worth` as much, 0 to 1, as one of a trace that shares nothing with others."""
    some = (strata.tp + strata.fp > 0).astype(np.float64)
    return _count(strata, strata.tp, strata.fp, some, worth), _count(strata, strata.fp, strata.tp, some, worth)


def found_and_missed(strata: StratumCounts, worth: Floats) -> tuple[Count, Count]:
    """The hallucinated labels that each point flags, and those that it does not.

    One more can be missed where some of its stratum are, and flagged where some are. In strata that know nothing of the
    score, to see none flagged may be chance: that so many labels miss what has the share of all that were found.
    """
    flagged, rows = strata.tp + strata.fp, strata.rows[:, None]
    missed = strata.positives[:, None] - strata.tp
    chance = np.zeros(flagged.shape)
    if not strata.ranked:
        chance = (1 - strata.tp.sum(axis=0) / strata.rows.sum()) ** rows
    found = _count(strata, strata.tp, missed, np.where(flagged > 0, 1.0, chance), worth)
    lost = _count(strata, missed, strata.tp, (flagged < rows).astype(np.float64), worth)
    return found, lost


def flagged_and_passed(strata: StratumCounts, worth: Floats, *, clean: bool) -> tuple[Count, Count]:
    """What each point flags, of all labels or of the clean ones, and what it does not. A label more could be flagged in
    any stratum: for strata that know nothing of the score, where few flags mean little."""
    flagged, rows = strata.tp + strata.fp, strata.rows[:, None]
    part = strata.fp if clean else flagged
    rest = (rows - strata.positives[:, None] if clean else rows) - part
    more = _count(strata, part, rest, np.ones(part.shape), worth)
    return more, _count(strata, rest, part, (flagged < rows).astype(np.float64), worth)


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


def _count(strata: StratumCounts, labels: Ints, others: Ints, chance: Floats, worth: Floats) -> Count:
    """`labels` per stratum and point, of which the `others` of the same share are known. `chance`, 0 to 1: that a
    stratum could have shown one label more; where none could, any is taken for able to.

    A stratum's labels have one total, so its label fewer in one count is often one more in the other. Each count takes
    half of that covariance, so that the variances of their logarithms add up to that of their ratio's. Where a label is
    worth less than one, the label that is added is one that is worth as much as one.
    """
    there = (strata.rows > 0)[:, None]
    rows = np.where(there, strata.rows[:, None], 1)
    spread = strata.weight**2
    once = rows == 1  # one row has no spread of its own; its distance from 0 errs on the safe side
    apart = np.where(once, labels, labels * (1 - labels / rows) * rows / np.maximum(rows - 1, 1))
    both = labels * others / np.maximum(rows - 1, 1)
    total, rest = strata.weight @ labels, strata.weight @ others
    odds = np.divide(total, rest, out=np.zeros_like(total), where=rest > 0)
    chance = np.where(there, np.where(chance.any(axis=0), chance, 1.0), 0.0)
    at = np.argmax(strata.weight[:, None] * chance, axis=0)
    likely = np.take_along_axis(chance, at[None], axis=0)[0]
    return Count(
        total=total,
        variance=(spread @ apart + odds * (spread @ both)) / worth,
        label=strata.weight[at] * likely / worth,
        label_variance=spread[at] * likely / worth**2,
    )


def _unscaled(quantile: Floats, scale: Floats) -> Floats:
    """The share whose odds are `scale` times those of the quantile, which is a hair above 1 where shapes are huge."""
    return np.asarray(np.clip(quantile * scale / (quantile * scale + 1 - quantile), 0.0, 1.0))
