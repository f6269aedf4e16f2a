"""What the unsure and disputed labels of a sample could make of a threshold's figures."""

from __future__ import annotations

import numpy as np

from calibrate.orientation import flags
from calibrate.stats.labels.undecided import Settled, settle
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.prevalence import weights_of


def settled_at(data: Evidence, threshold: float) -> Settled | None:
    """Bound the figures at a threshold over every way to settle the undecided labels; None where there are none."""
    undecided = tuple(row for row in data.undecided if row.status != "refusal")
    if not undecided:
        return None
    refused = (*data.refused, *(row for row in data.undecided if row.status == "refusal"))
    rows = (*data.rows, *undecided)
    scores = np.array([np.nan if row.value is None else row.value for row in rows], dtype=float)
    return settle(
        [row.gold == "hallucinated" for row in rows],
        np.arange(len(rows)) >= len(data.rows),
        flagged=flags(scores, threshold, data.flag_when),
        weights=weights_of(data.sample, rows, refused),
    )
