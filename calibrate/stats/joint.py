"""How far detectors fire together: their correlation, and the false alarms they raise beside what independence says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.stats import counts
from calibrate.stats.combine import Material
from calibrate.stats.design import Bools, Floats, Ints, StratumCounts
from calibrate.stats.ensemble import sign
from calibrate.stats.performance import share_interval
from calibrate.types import Interval


@dataclass(frozen=True)
class Joint:
    """The share of clean traces that at least `k` detectors flag: as measured, and as it would be were the detectors
    independent of each other at the rates they have one by one."""

    k: int
    measured: Interval
    assumed: Interval


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of the detectors' oriented scores among clean labels, -1 to 1, each pair on the `n`
    traces that both scored; NaN where they are fewer than 3 or do not vary. Both have shape (detectors, detectors)."""

    names: tuple[str, ...]
    rho: Floats
    n: Ints


def joint(material: Material, flags: Mapping[str, Bools], drawn: Floats) -> tuple[Joint, ...]:
    """At least 1, 2, ... of the detectors flag a clean trace. `flags` are theirs of the labelled traces, `drawn` the
    resamples."""
    clean = ~material.labels
    each = np.stack([flags[name] for name in sorted(flags)], axis=1)
    together = each.sum(axis=1)[:, None] >= np.arange(1, len(flags) + 1)
    w = material.weights[clean]
    if not len(w):
        return tuple(Joint(k, Interval(None), Interval(None)) for k in range(1, len(flags) + 1))
    weights = np.vstack([w, drawn[:, clean]])
    whole = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, whole, out=np.full_like(weights, np.nan), where=whole > 0)
    # By strata the few false alarms lie where labels weigh little: their rate is known better than as many labels say.
    labels = float(len(w)) if material.strata is None else np.inf
    kish = float(w.sum() ** 2 / (w**2).sum())
    assumed, measured = (
        [share_interval(float(r[0]), r[1:], labels=labels, kish=kish) for r in rates.T]
        for rates in (at_least(weights @ each[clean]), weights @ together[clean])
    )
    if material.strata is not None and all(group is None for group in material.groups):
        measured = _by_strata(material, material.strata, together & clean[:, None])
    return tuple(Joint(k + 1, *both) for k, both in enumerate(zip(measured, assumed, strict=True)))


def _by_strata(material: Material, strata: Ints, alarms: Bools) -> list[Interval]:
    """What recall is of hallucinated labels, of clean ones: the strata are ranked by no single one of the detectors."""
    n = int(strata.max()) + 1
    weight = np.ones(n)
    weight[strata] = material.weights
    fp = np.stack([np.bincount(strata, weights=some, minlength=n) for some in alarms.T], axis=1).astype(np.int64)
    counted = StratumCounts(
        tp=fp,
        fp=np.zeros_like(fp),
        rows=np.bincount(strata, minlength=n),
        positives=np.bincount(strata[~material.labels], minlength=n),
        weight=weight,
        sampled=np.zeros(n),
        ranked=False,
    )
    part, rest = counts.found_and_missed(counted, np.ones(fp.shape[1]))
    low, high = counts.share(part, rest, confidence=0.95)
    value = part.total / (part.total + rest.total)
    return [Interval(float(v), float(a), float(b)) for v, a, b in zip(value, low, high, strict=True)]


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
    columns = [sign(material.flag_when[name]) * material.scores[name][clean] for name in names]
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
