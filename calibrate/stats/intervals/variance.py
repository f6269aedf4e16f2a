"""The design variance of a sweep's shares: precision, recall, false-positive rate and flag rate are all one formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrate.stats.sweep.clusters import Clusters
from calibrate.stats.sweep.design import Floats, Ints, StratumCounts
from calibrate.stats.sweep.sweep import Sweep

NONE = 1e-12  # of the squares of a ratio: residuals that are rounding


@dataclass(frozen=True)
class Squares:
    """Sums over clusters, or over single traces, of the squared weight of a ratio's part and of its whole without the
    part, and of their products (`cross`)."""

    part: Floats
    rest: Floats
    cross: Floats

    def about(self, p: Floats) -> Floats:
        """The sum of squared residuals, 1 - `p` in the part and -`p` in the rest."""
        return np.asarray(np.maximum((1 - p) ** 2 * self.part + p**2 * self.rest - 2 * p * (1 - p) * self.cross, 0.0))

    @property
    def total(self) -> Floats:
        return self.part + 2 * self.cross + self.rest


@dataclass(frozen=True)
class Ratio:
    """A share of labels: `part` of `whole`, per stratum in labels and over all in weights.

    `together` are squares over clusters, which are single traces where none share sources, and `alone` over single
    traces. `weight` is the sum of weights of the whole, `labels` its labels. Without strata `part` and `whole` are
    None.
    """

    value: Floats
    together: Squares
    alone: Squares
    weight: Floats | float
    labels: Ints | int
    part: Ints | None
    whole: Ints | None

    @property
    def kish(self) -> Floats:
        """How many clusters of equal weight the whole is worth (Kish); NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.weight**2 / self.together.total)

    @property
    def shared(self) -> Floats:
        """How many times the variance of single traces that of clusters is, at least 1."""
        if self.together is self.alone:
            return np.ones_like(self.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = self.alone.about(self.value)
            total = self.together.total / self.alone.total
            # A figure of 1 less a rounding leaves of both no more than that.
            times = np.where(alone > NONE * self.alone.total, self.together.about(self.value) / alone, total)
        return np.asarray(np.fmax(times, 1.0))


def precision_ratio(sweep: Sweep) -> Ratio:
    """Of what is flagged at each point, what is hallucinated.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.

    Returns
    -------
    Ratio
        One share per point.
    """
    strata = sampled_strata(sweep)
    return _ratio(
        sweep,
        lambda sums: Squares(sums.tt, sums.ff, sums.tf),
        value=sweep.precision,
        weight=sweep.tp + sweep.fp,
        labels=sweep.tp_count + sweep.fp_count,
        part=strata.tp if strata else None,
        whole=strata.tp + strata.fp if strata else None,
    )


def recall_ratio(sweep: Sweep) -> Ratio:
    """Of what is hallucinated, scored or not, what is flagged at each point.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.

    Returns
    -------
    Ratio
        One share per point.
    """
    strata = sampled_strata(sweep)
    return _ratio(
        sweep,
        lambda sums: Squares(sums.tt, sums.pp - 2 * sums.tp + sums.tt, sums.tp - sums.tt),
        value=sweep.recall,
        weight=sweep.weighted_positives,
        labels=sweep.positives,
        part=strata.tp if strata else None,
        whole=strata.positives[:, None] if strata else None,
    )


def false_positive_ratio(sweep: Sweep) -> Ratio:
    """Of what is clean, scored or not, what is flagged at each point.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.

    Returns
    -------
    Ratio
        One share per point.
    """
    strata = sampled_strata(sweep)
    return _ratio(
        sweep,
        lambda sums: Squares(sums.ff, sums.cc - 2 * sums.fc + sums.ff, sums.fc - sums.ff),
        value=sweep.fpr,
        weight=sweep.weighted_n - sweep.weighted_positives,
        labels=sweep.negatives,
        part=strata.fp if strata else None,
        whole=(strata.rows - strata.positives)[:, None] if strata else None,
    )


def flag_rate_ratio(sweep: Sweep) -> Ratio:
    """Of everything, what is flagged at each point.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.

    Returns
    -------
    Ratio
        One share per point.
    """
    strata = sampled_strata(sweep)
    return _ratio(
        sweep,
        _of_all,
        value=sweep.flag_rate,
        weight=sweep.weighted_n,
        labels=sweep.n,
        part=strata.tp + strata.fp if strata else None,
        whole=strata.rows[:, None] if strata else None,
    )


def sampled_strata(sweep: Sweep) -> StratumCounts | None:
    """The strata that labels were drawn from; None without labels.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.

    Returns
    -------
    StratumCounts or None
        None also where no strata were drawn from.
    """
    return sweep.strata if sweep.n else None


def variance(sweep: Sweep, ratio: Ratio) -> Floats:
    """The design variance of a ratio: Taylor-linearised, per stratum.

    There is no finite population correction: of the traffic to come nothing was drawn, however much of the window was.
    A row's residual is 1 - P in the part, -P in the rest of the whole, 0 outside. Without a design: weighted rows, or
    clusters of them, of a large population, whose residuals have mean 0. Clusters cross strata: with both it is that of
    the strata, as many times larger as clusters make it.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    ratio : Ratio
        One of its shares.

    Returns
    -------
    array of float, shape (points,)
        Variances of shares.

    References
    ----------
    Cochran, Sampling Techniques, 3rd ed. (1977), sections 5A and 6.11.
    """
    p, strata = ratio.value, sampled_strata(sweep)
    many = np.maximum(ratio.kish, 2.0)
    few = many / (many - 1) if sweep.clusters else 1.0
    if strata is None or ratio.part is None or ratio.whole is None:
        return np.asarray(ratio.together.about(p) * few / ratio.weight**2)
    total = np.zeros(len(sweep))
    for h in np.flatnonzero(strata.rows):
        n = int(strata.rows[h])
        part, rest = ratio.part[h], ratio.whole[h] - ratio.part[h]
        squares = (1 - p) ** 2 * part + p**2 * rest
        mean = ((1 - p) * part - p * rest) / n
        # One row has no spread of its own; its distance from 0 errs on the safe side.
        spread = (squares - n * mean**2) * n / (n - 1) if n > 1 else squares
        total += strata.weight[h] ** 2 * spread
    # Rounding leaves a hair below zero where every residual is the same.
    return np.asarray(np.maximum(total, 0.0) * ratio.shared * few / ratio.weight**2)


def _ratio(
    sweep: Sweep,
    squares: Callable[[Clusters], Squares],
    *,
    value: Floats,
    weight: Floats | float,
    labels: Ints | int,
    part: Ints | None,
    whole: Ints | None,
) -> Ratio:
    alone = squares(_singles(sweep))
    together = squares(sweep.clusters) if sweep.clusters else alone
    return Ratio(value, together, alone, weight, labels, part, whole)


def _of_all(sums: Clusters) -> Squares:
    flagged, of_all = sums.tt + 2 * sums.tf + sums.ff, sums.tn + sums.fn
    return Squares(flagged, sums.nn - 2 * of_all + flagged, of_all - flagged)


def _singles(sweep: Sweep) -> Clusters:
    """The sums of clusters, were each trace one of its own."""
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
