"""How far detectors flag together: their correlation, and the clean traces that several of them flag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.ensembles.performance import measure_flags
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import Interval


@dataclass(frozen=True)
class Joint:
    """The share of clean traces that at least `k` detectors flag; unknown without a clean label."""

    k: int
    measured: Interval


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of the detectors' oriented scores among clean labels, -1 to 1, each pair on the `n`
    traces that both scored; NaN where they are fewer than 3 or do not vary. Both have shape (detectors, detectors)."""

    names: tuple[str, ...]
    rho: Floats
    n: Ints


def joint_false_positives(training: TrainingData, flags: Mapping[str, Bools]) -> tuple[Joint, ...]:
    """How many clean traces at least 1, 2, ... of the detectors flag.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    flags : mapping of str to array of bool, shape (labels,)
        What each detector flags.

    Returns
    -------
    tuple of Joint
        For 1, 2, ... detectors; empty for fewer than two.
    """
    if len(flags) < 2:
        return ()
    each = np.stack([flags[name] for name in sorted(flags)])
    together = each.sum(axis=0) >= np.arange(1, len(each) + 1)[:, None]
    return tuple(Joint(k, measure_flags(training, rows).fpr) for k, rows in enumerate(together, start=1))


def correlation(training: TrainingData) -> Correlation:
    """Rank correlation of the detectors among clean labels, weighted as the traffic has them.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.

    Returns
    -------
    Correlation
        Spearman's, by pair of detectors.
    """
    clean, names = ~training.labels, training.names
    w = training.weights[clean]
    columns = [suspicion(training.scores[name][clean], training.flag_when[name]) for name in names]
    rho = np.full((len(names), len(names)), np.nan)
    n = np.zeros((len(names), len(names)), dtype=np.int64)
    for i, first in enumerate(columns):
        for j, second in enumerate(columns[: i + 1]):
            both = np.isfinite(first) & np.isfinite(second)
            n[i, j] = n[j, i] = np.count_nonzero(both)
            rho[i, j] = rho[j, i] = spearman(first[both], second[both], w[both])
    return Correlation(names, rho, n)


def spearman(first: Floats, second: Floats, weights: Floats) -> float:
    """Pearson's correlation of weighted mid-ranks; with equal weights Spearman's rho.

    NaN where there is none.

    Parameters
    ----------
    first, second : array of float, shape (traces,)
        Scores that both have.
    weights : array of float, shape (traces,)
        What each trace stands for.

    Returns
    -------
    float
        -1 to 1.
    """
    if len(first) < 3:
        return float("nan")
    x, y = (
        ranks - np.average(ranks, weights=weights) for ranks in (_rank(values, weights) for values in (first, second))
    )
    spread = np.sqrt(np.sum(weights * x**2) * np.sum(weights * y**2))
    return float(np.clip(np.sum(weights * x * y) / spread, -1, 1)) if spread > 0 else float("nan")


def _rank(values: Floats, weights: Floats) -> Floats:
    distinct, code = np.unique(values, return_inverse=True)
    here = np.bincount(code, weights=weights, minlength=len(distinct))
    return np.asarray((np.cumsum(here) - here / 2)[code])
