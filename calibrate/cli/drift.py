"""`drift`: whether scores moved since the release."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences.watching import drift as sentences
from calibrate.report.tables.column import cells, right
from calibrate.report.tables.drift import ON_TERMINAL
from calibrate.stats.sampling.designs import parse_since, window_start
from calibrate.workflow.watching import drift as drifting
from calibrate.workflow.watching.drift_report import DetectorDrift, Report


@dataclass(frozen=True, slots=True)
class LineDocument:
    """One detector on the traffic of one model."""

    detector: str
    model: str
    tier: str
    threshold: float
    flag_when: str
    state: str
    unseen: bool
    traces: int
    scored: int
    baseline: str | None
    shift: object
    moved: object
    prevalence: object
    verdict: str


@dataclass(frozen=True, slots=True)
class UnknownModel:
    name: str
    traces: int
    share: float


@dataclass(frozen=True, slots=True)
class DriftDocument:
    version: int
    models: Sequence[str]
    before: Mapping[str, object]
    now: Mapping[str, object]
    traces: int
    unknown_models: Sequence[UnknownModel]
    cap: int
    seed: int
    alpha: float
    verdict: str
    next: str
    lines: Sequence[LineDocument]


def run(args: Namespace) -> Answer:
    at = now()
    since = window_start(parse_since(args.since), at) if args.since else None
    if args.since and since is None:
        raise BadInput("drift is about the traffic since a moment: give --since a date or a length of time, not all")
    report = drifting.drift(open_store(args), version=args.release, since=since, now=at, seed=args.seed)
    parts = [sentences.verdict(report)]
    if report.lines:
        parts += [
            table(cells(ON_TERMINAL, report.lines), right=right(ON_TERMINAL)),
            "\n".join(sentences.line_verdict(line) for line in report.moved),
        ]
    parts += [f"next: {sentences.next_step(report)}"]
    return Answer(_document(report), "\n\n".join(part for part in parts if part))


def _document(report: Report) -> DriftDocument:
    return DriftDocument(
        version=report.version,
        models=report.models,
        before=report.before.to_json(),
        now=report.now.to_json(),
        traces=report.traces,
        unknown_models=[UnknownModel(model.name, model.traces, model.share) for model in report.unknown],
        cap=report.cap,
        seed=report.seed,
        alpha=report.alpha,
        verdict=sentences.verdict(report),
        next=sentences.next_step(report),
        lines=[_line(line) for line in report.lines],
    )


def _line(line: DetectorDrift) -> LineDocument:
    return LineDocument(
        detector=line.detector,
        model=line.model,
        tier=line.tier,
        threshold=line.threshold,
        flag_when=line.flag_when,
        state=line.state,
        unseen=line.unseen,
        traces=line.traces,
        scored=line.scored,
        baseline=sentences.baseline(line) or None,
        shift=line.shift,
        moved=line.moved,
        prevalence=line.prevalence,
        verdict=sentences.line_verdict(line),
    )
