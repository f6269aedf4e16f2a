"""What the unsure and disputed labels of a sample could make of a threshold's figures."""

from __future__ import annotations

import numpy as np

from calibrate.orientation import flags, suspicion
from calibrate.stats.labels.undecided import Settled, settle, settle_recall
from calibrate.stats.sweep.design import Floats
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.prevalence import weights_of
from db.scores import Row


def settled_at(data: Evidence, threshold: float) -> Settled | None:
    """Bound the figures at a threshold over every way to settle the undecided labels; None where there are none."""
    rows, scores, weights = _with_undecided(data)
    if len(rows) == len(data.rows):
        return None
    return settle(
        [row.gold == "hallucinated" for row in rows],
        np.arange(len(rows)) >= len(data.rows),
        flagged=flags(scores, threshold, data.flag_when),
        weights=weights,
    )


def recall_settled_along(data: Evidence, thresholds: Floats) -> tuple[Floats, Floats] | None:
    """The smallest and the largest recall at each threshold; None where no label is undecided."""
    rows, scores, weights = _with_undecided(data)
    if len(rows) == len(data.rows):
        return None
    return settle_recall(
        [row.gold == "hallucinated" for row in rows],
        np.arange(len(rows)) >= len(data.rows),
        suspicion(scores, data.flag_when),
        suspicion(thresholds, data.flag_when),
        weights=weights,
    )


def _with_undecided(data: Evidence) -> tuple[tuple[Row, ...], Floats, Floats | None]:
    """The rows that count and after them the undecided ones, with their scores and what each stands for."""
    undecided = tuple(row for row in data.undecided if row.status != "refusal")
    refused = (*data.refused, *(row for row in data.undecided if row.status == "refusal"))
    rows = (*data.rows, *undecided)
    scores = np.array([np.nan if row.value is None else row.value for row in rows], dtype=float)
    return rows, scores, weights_of(data.sample, rows, refused)
