"""The design variance of a sweep's shares: precision, recall, false-positive rate and flag rate are all one formula."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.design import Floats, Ints
from calibrate.stats.sweep import Sweep

# Half a missed label split in two: keeps a stratum that happened to show no miss from claiming it has none.
QUARTER = 0.25


@dataclass(frozen=True)
class Ratio:
    """A share of labels: `part` of `whole`, per stratum in labels and over all in weights.

    `part_squared` and `rest_squared` are sums of squared weights of the part and of the whole without the part,
    `weight` the sum of weights of the whole, `labels` its labels.
    """

    value: Floats
    part_squared: Floats
    rest_squared: Floats
    weight: Floats | float
    labels: Ints | int
    part: Ints | None
    whole: Ints | None


def precision(sweep: Sweep) -> Ratio:
    """Of what is flagged at each point, what is hallucinated."""
    strata = sweep.strata
    return Ratio(
        value=sweep.precision,
        part_squared=sweep.tp_squared,
        rest_squared=sweep.fp_squared,
        weight=sweep.tp + sweep.fp,
        labels=sweep.tp_count + sweep.fp_count,
        part=strata.tp if strata else None,
        whole=strata.tp + strata.fp if strata else None,
    )


def recall(sweep: Sweep) -> Ratio:
    """Of what is hallucinated, scored or not, what is flagged at each point."""
    strata = sweep.strata
    return Ratio(
        value=sweep.recall,
        part_squared=sweep.tp_squared,
        rest_squared=sweep.squared_positives - sweep.tp_squared,
        weight=sweep.weighted_positives,
        labels=sweep.positives,
        part=strata.tp if strata else None,
        whole=strata.positives[:, None] if strata else None,
    )


def false_positive_rate(sweep: Sweep) -> Ratio:
    """Of what is clean, scored or not, what is flagged at each point."""
    strata = sweep.strata
    return Ratio(
        value=sweep.fpr,
        part_squared=sweep.fp_squared,
        rest_squared=sweep.squared_n - sweep.squared_positives - sweep.fp_squared,
        weight=sweep.weighted_n - sweep.weighted_positives,
        labels=sweep.negatives,
        part=strata.fp if strata else None,
        whole=(strata.rows - strata.positives)[:, None] if strata else None,
    )


def flag_rate(sweep: Sweep) -> Ratio:
    """Of everything, what is flagged at each point."""
    strata = sweep.strata
    flagged_squared = sweep.tp_squared + sweep.fp_squared
    return Ratio(
        value=sweep.flag_rate,
        part_squared=flagged_squared,
        rest_squared=sweep.squared_n - flagged_squared,
        weight=sweep.weighted_n,
        labels=sweep.n,
        part=strata.tp + strata.fp if strata else None,
        whole=strata.rows[:, None] if strata else None,
    )


def variance(sweep: Sweep, ratio: Ratio, quarter: float = 0.0) -> Floats:
    """The design variance of a ratio: Taylor-linearised, per stratum, without replacement.

    A row's residual is 1 - P in the part, -P in the rest of the whole, 0 outside. Without a design: weighted rows of a
    large population, whose residuals have mean 0. A `quarter` adds that much of a missed row to every stratum.
    """
    p, strata = ratio.value, sweep.strata
    if strata is None or ratio.part is None or ratio.whole is None:
        extra = quarter * sweep.squared_n / max(sweep.n, 1)
        squares = (1 - p) ** 2 * ratio.part_squared + p**2 * (ratio.rest_squared + extra)
        return np.asarray(squares / ratio.weight**2)
    total = np.zeros(len(sweep))
    for h in np.flatnonzero(strata.rows):
        n = int(strata.rows[h])
        part, rest = ratio.part[h], ratio.whole[h] - ratio.part[h]
        squares = (1 - p) ** 2 * part + p**2 * (rest + quarter)
        mean = ((1 - p) * part - p * rest) / n
        if quarter:
            spread = squares - n * mean**2
        elif n > 1:
            spread = (squares - n * mean**2) * n / (n - 1)
        else:
            # One row has no spread of its own; its distance from 0 errs on the safe side.
            spread = squares
        total += strata.weight[h] ** 2 * (1 - strata.sampled[h]) * spread
    # Rounding leaves a hair below zero where every residual is the same.
    return np.asarray(np.maximum(total, 0.0) / ratio.weight**2)
