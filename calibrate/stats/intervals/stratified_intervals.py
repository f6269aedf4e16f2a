"""Intervals of shares from a stratified draw: two weighted counts, or Wilson's interval of each stratum put together.

A weighted count is nearly a gamma variable of its mean and variance (Fay and Feuer 1997), and the share of two such
counts is a beta variable with its odds scaled (`share_interval`). Each count gets half a label of the heaviest stratum
that one could have come from: with equal weights that is Jeffreys' interval of a share (Brown, Cai and DasGupta 2001),
and in a stratum of large weight it keeps "no miss seen" from claiming that there is none.

Where the score itself ranks the strata, nearly all of them are flagged whole or not at all, and what is uncertain is
where between them a threshold lies. An effective size does not see that: it takes a label in the sure strata for one in
the others. There the distances of each stratum's Wilson bounds from its share, weighted and squared, add up (MOVER,
`flag_rate_interval`).

References
----------
Fay and Feuer, Statistics in Medicine 16 (1997). Brown, Cai and DasGupta, Statistical Science 16 (2001).
Zou and Donner, Statistics in Medicine 27 (2008). Yan and Su, Statistics in Biopharmaceutical Research 2 (2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.intervals.binomial_intervals import Range, wilson
from calibrate.stats.sweep.design import Bools, Floats, Ints, StratumCounts

SURE = 1e-4  # relative error of a count that is known exactly: a gamma variable must have a variance


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
        """The shape of the gamma variable."""
        return self._mean**2 / self._variance

    @property
    def scale(self) -> Floats:
        """The scale of the gamma variable."""
        return self._variance / self._mean

    @property
    def _mean(self) -> Floats:
        return self.total + self.label / 2

    @property
    def _variance(self) -> Floats:
        return np.maximum(self.variance + self.label_variance / 2, (SURE * self._mean) ** 2)


def count_right_and_wrong(strata: StratumCounts, worth: Floats) -> tuple[Count, Count]:
    """Count the hallucinated and the clean labels that each point flags, for precision.

    Parameters
    ----------
    strata : StratumCounts
        Flagged labels, arrays of shape (strata, points).
    worth : array of shape (points,)
        What a label is worth, 0 to 1, beside one whose trace shares its sources with none.

    Returns
    -------
    tuple of Count
        Hallucinated, then clean; a stratum that flags any label could have flagged one more of either.
    """
    flags = (strata.tp + strata.fp > 0).astype(np.float64)
    return _count(strata, strata.tp, strata.fp, flags, worth), _count(strata, strata.fp, strata.tp, flags, worth)


def count_caught_and_missed(strata: StratumCounts, worth: Floats) -> tuple[Count, Count]:
    """Count the hallucinated labels that each point flags and those it does not, for recall.

    One more can be missed where some of its stratum are, and flagged where some are. In strata that know nothing of the
    score, to see none flagged may be chance: that so many labels miss what has the share of all that were caught.

    Parameters
    ----------
    strata : StratumCounts
        Flagged labels, arrays of shape (strata, points).
    worth : array of shape (points,)
        What a label is worth, 0 to 1, beside one whose trace shares its sources with none.

    Returns
    -------
    tuple of Count
        Caught, then missed.
    """
    flagged, rows = strata.tp + strata.fp, strata.rows[:, None]
    missed = strata.positives[:, None] - strata.tp
    chance = np.zeros(flagged.shape)
    if not strata.ranked:
        chance = (1 - strata.tp.sum(axis=0) / strata.rows.sum()) ** rows
    return (
        _count(strata, strata.tp, missed, np.where(flagged > 0, 1.0, chance), worth),
        _count(strata, missed, strata.tp, (flagged < rows).astype(np.float64), worth),
    )


def count_flagged_and_passed(strata: StratumCounts, worth: Floats, *, clean: bool) -> tuple[Count, Count]:
    """Count what each point flags and what it does not, where the strata know nothing of the score.

    Parameters
    ----------
    strata : StratumCounts
        Flagged labels, arrays of shape (strata, points).
    worth : array of shape (points,)
        What a label is worth, 0 to 1, beside one whose trace shares its sources with none.
    clean : bool
        Count clean labels only, for the false-positive rate; else all, for the flag rate.

    Returns
    -------
    tuple of Count
        Flagged, then not. Any stratum could have flagged one label more: few flags mean little here.
    """
    flagged, rows = strata.tp + strata.fp, strata.rows[:, None]
    part = strata.fp if clean else flagged
    rest = (rows - strata.positives[:, None] if clean else rows) - part
    more = _count(strata, part, rest, np.ones(part.shape), worth)
    return more, _count(strata, rest, part, (flagged < rows).astype(np.float64), worth)


def share_interval(part: Count, rest: Count, *, confidence: float = 0.95) -> Range:
    """Interval of part / (part + rest), from the beta distribution of two gamma variables.

    Parameters
    ----------
    part, rest : Count
        What the share counts, and what else there is.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Range
        Shares, one pair per point: from 0 where nothing is in the part, to 1 where nothing is in the rest, NaN where
        both are empty.
    """
    from scipy.special import betaincinv

    with np.errstate(divide="ignore", invalid="ignore"):
        value = part.total / (part.total + rest.total)
        low, high = (
            _unscaled(betaincinv(part.shape, rest.shape, chance), part.scale / rest.scale)
            for chance in (0.5 - confidence / 2, 0.5 + confidence / 2)
        )
    low, high = np.where(part.total > 0, np.fmin(low, value), 0.0), np.where(rest.total > 0, np.fmax(high, value), 1.0)
    unknown = np.isnan(value)
    return Range(np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def flag_rate_interval(strata: StratumCounts, worth: Floats, *, confidence: float = 0.95) -> Range:
    """Interval of the flag rate where the score ranks the strata (MOVER).

    Strata count that are flagged in part. Where exactly one is, those above it are known to be flagged and those below
    not to be: the threshold is in it. Else the heaviest flagged whole may hold a trace that is not, and the lightest
    without a flag one that is.

    Parameters
    ----------
    strata : StratumCounts
        Flagged labels, arrays of shape (strata, points); rows without a score are not flagged.
    worth : array of shape (points,)
        What a label is worth, 0 to 1, beside one whose trace shares its sources with none.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Range
        Shares, one pair per point.
    """
    sampled = strata.rows > 0
    flagged, rows = (strata.tp + strata.fp)[sampled], strata.rows[sampled][:, None]
    weight = (strata.weight[sampled] * strata.rows[sampled])[:, None]
    share = flagged / rows
    bounds = wilson(share, np.broadcast_to(rows.astype(np.float64), share.shape) * worth, confidence=confidence)
    squared = (weight / weight.sum()) ** 2
    below, above = squared * (share - bounds.low) ** 2, squared * (bounds.high - share) ** 2
    mixed, whole, none = (flagged > 0) & (flagged < rows), flagged == rows, flagged == 0
    elsewhere = mixed.sum(axis=0) != 1
    value = (weight * share).sum(axis=0) / weight.sum()
    down = (below * (mixed | elsewhere & _first(whole, -weight))).sum(axis=0)
    up = (above * (mixed | elsewhere & _first(none, weight))).sum(axis=0)
    return Range(np.maximum(value - np.sqrt(down), 0.0), np.minimum(value + np.sqrt(up), 1.0))


def _first(among: Bools, order: Floats) -> Bools:
    """The stratum at each point that comes first in `order`, if `among` holds any."""
    place = np.argmin(np.where(among, order, np.inf), axis=0)
    first: Bools = among & (np.arange(len(order))[:, None] == place)
    return first


def _count(strata: StratumCounts, labels: Ints, others: Ints, chance: Floats, worth: Floats) -> Count:
    """`labels` per stratum and point, of which the `others` of the same share are known. `chance`, 0 to 1: that a
    stratum could have shown one label more; where none could, any is taken for able to.

    A stratum's labels have one total, so its label fewer in one count is often one more in the other. Each count takes
    half of that covariance, so that the variances of their logarithms add up to that of their ratio's. Where a label is
    worth less than one, the label that is added is one that is worth as much as one.
    """
    sampled = (strata.rows > 0)[:, None]
    rows = np.where(sampled, strata.rows[:, None], 1)
    spread = strata.weight**2
    once = rows == 1  # one row has no spread of its own; its distance from 0 errs on the safe side
    apart = np.where(once, labels, labels * (1 - labels / rows) * rows / np.maximum(rows - 1, 1))
    both = labels * others / np.maximum(rows - 1, 1)
    total, rest = strata.weight @ labels, strata.weight @ others
    odds = np.divide(total, rest, out=np.zeros_like(total), where=rest > 0)
    chance = np.where(sampled, np.where(chance.any(axis=0), chance, 1.0), 0.0)
    heaviest = np.argmax(strata.weight[:, None] * chance, axis=0)
    likely = np.take_along_axis(chance, heaviest[None], axis=0)[0]
    return Count(
        total=total,
        variance=(spread @ apart + odds * (spread @ both)) / worth,
        label=strata.weight[heaviest] * likely / worth,
        label_variance=spread[heaviest] * likely / worth**2,
    )


def _unscaled(quantile: Floats, scale: Floats) -> Floats:
    """The share whose odds are `scale` times those of the quantile, which is a hair above 1 where shapes are huge."""
    return np.asarray(np.clip(quantile * scale / (quantile * scale + 1 - quantile), 0.0, 1.0))
