"""How far detectors fire together: their correlation, and the false alarms they raise beside what independence says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.ensembles.combine import Material
from calibrate.stats.ensembles.performance import of_flags
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import Interval


@dataclass(frozen=True)
class Joint:
    """The share of clean traces that at least `k` detectors flag: as measured, and as it would be were the detectors
    independent of each other at the rates they have one by one; unknown without a clean label."""

    k: int
    measured: Interval
    assumed: float | None


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of the detectors' oriented scores among clean labels, -1 to 1, each pair on the `n`
    traces that both scored; NaN where they are fewer than 3 or do not vary. Both have shape (detectors, detectors)."""

    names: tuple[str, ...]
    rho: Floats
    n: Ints


def joint(material: Material, flags: Mapping[str, Bools]) -> tuple[Joint, ...]:
    """At least 1, 2, ... of the detectors flag a clean trace; nothing of fewer than two. `flags` are theirs of the
    labelled traces."""
    if len(flags) < 2:
        return ()
    each = np.stack([flags[name] for name in sorted(flags)])
    together = each.sum(axis=0) >= np.arange(1, len(each) + 1)[:, None]
    measured = [of_flags(material, some).fpr for some in together]
    clean = ~material.labels
    if not clean.any():
        return tuple(Joint(k, one, None) for k, one in enumerate(measured, start=1))
    rates = at_least(np.average(each[:, clean], axis=1, weights=material.weights[clean]))
    return tuple(Joint(k, one, float(rate)) for k, (one, rate) in enumerate(zip(measured, rates, strict=True), start=1))


def at_least(rates: Floats) -> Floats:
    """P(at least k of them), k = 1 ... D, for independent events with these chances on the last axis (the
    Poisson-binomial distribution). For k = 1 it is 1 - product of (1 - rate)."""
    many = rates.shape[-1]
    chance = np.zeros((*rates.shape[:-1], many + 1))
    chance[..., 0] = 1.0
    for place in range(many):
        p = rates[..., place, None]
        chance[..., 1:] = chance[..., 1:] * (1 - p) + chance[..., :-1] * p
        chance[..., 0] *= 1 - p[..., 0]
    return np.asarray(np.cumsum(chance[..., ::-1], axis=-1)[..., -2::-1])


def correlation(material: Material) -> Correlation:
    """Weighted by what each label stands for, as the traffic has it and not the sample."""
    clean, names = ~material.labels, material.names
    w = material.weights[clean]
    columns = [suspicion(material.scores[name][clean], material.flag_when[name]) for name in names]
    rho = np.full((len(names), len(names)), np.nan)
    n = np.zeros((len(names), len(names)), dtype=np.int64)
    for i, one in enumerate(columns):
        for j, other in enumerate(columns[: i + 1]):
            both = np.isfinite(one) & np.isfinite(other)
            n[i, j] = n[j, i] = np.count_nonzero(both)
            rho[i, j] = rho[j, i] = spearman(one[both], other[both], w[both])
    return Correlation(names, rho, n)


def spearman(first: Floats, second: Floats, weights: Floats) -> float:
    """Pearson's correlation of weighted mid-ranks; with equal weights Spearman's rho. NaN where there is none."""
    if len(first) < 3:
        return float("nan")
    x, y = (ranks - np.average(ranks, weights=weights) for ranks in (_ranks(one, weights) for one in (first, second)))
    spread = np.sqrt(np.sum(weights * x**2) * np.sum(weights * y**2))
    return float(np.clip(np.sum(weights * x * y) / spread, -1, 1)) if spread > 0 else float("nan")


def _ranks(values: Floats, weights: Floats) -> Floats:
    distinct, code = np.unique(values, return_inverse=True)
    here = np.bincount(code, weights=weights, minlength=len(distinct))
    return np.asarray((np.cumsum(here) - here / 2)[code])
