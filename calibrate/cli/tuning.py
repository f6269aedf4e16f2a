"""Verbs about sweeps and operating points."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import numpy as np

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, pairs, store, table, user
from calibrate.errors import BadInput
from calibrate.stats import policies, wording
from calibrate.steps import tune
from calibrate.types import Interval, OperatingPoint
from db import Store

MOST_ROWS = 24  # of a sweep on a terminal; --json has every point


def sweep(args: Namespace) -> Answer:
    data = _labelled(store(args), args)
    curve = data.sweep
    if curve.missing:
        raise BadInput(curve.missing)
    columns = ("thresholds", "precision", "recall", "fpr", "flag_rate")
    arrays = [getattr(curve, name) for name in columns]
    keys = ("threshold", *columns[1:])
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
    rows += [(f"{arrays[0][i]:.4g}", *(f"{array[i]:.1%}" for array in arrays[1:])) for i in picked]
    head = (
        f"{data.config.name}{_told(data)} flags {data.flag_when}; {curve.n} labels, {curve.positives} hallucinated, "
        f"{f'{len(data.refused)} refusals left out, ' if data.refused else ''}"
        f"coverage {curve.coverage:.1%}; AUROC {curve.auroc:.3f}, average precision {curve.average_precision:.3f}"
    )
    return Answer(document, f"{head}\n{table(rows, right=range(5))}")


def choose(args: Namespace) -> Answer:
    found = store(args)
    data = _labelled(found, args)
    point = tune.point_of(data, policies.parse(args.policy))
    save = args.save and point.feasible
    if save:
        tune.save_point(found, data, point, by=user(), now=now())
    per_day = tune.traffic_per_day(found, data.sample)
    lines = [f"{point.detector}{_told(data)}: threshold {point.threshold:.6g}, flag {point.flag_when} ({point.policy})"]
    lines += [wording.sentence(point, None if per_day is None else (point.flag_rate.value or 0) * per_day)]
    lines += wording.cautions(point)
    if save:
        lines.append("saved; `release` takes it into the next version")
    elif args.save:
        lines.append(f"not saved: to take it all the same, --policy manual:{point.threshold:.6g} --save")
    document = {**_document(point), "params": dict(data.config.params), "saved": save}
    return Answer(document, "\n".join(lines), exit_code=2 if args.save and not save else 0)


def _labelled(found: Store, args: Namespace) -> tune.Labelled:
    registry.get(args.detector)
    return tune.labelled(found, args.detector, sample=args.sample, params=pairs(args.param, "--param"))


def _told(data: tune.Labelled) -> str:
    """The parameters that are not those it ships with, in brackets."""
    usual = registry.config_of(registry.make(data.config.name))
    other = [f"{key}={value}" for key, value in data.config.params.items() if usual.get(key) != value]
    return f" ({', '.join(other)})" if other else ""


def _document(point: OperatingPoint) -> dict[str, Any]:
    return {
        "detector": point.detector,
        "flag_when": point.flag_when,
        "threshold": point.threshold,
        "policy": point.policy,
        "feasible": point.feasible,
        "why": point.why,
        "precision": _interval(point.precision),
        "recall": _interval(point.recall),
        "fpr": _interval(point.fpr),
        "flag_rate": _interval(point.flag_rate),
        "n": point.n,
        "positives": point.positives,
        "coverage": point.coverage,
    }


def _interval(interval: Interval) -> dict[str, float | None]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
