"""`sweep`."""

from __future__ import annotations

import math
from argparse import Namespace

import numpy as np

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import describe_params, load_labelled
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences.evidence import uneven
from calibrate.report.sentences.figures import missing
from calibrate.stats.intervals.sweep_intervals import band
from calibrate.workflow.evidence import loading

MOST_ROWS = 24  # of a sweep on a terminal; --json has every point


def run(args: Namespace) -> Answer:
    found = open_store(args)
    data = load_labelled(found, args)
    curve, said = data.sweep, uneven(loading.uneven_labels(found, data.sample))
    if curve.missing:
        raise BadInput(str(missing(curve)))
    columns = ("thresholds", "precision", "recall", "fpr", "flag_rate", "recall_scored")
    curve = curve if args.json else curve.thin(2000)
    bounds = band(curve)
    sides = ("precision_low", "precision_high", "recall_low", "recall_high")
    arrays = [*(getattr(curve, name) for name in columns), *(getattr(bounds, side) for side in sides)]
    keys = ("threshold", *columns[1:], *sides)
    document = {
        "detector": data.config.name,
        "params": dict(data.config.params),
        "flag_when": data.flag_when,
        "sample": data.sample.name if data.sample else None,
        "n": curve.n,
        "positives": curve.positives,
        "prevalence": curve.prevalence,
        "coverage": curve.coverage,
        "unscored": data.reasons,
        "refusals": len(data.refused),
        "auroc": curve.auroc,
        "average_precision": curve.average_precision,
        "points": [dict(zip(keys, map(_number, row), strict=True)) for row in zip(*arrays, strict=True)],
    }
    picked = np.unique(np.linspace(0, len(curve) - 1, MOST_ROWS).astype(int))
    rows: list[tuple[str, ...]] = [("threshold", "precision", "recall", "FPR", "flagged")]
    rows += [(f"{arrays[0][i]:.4g}", *(f"{array[i]:.1%}" for array in arrays[1:5])) for i in picked]
    head = (
        f"{data.config.name}{describe_params(data)} flags {data.flag_when}; "
        f"{curve.n} labels, {curve.positives} hallucinated, "
        f"{f'refusals left out: {len(data.refused)}, ' if data.refused else ''}"
        f"coverage {curve.coverage:.1%}; AUROC {curve.auroc:.3f}, average precision {curve.average_precision:.3f}"
    )
    text = "\n".join([head, table(rows, right=range(5)), *([said] if said else [])])
    return Answer({**document, "caution": said}, text)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
