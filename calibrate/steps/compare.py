"""Two settings of one detector on the same labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats import compare as ranks
from calibrate.stats.sweep import Sweep, sweep
from calibrate.steps.tune import Labelled, labelled
from db import Store
from db.scores import Config


@dataclass(frozen=True)
class Compared:
    """Two configurations on the labels that both could score, and their curves there."""

    result: ranks.Comparison
    curves: tuple[Sweep, Sweep]


def compare(store: Store, first: Config, second: Config, *, sample: str | None = None, seed: int = 0) -> Compared:
    """Two configurations of one detector on the definite labels that both have scored. The same seed, the same answer.

    Traces that share their sources are drawn together.
    """
    if first.name != second.name:
        raise BadInput(f"{first.name} and {second.name} are two detectors: compare two settings of one")
    one, other = (labelled(store, config.name, sample=sample, config=config) for config in (first, second))
    weight = dict(zip((row.pk for row in one.rows), _weights(one), strict=True))
    values = {row.pk: row.value for row in other.rows if row.value is not None}
    rows = [row for row in one.rows if row.value is not None and row.pk in values]
    y = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    scores = np.array([row.value for row in rows], dtype=float), np.array([values[row.pk] for row in rows], dtype=float)
    weights = np.array([weight[row.pk] for row in rows], dtype=float)
    groups = np.array([f"group {row.group}" if row.group else f"trace {row.pk}" for row in rows], dtype=object)
    result = ranks.compare(
        y, *scores, rng=np.random.default_rng(seed), flag_when=one.flag_when, clusters=groups.astype(str),
        weights=weights,
    )  # fmt: skip
    curves = [sweep(y, score, weights=weights, flag_when=one.flag_when) for score in scores]
    return Compared(result, (curves[0], curves[1]))


def _weights(data: Labelled) -> Sequence[float]:
    """How many traces of the traffic every labelled row stands for, as the sweep has it."""
    strata = data.sweep.strata
    if data.sample is None or strata is None:
        return [1.0] * len(data.rows)
    code = {name: place for place, name in enumerate(sorted(data.sample.strata))}
    return [float(strata.weight[code[row.stratum]]) for row in data.rows]
