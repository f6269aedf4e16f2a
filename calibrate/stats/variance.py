"""The design variance of a sweep's shares: precision, recall, false-positive rate and flag rate are all one formula."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.clusters import Clusters
from calibrate.stats.design import Floats, Ints, StratumCounts
from calibrate.stats.sweep import Sweep


@dataclass(frozen=True)
class Ratio:
    """A share of labels: `part` of `whole`, per stratum in labels and over all in weights.

    `part_squared` and `rest_squared` are sums over clusters (of single traces where none share sources) of the squared
    weight of the part and of the whole without the part, `cross` of their products; `weight` is the sum of weights of
    the whole, `labels` its labels. Without strata, or with clusters, `part` and `whole` are None.
    """

    value: Floats
    part_squared: Floats
    rest_squared: Floats
    cross: Floats
    weight: Floats | float
    labels: Ints | int
    part: Ints | None
    whole: Ints | None

    @property
    def kish(self) -> Floats:
        """How many clusters of equal weight the whole is worth (Kish); NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.weight**2 / (self.part_squared + 2 * self.cross + self.rest_squared))


def precision(sweep: Sweep) -> Ratio:
    """Of what is flagged at each point, what is hallucinated."""
    strata, sums = sampled_strata(sweep), _sums(sweep)
    return Ratio(
        value=sweep.precision,
        part_squared=sums.tt,
        rest_squared=sums.ff,
        cross=sums.tf,
        weight=sweep.tp + sweep.fp,
        labels=sweep.tp_count + sweep.fp_count,
        part=strata.tp if strata else None,
        whole=strata.tp + strata.fp if strata else None,
    )


def recall(sweep: Sweep) -> Ratio:
    """Of what is hallucinated, scored or not, what is flagged at each point."""
    strata, sums = sampled_strata(sweep), _sums(sweep)
    return Ratio(
        value=sweep.recall,
        part_squared=sums.tt,
        rest_squared=sums.pp - 2 * sums.tp + sums.tt,
        cross=sums.tp - sums.tt,
        weight=sweep.weighted_positives,
        labels=sweep.positives,
        part=strata.tp if strata else None,
        whole=strata.positives[:, None] if strata else None,
    )


def false_positive_rate(sweep: Sweep) -> Ratio:
    """Of what is clean, scored or not, what is flagged at each point."""
    strata, sums = sampled_strata(sweep), _sums(sweep)
    return Ratio(
        value=sweep.fpr,
        part_squared=sums.ff,
        rest_squared=sums.cc - 2 * sums.fc + sums.ff,
        cross=sums.fc - sums.ff,
        weight=sweep.weighted_n - sweep.weighted_positives,
        labels=sweep.negatives,
        part=strata.fp if strata else None,
        whole=(strata.rows - strata.positives)[:, None] if strata else None,
    )


def flag_rate(sweep: Sweep) -> Ratio:
    """Of everything, what is flagged at each point."""
    strata, sums = sampled_strata(sweep), _sums(sweep)
    flagged, of_all = sums.tt + 2 * sums.tf + sums.ff, sums.tn + sums.fn
    return Ratio(
        value=sweep.flag_rate,
        part_squared=flagged,
        rest_squared=sums.nn - 2 * of_all + flagged,
        cross=of_all - flagged,
        weight=sweep.weighted_n,
        labels=sweep.n,
        part=strata.tp + strata.fp if strata else None,
        whole=strata.rows[:, None] if strata else None,
    )


def sampled_strata(sweep: Sweep) -> StratumCounts | None:
    """The strata that labels were drawn from; None without labels, and with clusters, which cross strata and are then
    what was drawn: taking them as drawn from all over errs on the safe side."""
    return None if sweep.clusters or not sweep.n else sweep.strata


def _sums(sweep: Sweep) -> Clusters:
    """The clusters' sums, or those of traces that share nothing: each a cluster of its own."""
    if sweep.clusters:
        return sweep.clusters
    hits, alarms = sweep.tp_squared, sweep.fp_squared
    return Clusters(
        count=sweep.n,
        tt=hits,
        ff=alarms,
        tf=np.zeros(len(sweep)),
        tp=hits,
        fc=alarms,
        fn=alarms,
        tn=hits,
        pp=sweep.squared_positives,
        cc=sweep.squared_n - sweep.squared_positives,
        nn=sweep.squared_n,
    )


def variance(sweep: Sweep, ratio: Ratio) -> Floats:
    """The design variance of a ratio: Taylor-linearised, per stratum, without replacement.

    A row's residual is 1 - P in the part, -P in the rest of the whole, 0 outside. Without a design: weighted rows, or
    clusters of them, of a large population, whose residuals have mean 0.
    """
    p, strata = ratio.value, sampled_strata(sweep)
    if strata is None or ratio.part is None or ratio.whole is None:
        squares = (1 - p) ** 2 * ratio.part_squared + p**2 * ratio.rest_squared
        if sweep.clusters:
            many = np.maximum(ratio.kish, 2.0)
            squares = np.maximum(squares - 2 * p * (1 - p) * ratio.cross, 0.0) * many / (many - 1)
        return np.asarray(squares / ratio.weight**2)
    total = np.zeros(len(sweep))
    for h in np.flatnonzero(strata.rows):
        n = int(strata.rows[h])
        part, rest = ratio.part[h], ratio.whole[h] - ratio.part[h]
        squares = (1 - p) ** 2 * part + p**2 * rest
        mean = ((1 - p) * part - p * rest) / n
        # One row has no spread of its own; its distance from 0 errs on the safe side.
        spread = (squares - n * mean**2) * n / (n - 1) if n > 1 else squares
        total += strata.weight[h] ** 2 * (1 - strata.sampled[h]) * spread
    # Rounding leaves a hair below zero where every residual is the same.
    return np.asarray(np.maximum(total, 0.0) / ratio.weight**2)
