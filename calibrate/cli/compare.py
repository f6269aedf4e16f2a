"""`compare`: curves side by side, and whether they differ beyond chance."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences import compare as sentences
from calibrate.report.tables.column import cells, right
from calibrate.report.tables.compare import COLUMNS
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
class DifferenceDocument:
    name: str
    paired: bool
    n: int
    positives: int
    auroc: Interval
    average_precision: Interval
    shared: int
    missing: str | None
    verdict: str


@dataclass(frozen=True, slots=True)
class CompareDocument:
    """The series, and how each differs from the first."""

    by: str
    series: Sequence[SeriesDocument]
    differences: Sequence[DifferenceDocument]
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
        differences=[_difference(contrast, pair) for pair in contrast.differences],
        cautions=sentences.cautions(contrast),
    )
    lines = [table(cells(COLUMNS, contrast.series), right=right(COLUMNS))]
    lines += [visible(": ".join(sentences.difference(contrast, pair))) for pair in contrast.differences]
    lines += [f"caution: {visible(caution)}" for caution in document.cautions]
    return Answer(document, "\n".join(lines))


def _difference(contrast: comparing.Contrast, pair: comparing.Difference) -> DifferenceDocument:
    return DifferenceDocument(
        name=pair.name,
        paired=pair.paired,
        n=pair.n,
        positives=pair.positives,
        auroc=pair.auroc,
        average_precision=pair.average_precision,
        shared=pair.shared,
        missing=sentences.missing(contrast, pair),
        verdict=pair.verdict,
    )


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
