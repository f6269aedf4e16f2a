"""`compare`: curves side by side, and whether they differ beyond chance."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.tuning import compare as sentences
from calibrate.report.tables.column import cells, right
from calibrate.report.tables.compare import COLUMNS
from calibrate.sanitize import visible
from calibrate.types import Interval
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import choose_basis, samples_with_labels
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.tuning import compare as comparing
from db import Store

ALL = "all labels"


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
    """The series, and how each differs from the first. `evidence_of` by the name of the labels they stand on."""

    by: str
    series: Sequence[SeriesDocument]
    differences: Sequence[DifferenceDocument]
    cautions: Sequence[str]
    evidence_of: Mapping[str, LabelsAtHand]


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
        cautions=[*_caution(store, args), *sentences.cautions(contrast)],
        evidence_of=_evidence(store, args),
    )
    several = len(document.evidence_of) > 1
    lines = [
        f"{visible(name, 60)}: {line}" if several else line
        for name, at_hand in document.evidence_of.items()
        for line in labels_lines(at_hand)
    ]
    lines += [table(cells(COLUMNS, contrast.series), right=right(COLUMNS))]
    lines += [visible(": ".join(sentences.difference(contrast, pair))) for pair in contrast.differences]
    lines += [f"caution: {visible(caution)}" for caution in document.cautions]
    return Answer(document, "\n".join(lines))


def _evidence(store: Store, args: Namespace) -> dict[str, LabelsAtHand]:
    """The labels of each sample where samples are compared, else those that all series stand on."""
    if args.by == "samples":
        return {name: labels_at_hand(store, store.samples.get(name)) for name in args.sample or _weeks(store)}
    sample = choose_basis(store, args.sample).sample
    return {sample.name if sample else ALL: labels_at_hand(store, sample)}


def _weeks(store: Store) -> list[str]:
    return [sample.name for sample in samples_with_labels(store)]


def _caution(store: Store, args: Namespace) -> list[str]:
    """What to know of the labels that all series share."""
    caution = None if args.by == "samples" else caution_of(choose_basis(store, args.sample).caution)
    return [caution] if caution else []


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
        return comparing.of_samples(store, first, args.sample or _weeks(store))
    configs = list(reversed(configurations.configs_by_detector(store).get(first, [])))
    return comparing.of_settings(store, configs, configurations.distinguish_configs(configs), sample=args.sample)
