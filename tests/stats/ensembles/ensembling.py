"""Labelled traces with correlated detectors of known strength, and the traffic they were drawn from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sampling.designs import allocate
from calibrate.stats.sweep.design import Design
from calibrate.types import FlagWhen

NAMES = ("a", "b", "c", "d")
WAYS: dict[str, FlagWhen] = {"a": "above", "b": "below", "c": "above", "d": "below"}


def equicorrelated(rng: np.random.Generator, n: int, *, rho: float) -> dict[str, NDArray[np.float64]]:
    common, own = rng.standard_normal(n), rng.standard_normal((4, n))
    return {name: np.sqrt(rho) * common + np.sqrt(1 - rho) * one for name, one in zip(NAMES, own, strict=True)}


def world(
    rng: np.random.Generator, n: int, *, auroc: tuple[float, ...], prevalence: float = 0.1, rho: float = 0.5
) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.float64]]]:
    """Truth, and normal scores with this correlation given the truth."""
    y = rng.random(n) < prevalence
    scores = equicorrelated(rng, n, rho=rho)
    for name, area in zip(NAMES, auroc, strict=True):
        shifted = scores[name] + norm.ppf(area) * np.sqrt(2) * y
        scores[name] = shifted if WAYS[name] == "above" else -shifted
    return y, scores


def material(
    *,
    seed: int,
    n: int,
    missing: float = 0.0,
    weighted: bool = True,
    traffic: int = 3000,
    auroc: tuple[float, ...] = (0.8, 0.76, 0.72, 0.68),
) -> TrainingData:
    rng = np.random.default_rng(seed)
    y, scores = world(rng, n, auroc=auroc)
    _, pool = world(rng, traffic, auroc=auroc)
    for some in (scores, pool):
        for values in some.values():
            values[rng.random(len(values)) < missing] = np.nan
    weights = rng.uniform(0.5, 3, n) if weighted else np.ones(n)
    return TrainingData(y, weights, [None] * n, None, scores, pool, np.ones(traffic), WAYS)


def take(given: TrainingData, rows: NDArray[np.int64]) -> TrainingData:
    return replace(
        given,
        labels=given.labels[rows],
        weights=given.weights[rows],
        groups=[given.groups[row] for row in rows],
        scores={name: values[rows] for name, values in given.scores.items()},
    )


@dataclass(frozen=True)
class Octaves:
    """Traffic whose truth is known, and what it takes to draw labels from it by octaves of two detectors' mean."""

    truth: NDArray[np.bool_]
    scores: dict[str, NDArray[np.float64]]
    members: list[NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        rng: np.random.Generator,
        *,
        prevalence: float,
        auroc: float,
        other: float | None = None,
        rho: float = 0.5,
        n: int = 2**16,
    ) -> Octaves:
        areas = (auroc, auroc - 0.05 if other is None else other, 0.5, 0.5)
        truth, made = world(rng, n, auroc=areas, prevalence=prevalence, rho=rho)
        scores = {"a": made["a"], "b": -made["b"]}
        place = np.empty(n)
        place[np.argsort(-scores["a"] - scores["b"])] = np.arange(n) + 0.5
        stratum = np.clip(9 + np.floor(np.log2(place / n)), 0, 8)
        return cls(truth, scores, [np.flatnonzero(stratum == h) for h in range(9)])

    def label(self, n: int, rng: np.random.Generator) -> tuple[TrainingData, Design]:
        sizes = {str(h): len(rows) for h, rows in enumerate(self.members)}
        drawn = [rng.choice(rows, allocate(sizes, n)[str(h)], replace=False) for h, rows in enumerate(self.members)]
        rows, strata = np.concatenate(drawn), np.repeat(np.arange(9), [len(some) for some in drawn])
        design = Design(strata, np.array(list(sizes.values())))
        scores = {name: values[rows] for name, values in self.scores.items()}
        ways: dict[str, FlagWhen] = dict.fromkeys(scores, "above")
        given = TrainingData(self.truth[rows], design.weights, [None] * n, design, scores, scores, design.weights, ways)
        return given, design
