"""The figures of a sweep, threshold by threshold, with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from calibrate.stats.intervals.sweep_intervals import band
from calibrate.stats.sweep.sweep import Sweep
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.undecided import recall_settled_along


@dataclass(frozen=True, slots=True)
class Point:
    """The figures at one threshold; None where a figure is not defined. `recall_settled` is the range of the recall
    once unsure and disputed labels are settled; None where there are none."""

    threshold: float | None
    precision: float | None
    recall: float | None
    fpr: float | None
    flag_rate: float | None
    recall_scored: float | None
    precision_low: float | None
    precision_high: float | None
    recall_low: float | None
    recall_high: float | None
    recall_settled_low: float | None
    recall_settled_high: float | None


def points_of(curve: Sweep, data: Evidence) -> list[Point]:
    """The points of a sweep of this evidence, whole or thinned, strict to loose."""
    bounds = band(curve)
    nothing = np.full(len(curve), np.nan)
    low, high = recall_settled_along(data, curve.thresholds) or (nothing, nothing)
    columns = [
        getattr(bounds if field.name.endswith(("_low", "_high")) else curve, field.name)
        for field in fields(Point)
        if field.name != "threshold" and not field.name.startswith("recall_settled")
    ]
    return [Point(*map(_number, row)) for row in zip(curve.thresholds, *columns, low, high, strict=True)]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
