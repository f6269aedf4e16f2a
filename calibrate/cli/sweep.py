"""`sweep`: a detector's precision and recall at every threshold."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import describe_params, labels_lines, load_labelled
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.figures import missing
from calibrate.report.sentences.labels import caution as caution_of
from calibrate.stats.intervals.sweep_intervals import band
from calibrate.stats.sweep.sweep import Sweep
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.evidence.undecided import recall_settled_along

MOST_ROWS = 24  # of a sweep on a terminal; --json has every point


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


@dataclass(frozen=True, slots=True)
class SweepDocument:
    detector: str
    params: Mapping[str, object]
    flag_when: str
    sample: str | None
    n: int
    positives: int
    prevalence: float | None
    coverage: float | None
    unscored: Mapping[str, int]
    refusals: int
    auroc: float | None
    average_precision: float | None
    points: Sequence[Point]
    caution: str | None
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    store = open_store(args)
    data = load_labelled(store, args)
    curve, caution = data.sweep, caution_of(data.caution)
    if curve.missing:
        raise BadInput(str(missing(curve, waiting=data.waiting)))
    curve = curve if args.json else curve.thin(2000)
    at_hand = labels_at_hand(store, data.sample)
    document = SweepDocument(
        detector=data.config.name,
        params=dict(data.config.params),
        flag_when=data.flag_when,
        sample=data.sample.name if data.sample else None,
        n=curve.n,
        positives=curve.positives,
        prevalence=curve.prevalence,
        coverage=curve.coverage,
        unscored=data.reasons,
        refusals=len(data.refused),
        auroc=curve.auroc if curve.can_rank else None,
        average_precision=curve.average_precision if curve.can_rank else None,
        points=_points(curve, data),
        caution=caution,
        evidence=at_hand,
    )
    picked = np.unique(np.linspace(0, len(curve) - 1, MOST_ROWS).astype(int))
    is_open = any(point.recall_settled_low is not None for point in document.points)
    head_row = ("threshold", "precision", "recall", "FPR", "flagged", *(("recall, settled",) if is_open else ()))
    rows: list[tuple[str, ...]] = [head_row]
    for point in (document.points[i] for i in picked):
        shares = (point.precision, point.recall, point.fpr, point.flag_rate)
        settled = [numbers.interval(point.recall_settled_low, point.recall_settled_high)] if is_open else []
        rows.append((numbers.number(point.threshold), *map(numbers.share, shares), *settled))
    refusals = f"refusals left out: {len(data.refused)}, " if data.refused else ""
    head = (
        f"{data.config.name}{describe_params(data)} flags {data.flag_when}; "
        f"{numbers.labelled(curve.n, curve.positives)}, {refusals}coverage {numbers.share(curve.coverage)}; "
        f"AUROC {numbers.decimals(document.auroc)}, average precision {numbers.decimals(document.average_precision)}"
    )
    text = "\n".join(
        [head, *labels_lines(at_hand), table(rows, right=range(len(rows[0]))), *([caution] if caution else [])]
    )
    return Answer(document, text)


def _points(curve: Sweep, data: Evidence) -> list[Point]:
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
