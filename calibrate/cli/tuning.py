"""Verbs about sweeps and operating points."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import asdict
from typing import Any

import numpy as np

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, pairs, store, table, user
from calibrate.errors import BadInput
from calibrate.report.sentences import figures
from calibrate.sanitize import visible
from calibrate.stats.choosing import policies
from calibrate.stats.choosing.chance import chance_below
from calibrate.stats.intervals.sweep_intervals import band
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.types import Interval, OperatingPoint
from calibrate.workflow.certification import certify
from calibrate.workflow.certification.attempts import certified
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import evidence, loading, traffic
from calibrate.workflow.tuning import compare as comparing
from calibrate.workflow.tuning import operating_points
from db import Store

MOST_ROWS = 24  # of a sweep on a terminal; --json has every point


def sweep(args: Namespace) -> Answer:
    found = store(args)
    data = _labelled(found, args)
    curve, said = data.sweep, loading.caution(found, data.sample)
    if curve.missing:
        raise BadInput(curve.missing)
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
        f"{data.config.name}{_told(data)} flags {data.flag_when}; {curve.n} labels, {curve.positives} hallucinated, "
        f"{f'refusals left out: {len(data.refused)}, ' if data.refused else ''}"
        f"coverage {curve.coverage:.1%}; AUROC {curve.auroc:.3f}, average precision {curve.average_precision:.3f}"
    )
    text = "\n".join([head, table(rows, right=range(5)), *([said] if said else [])])
    return Answer({**document, "caution": said}, text)


def choose(args: Namespace) -> Answer:
    found = store(args)
    data = _labelled(found, args)
    if args.strength == "certified":
        return _certified(found, data, args)
    policy = policies.parse(args.policy)
    pool = traffic.scored_traffic(found, data) if policy.kind == "alerts" else None
    point = operating_points.choose_point(data, policy, strength=args.strength, pool=pool)
    save = args.save and point.feasible
    if save:
        operating_points.save_point(found, data, point, by=user(), now=now())
    per_day = traffic.traffic_per_day(found, data.sample)
    flags = None if per_day is None else (point.flag_rate.value or 0) * per_day
    if pool is not None:
        flags = pool.flags_a_day(point.threshold, point.flag_when)
    lines = [f"{point.detector}{_told(data)}: threshold {point.threshold:.6g}, flag {point.flag_when} ({point.policy})"]
    measured = point.feasible and args.strength == "measured"
    chance = chance_below(data.sweep, policy, rng=np.random.default_rng(0)) if measured else None
    lines += [figures.sentence(point, flags, chance=chance)]
    elbow = operating_points.bootstrap_elbow(data) if policy.kind == "elbow" else None
    lines += [elbow.sentence] if elbow else []
    lines += figures.cautions(point)
    lines += [said] if (said := loading.caution(found, data.sample)) else []
    if save:
        lines.append("saved; `release` takes it into the next version")
    elif args.save:
        lines.append(f"not saved: to take it all the same, --policy manual:{point.threshold:.6g} --save")
    document = {
        **_document(point),
        "elbow": {**asdict(elbow), "knee": None} if elbow else None,
        "caution": loading.caution(found, data.sample),
        "params": dict(data.config.params),
        "saved": save,
    }
    return Answer(document, "\n".join(lines), exit_code=2 if args.save and not save else 0)


def _certified(found: Store, data: evidence.Evidence, args: Namespace) -> Answer:
    """The point that was certified already; certifying takes labels, so `choose` alone cannot."""
    policy = policies.parse(args.policy)
    newest = certify.standing(found, data.config.name, config_id=data.config.id)
    if policy.kind != "precision":
        raise BadInput(f"the policy {policy} cannot be certified, only a precision can: write precision>=0.7")
    at = certified(found, data.config.name, data.config.id, policy.number)
    if at is None:
        stands = f" The newest attempt: {certify.said(newest)}" if newest else ""
        raise BadInput(
            f"no threshold of {data.config.name} is certified for {policy}: `certify {data.config.name} --target "
            f"{policy.number:g}` goes through its stages.{stands}"
        )
    point = certify.point_of(found, at.certification)
    if args.save:
        certify.save(found, at.certification, by=user(), now=now())
    lines = [f"{point.detector}{_told(data)}: threshold {point.threshold:.6g}, flag {point.flag_when} ({point.policy})"]
    lines += [figures.sentence(point), *(["saved; `release` takes it into the next version"] if args.save else [])]
    return Answer({**_document(point), "params": dict(data.config.params), "saved": args.save}, "\n".join(lines))


def compare(args: Namespace) -> Answer:
    found = store(args)
    for name in args.detectors:
        registry.get(name)
    result = _contrast(found, args)
    rows: list[tuple[str, ...]] = [("", "AUROC", "average precision", "labels", "hallucinated")]
    rows += [
        (
            visible(one.name, 60),
            _reach(one.auroc),
            _reach(one.average_precision),
            f"{one.sweep.n:,}",
            f"{one.sweep.positives:,}",
        )
        for one in result.series
    ]
    lines = [
        f"{visible(one.name, 60)} against {visible(result.series[0].name, 60)}: "
        + (
            visible(one.missing or "")
            or f"AUROC {_signed(one.auroc)}, {one.n:,} labels {'of both' if one.paired else 'together'}"
        )
        for one in result.differences
    ]
    document = {
        "by": args.by,
        "series": [
            {
                "name": one.name,
                "auroc": _interval(one.auroc),
                "average_precision": _interval(one.average_precision),
                "n": one.sweep.n,
                "positives": one.sweep.positives,
            }
            for one in result.series
        ],
        "differences": [asdict(one) for one in result.differences],
        "cautions": comparing.cautions(result),
    }
    lines += [f"caution: {visible(said)}" for said in comparing.cautions(result)]
    return Answer(document, "\n".join([table(rows, right=(3, 4)), *lines]))


def _contrast(found: Store, args: Namespace) -> comparing.Contrast:
    names, one = args.detectors, args.detectors[0]
    if args.by == "detectors":
        return comparing.of_detectors(found, names, sample=args.sample)
    if len(names) > 1:
        raise BadInput(f"--by {args.by} compares within one detector; {len(names)} are named")
    if args.by == "models":
        models = comparing.models_of(loading.load_evidence(found, one, sample=args.sample))
        return comparing.of_models(found, one, models, sample=args.sample)
    if args.by == "samples":
        weeks = [sample.name for sample in found.samples.list() if speaks_for_all(sample)]
        return comparing.of_samples(found, one, args.sample or weeks)
    configs = list(reversed(configurations.configs_by_detector(found).get(one, [])))
    return comparing.of_settings(found, configs, configurations.distinguish_configs(configs), sample=args.sample)


def _reach(figure: Interval) -> str:
    if figure.value is None:
        return "–"
    return f"{figure.value:.3f}" + ("" if figure.low is None else f" ({figure.low:.3f}–{figure.high:.3f})")


def _signed(figure: Interval) -> str:
    known = figure.value is not None and figure.low is not None and figure.high is not None
    return f"{figure.value:+.3f} ({figure.low:+.3f} to {figure.high:+.3f})" if known else "not known"


def _labelled(found: Store, args: Namespace) -> evidence.Evidence:
    registry.get(args.detector)
    return loading.load_evidence(found, args.detector, sample=args.sample, params=pairs(args.param, "--param"))


def _told(data: evidence.Evidence) -> str:
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
        "strength": point.strength,
        "guarantee": asdict(point.guarantee) if point.guarantee else None,
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
