"""Several detectors' scores of the same labelled traces, side by side: what ensembles and scoreboard start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrate import registry
from calibrate.stats.sweep.design import Design
from calibrate.types import FlagWhen, Sample
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import evidence
from calibrate.workflow.evidence.basis import Basis, Caution, choose_basis
from calibrate.workflow.evidence.counted_labels import count_labels
from db import Store
from db.scores import Config, Row

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreMatrix:
    """The definite gold labels of a sample (or of the whole store) and the scores of several detectors.

    `rows` are in labelling order, without the answers that any of the detectors calls a refusal, which are `refused`,
    and the `undecided` ones; `waiting` labels do not count yet (counted_labels). With a `caution` they do not describe
    the traffic (basis).
    `scores` has one array a detector, in its own units, NaN where it could not score; `was_run` is False for a row
    that it was not run on, and `counts` for one whose label fitted it and so does not count for it.
    """

    sample: Sample | None
    configs: Mapping[str, Config]
    rows: tuple[Row, ...]
    refused: tuple[Row, ...]
    scores: Mapping[str, Floats]
    was_run: Mapping[str, NDArray[np.bool_]]
    counts: Mapping[str, NDArray[np.bool_]]
    undecided: tuple[Row, ...] = ()
    waiting: int = 0
    caution: Caution | None = None

    @cached_property
    def labels(self) -> NDArray[np.bool_]:
        return np.array([row.gold == "hallucinated" for row in self.rows], dtype=bool)

    @property
    def groups(self) -> list[str | None]:
        """The sources a trace shares with others; None for a trace on its own."""
        return [row.group for row in self.rows]

    @property
    def flag_when(self) -> dict[str, FlagWhen]:
        return {name: registry.get(name).flag_when for name in self.configs}

    @cached_property
    def design(self) -> Design | None:
        """How the rows were drawn; None for labels that are taken as they are."""
        drawn = None if self.caution else self.sample
        return evidence.design_of(drawn, self.rows, (*self.refused, *self.undecided))

    def only(self, inside: NDArray[np.bool_]) -> ScoreMatrix:
        """The same of some of the rows, which are as random as all."""
        return replace(
            self,
            rows=tuple(row for row, used in zip(self.rows, inside, strict=True) if used),
            scores={name: values[inside] for name, values in self.scores.items()},
            was_run={name: run[inside] for name, run in self.was_run.items()},
            counts={name: counts[inside] for name, counts in self.counts.items()},
        )

    @property
    def weights(self) -> Floats:
        """How many traces of the traffic each row stands for; all 1 without a design."""
        return np.ones(len(self.rows)) if self.design is None else self.design.weights

    @property
    def strata(self) -> NDArray[np.int64] | None:
        """The code of each row's stratum; None without a design."""
        return None if self.design is None else self.design.strata


def load_score_matrix(
    store: Store,
    names: Sequence[str] | None = None,
    *,
    sample: str | Sequence[str] | None = None,
    basis: Basis | None = None,
) -> ScoreMatrix:
    """Load the scores of these detectors, or of all that have any, each in its default configuration.

    `basis` is in place of `sample`. Raises BadInput for a detector that was never run, and where there is nothing at
    all.
    """
    names = list(configurations.configs_by_detector(store)) if names is None else list(dict.fromkeys(names))
    if not names:
        raise configurations.nothing_scored()
    basis = basis or choose_basis(store, sample)
    configs = {name: configurations.resolve_config(store, name) for name in names}
    counted = {name: count_labels(store, config, basis.sample) for name, config in configs.items()}
    rows_by_detector = {name: labels.rows for name, labels in counted.items()}
    first = max(counted.values(), key=lambda labels: len(labels.rows))  # some do not count for what they fitted
    refused = {row.pk for rows in rows_by_detector.values() for row in rows if row.status == "refusal"}
    labelled = tuple(row for row in first.rows if row.pk not in refused)
    scores, was_run, counts = {}, {}, {}
    for name, rows in rows_by_detector.items():
        by_trace = {row.pk: row.value for row in rows}
        values = [by_trace.get(row.pk) for row in labelled]
        scores[name] = np.array([np.nan if value is None else value for value in values], dtype=float)
        run = {row.pk for row in rows if row.status is not None}
        was_run[name] = np.array([row.pk in run for row in labelled], dtype=bool)
        counts[name] = np.array([row.pk in by_trace for row in labelled], dtype=bool)
    return ScoreMatrix(
        basis.sample,
        configs,
        labelled,
        tuple(row for row in first.rows if row.pk in refused),
        scores,
        was_run,
        counts,
        first.undecided,
        first.waiting,
        basis.caution,
    )
