"""`sweep`: a detector's precision and recall at every threshold."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import describe_params, labels_lines, load_labelled
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.tuning.figures import fitted_labels, missing
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.evidence.sweep_points import Point, points_of

MOST_ROWS = 24  # of a sweep on a terminal; --json has every point


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
        raise BadInput(str(missing(curve, waiting=data.waiting, fitted=data.fitted)))
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
        points=points_of(curve, data),
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
    fitted = [f"{fitted_labels(data.fitted)}."] if data.fitted else []
    ending = [*fitted, *([caution] if caution else [])]
    text = "\n".join([head, *labels_lines(at_hand), table(rows, right=range(len(rows[0]))), *ending])
    return Answer(document, text)
