"""Which model answered, as a baseline, and how detectors rank the answers of one model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.fitting.category_rates import rate_categories
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.intervals.ranking_within import Within, rank_within
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import FlagWhen
from calibrate.workflow.evidence.score_matrix import ScoreMatrix
from db import Store

MODEL = "answering_model"


@dataclass(frozen=True)
class Origins:
    """Which of `models` answered each labelled row, and its stratum (model and operation); -1 where no model is logged.

    `logged` counts the rows of which it is.
    """

    models: tuple[str, ...]
    model: Ints
    stratum: Ints

    @property
    def logged(self) -> int:
        return int(np.count_nonzero(self.model >= 0))

    def only(self, inside: Bools) -> Origins:
        """The same of some of the rows."""
        return Origins(self.models, self.model[inside], self.stratum[inside])


def origins_of(store: Store, data: ScoreMatrix) -> Origins:
    """Look up where the labelled answers come from."""
    operations = store.traces.operations()
    pairs = [(row.model, operations.get(row.pk) or "") if row.model else None for row in data.rows]
    models = sorted({pair[0] for pair in pairs if pair})
    strata = {pair: code for code, pair in enumerate(sorted({pair for pair in pairs if pair}))}
    numbers = {model: code for code, model in enumerate(models)}
    return Origins(
        tuple(models),
        np.array([numbers[pair[0]] if pair else -1 for pair in pairs], dtype=np.int64),
        np.array([strata[pair] if pair else -1 for pair in pairs], dtype=np.int64),
    )


def rate_models(data: ScoreMatrix, origins: Origins, seed: int) -> Floats | None:
    """The answering model's own rate of hallucinations for each row, by the other folds' labels; None where fewer than
    two models answered."""
    if len(origins.models) < 2:
        return None
    return rate_categories(
        data.labels,
        origins.model,
        weights=np.asarray(data.weights, dtype=np.float64),
        units=Units.among(data.groups).of,
        rng=np.random.default_rng(seed),
    )


def measure_within(
    data: ScoreMatrix, origins: Origins, values: Floats, flag_when: FlagWhen, *, seed: int, count: int
) -> Within:
    """The area of a detector among answers of one model in one operation."""
    return rank_within(
        data.labels,
        values,
        origins.stratum,
        flag_when=flag_when,
        rng=np.random.default_rng(seed),
        clusters=Units.among(data.groups).of,
        weights=np.asarray(data.weights, dtype=np.float64),
        strata=data.strata,
        count=count,
    )
