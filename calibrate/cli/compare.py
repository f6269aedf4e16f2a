"""`compare`: curves side by side, and whether they differ beyond chance."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences import compare as sentences
from calibrate.sanitize import visible
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.types import Interval
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import compare as comparing
from db import Store


@dataclass(frozen=True, slots=True)
class SeriesDocument:
    name: str
    auroc: Interval
    average_precision: Interval
    n: int
    positives: int


@dataclass(frozen=True, slots=True)
class CompareDocument:
    """The series, and how each differs from the first."""

    by: str
    series: Sequence[SeriesDocument]
    differences: Sequence[dict[str, Any]]
    cautions: Sequence[str]


def run(args: Namespace) -> Answer:
    store = open_store(args)
    for name in args.detectors:
        registry.get(name)
    contrast = _contrast(store, args)
    document = CompareDocument(
        by=args.by,
        series=[
            SeriesDocument(series.name, series.auroc, series.average_precision, series.sweep.n, series.sweep.positives)
            for series in contrast.series
        ],
        differences=[_difference(contrast, difference) for difference in contrast.differences],
        cautions=sentences.cautions(contrast),
    )
    rows: list[tuple[str, ...]] = [("", "AUROC", "average precision", "labels", "hallucinated")]
    for series in document.series:
        figures = (_figure(series.auroc), _figure(series.average_precision))
        rows.append((visible(series.name, 60), *figures, numbers.count(series.n), numbers.count(series.positives)))
    lines = [_line(contrast, difference) for difference in contrast.differences]
    lines += [f"caution: {visible(caution)}" for caution in document.cautions]
    return Answer(document, "\n".join([table(rows, right=(3, 4)), *lines]))


def _line(contrast: comparing.Contrast, difference: comparing.Difference) -> str:
    pair = f"{visible(difference.name, 60)} against {visible(contrast.series[0].name, 60)}"
    if missing := sentences.missing(contrast, difference):
        return f"{pair}: {visible(missing)}"
    auroc = difference.auroc
    labels = f"{numbers.count(difference.n, 'label')} {'of both' if difference.paired else 'together'}"
    return f"{pair}: AUROC {numbers.difference(auroc.value, auroc.low, auroc.high)}, {labels}"


def _difference(contrast: comparing.Contrast, difference: comparing.Difference) -> dict[str, Any]:
    figures = {name: value for name, value in asdict(difference).items() if name != "lacking"}
    return {**figures, "missing": sentences.missing(contrast, difference)}


def _contrast(store: Store, args: Namespace) -> comparing.Contrast:
    names, first = args.detectors, args.detectors[0]
    if args.by == "detectors":
        return comparing.of_detectors(store, names, sample=args.sample)
    if len(names) > 1:
        raise BadInput(f"--by {args.by} compares within one detector; {len(names)} are named")
    if args.by == "models":
        models = comparing.models_of(loading.load_evidence(store, first, sample=args.sample))
        return comparing.of_models(store, first, models, sample=args.sample)
    if args.by == "samples":
        weeks = [sample.name for sample in store.samples.list() if speaks_for_all(sample)]
        return comparing.of_samples(store, first, args.sample or weeks)
    configs = list(reversed(configurations.configs_by_detector(store).get(first, [])))
    return comparing.of_settings(store, configs, configurations.distinguish_configs(configs), sample=args.sample)


def _figure(figure: Interval) -> str:
    if figure.value is None:
        return "–"
    interval = "" if figure.low is None else f" ({numbers.decimal_interval(figure.low, figure.high)})"
    return f"{numbers.decimals(figure.value)}{interval}"
