"""`gate`: for the CI of a team that changes a prompt, a model or a detector: do the released thresholds still hold?"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.errors import BadInput, TouchstoneError
from calibrate.report.sentences.watching import gate as sentences
from calibrate.stats.monitoring.non_inferiority import ALPHA
from calibrate.thresholds import read
from calibrate.thresholds.ensembles import EnsembleEntry
from calibrate.types import Interval
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand
from calibrate.workflow.watching.gate import Compared, Decision, FigureName, Gate, Judged, Origin, judge

EXIT_CODES: dict[Decision, int] = {"holds": 0, "fell": 1, "too few labels": 2}


@dataclass(frozen=True, slots=True)
class FigureDocument:
    """A figure beside its promise. `change` is now minus promised; its bounds are one-sided, each at 1 - alpha."""

    figure: FigureName
    origin: Origin
    promised: Interval
    now: Interval
    change: Interval
    margin: float
    decision: Decision


@dataclass(frozen=True, slots=True)
class ThresholdDocument:
    """One threshold. `released` says whether its scores are of the detector as it was released."""

    name: str
    ensemble: bool
    tier: str
    threshold: float
    released: bool
    version: str
    revision: str
    figures: Sequence[FigureDocument]


@dataclass(frozen=True, slots=True)
class GateDocument:
    """`more`: labels that are likely to tell; None where it is decided, or where no number is likely to."""

    release: int
    sample: str
    decision: Decision
    exit_code: int
    verdict: str
    alpha: float
    as_stated: bool
    labels: int
    positives: int
    left: int
    more: int | None
    planned: int | None
    thresholds: Sequence[ThresholdDocument]
    cautions: Sequence[str]
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    try:
        gate = _judge(args)
    except TouchstoneError as error:
        if args.summary:
            with suppress(OSError):  # what is broken is on standard error as well
                _write(args.summary, sentences.broken(str(error)))
        raise
    if args.summary:
        try:
            _write(args.summary, sentences.summary(gate))
        except OSError as error:
            raise BadInput(f"--summary {args.summary} cannot be written: {error.strerror}") from error
    document = _document(gate)
    notes = [f"caution: {note}" for note in document.cautions]
    lines = [document.verdict, table(sentences.rows(gate)), *notes, *labels_lines(gate.at_hand)]
    return Answer(document, "\n".join(lines), EXIT_CODES[gate.decision])


def _judge(args: Namespace) -> Gate:
    file = read(args.release)
    return judge(
        open_store(args),
        file,
        args.labels,
        only=args.only,
        recall_margin=args.max_recall_drop,
        precision_margin=args.max_precision_drop,
        exact=args.as_stated,
    )


def _write(path: str, text: str) -> None:
    """Append, as several steps of a pipeline may share one summary."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)


def _document(gate: Gate) -> GateDocument:
    return GateDocument(
        release=gate.file.version,
        sample=gate.sample.name,
        decision=gate.decision,
        exit_code=EXIT_CODES[gate.decision],
        verdict=sentences.verdict(gate),
        alpha=ALPHA,
        as_stated=gate.exact,
        labels=gate.labels,
        positives=gate.positives,
        left=gate.left,
        more=gate.forecast.more if gate.forecast else None,
        planned=gate.planned,
        thresholds=[_threshold(row) for row in gate.judged],
        cautions=sentences.cautions(gate),
        evidence=gate.at_hand,
    )


def _threshold(row: Judged) -> ThresholdDocument:
    tested = row.tested
    return ThresholdDocument(
        name=tested.name,
        ensemble=isinstance(tested.entry, EnsembleEntry),
        tier=tested.tier,
        threshold=tested.cut,
        released=tested.same,
        version=tested.version,
        revision=tested.revision,
        figures=[_figure(each) for each in row.figures],
    )


def _figure(each: Compared) -> FigureDocument:
    change = each.change
    has_bounds = change.value is not None
    return FigureDocument(
        figure=each.promise.figure,
        origin=each.promise.origin,
        promised=each.promise.stated,
        now=each.now,
        change=Interval(change.value, change.low if has_bounds else None, change.high if has_bounds else None),
        margin=each.promise.margin,
        decision=each.decision,
    )
