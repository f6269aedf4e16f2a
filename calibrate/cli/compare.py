"""`compare`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences import compare as sentences
from calibrate.sanitize import visible
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.types import Interval
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import compare as comparing
from db import Store


def run(args: Namespace) -> Answer:
    found = open_store(args)
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
            visible(sentences.missing(result, one) or "")
            or f"AUROC {_signed(one.auroc)}, {one.n:,} labels {'of both' if one.paired else 'together'}"
        )
        for one in result.differences
    ]
    document = {
        "by": args.by,
        "series": [
            {
                "name": one.name,
                "auroc": asdict(one.auroc),
                "average_precision": asdict(one.average_precision),
                "n": one.sweep.n,
                "positives": one.sweep.positives,
            }
            for one in result.series
        ],
        "differences": [_difference(result, one) for one in result.differences],
        "cautions": sentences.cautions(result),
    }
    lines += [f"caution: {visible(said)}" for said in sentences.cautions(result)]
    return Answer(document, "\n".join([table(rows, right=(3, 4)), *lines]))


def _difference(result: comparing.Contrast, difference: comparing.Difference) -> dict[str, Any]:
    figures = {name: value for name, value in asdict(difference).items() if name != "lacking"}
    return {**figures, "missing": sentences.missing(result, difference)}


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
