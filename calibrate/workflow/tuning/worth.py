"""What each detector was measured to be worth beyond the baselines: by the store's own labels, else by the results that
come with Touchstone, which docs/make_results.py writes beside docs/reference/results.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.errors import TouchstoneError
from calibrate.orientation import suspicion
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.intervals.ranking_differences import compare_rankings
from calibrate.stats.sweep.design import Floats
from calibrate.types import Interval
from calibrate.workflow.evidence.score_matrix import ScoreMatrix, load_score_matrix
from calibrate.workflow.tuning.model_identity import MODEL, origins_of, rate_models
from calibrate.workflow.tuning.scoreboard import BASELINES, LENGTH, OVERLAP, measure_lengths
from db import Store

PACKAGED = Path(__file__).with_name("measured.json")
ENOUGH = 20  # labels of either verdict that detector and baseline both scored
LEFT_OUT = 200  # groups of labels that are left out in turn: an answer at once matters more than the last digit


class Worth(StrEnum):
    """Whether a detector adds to what words, length and the answering model tell; the best first."""

    RUN = "run"
    SOMETIMES = "sometimes"
    UNMEASURED = "unmeasured"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Measured:
    """A detector's worth. By the store's own labels: `over` is the difference of AUROC to its strongest `baseline` on
    `n` labels. By the packaged results: it gained on `gains` of the `sets` that measured it, over token overlap,
    or on `by_chance` of them over chance, where token overlap had no score or is the detector itself; `lead` counts the
    sets on which it is better, plus those on which it adds, less those on which it is worse."""

    worth: Worth = Worth.UNMEASURED
    over: Interval | None = None
    baseline: str | None = None
    n: int = 0
    gains: int = 0
    sets: int = 0
    by_chance: int = 0
    lead: int = 0


@cache
def packaged() -> Mapping[str, Measured]:
    """The worth of each detector by the results that come with Touchstone."""
    rows = json.loads(PACKAGED.read_text(encoding="utf-8"))["detectors"]
    return {name: read_packaged(row) for name, row in rows.items()}


def read_packaged(row: Mapping[str, Any]) -> Measured:
    """The worth that a row of the packaged results states."""
    return Measured(
        Worth(row["worth"]), gains=row["gains"], sets=row["sets"], by_chance=row["by_chance"], lead=row["lead"]
    )


def measure_worth(store: Store) -> Mapping[str, Measured]:
    """The worth of each detector that anything measured; the store's own labels come before the packaged results."""
    try:
        data = load_score_matrix(store)
    except TouchstoneError:  # nothing is scored yet
        return packaged()
    return {**packaged(), **_measure_here(store, data)}


def ranked(names: Iterable[str], measured: Mapping[str, Measured]) -> dict[Worth, list[str]]:
    """Put detectors under their worth, the best first. Under each, those measured on the store's own labels come first,
    by their difference of AUROC, then the others by their lead in the packaged results; equals in the order given."""
    ranks: dict[Worth, list[str]] = {worth: [] for worth in Worth}
    for name in sorted(names, key=lambda name: _order(measured.get(name, Measured()))):
        ranks[measured.get(name, Measured()).worth].append(name)
    return {worth: members for worth, members in ranks.items() if members}


def _order(measured: Measured) -> tuple[bool, float]:
    over = measured.over.value if measured.over is not None else None
    return (True, -measured.lead) if over is None else (False, -over)


def _measure_here(store: Store, data: ScoreMatrix) -> dict[str, Measured]:
    baselines = {LENGTH: measure_lengths(store, data)}
    if (rates := rate_models(data, origins_of(store, data), 0)) is not None:
        baselines[MODEL] = rates
    if OVERLAP in data.scores:
        baselines[OVERLAP] = suspicion(data.scores[OVERLAP], data.flag_when[OVERLAP])
    measured = {}
    for name, values in data.scores.items():
        if name in BASELINES:
            continue
        scores = suspicion(values, data.flag_when[name])
        compared = [(each, *_over(data, baselines[each], scores)) for each in baselines]
        if any(over.low is None for _, _, over in compared):
            continue
        baseline, n, over = min(compared, key=lambda row: row[2].value or 0.0)
        beyond = all((each.low or 0.0) > 0 for _, _, each in compared)
        worth = Worth.RUN if beyond else Worth.SOMETIMES if (over.value or 0.0) > 0 else Worth.NOTHING
        measured[name] = Measured(worth, over, baseline, n)
    return measured


def _over(data: ScoreMatrix, baseline: Floats, scores: Floats) -> tuple[int, Interval]:
    """On how many labels both are compared, and the difference of AUROC; unknown where those are too few."""
    both = np.isfinite(baseline) & np.isfinite(scores)
    labels = data.labels[both]
    if min(labels.sum(), (~labels).sum()) < ENOUGH:
        return len(labels), Interval(None)
    result = compare_rankings(
        labels,
        baseline[both],
        scores[both],
        rng=np.random.default_rng(0),
        clusters=Units.among(data.groups).of[both],
        weights=np.asarray(data.weights, dtype=np.float64)[both],
        strata=None if data.strata is None else data.strata[both],
        most=LEFT_OUT,
    )
    return result.n, result.auroc
