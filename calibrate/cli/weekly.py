"""`weekly`: the mechanical part of the week."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.watching import drift
from calibrate.report.sentences.watching import rates as rate_sentences
from calibrate.report.sentences.watching import weekly as sentences
from calibrate.report.tables import rates as rate_table
from calibrate.sanitize import visible
from calibrate.targets import Kind, check_target
from calibrate.thresholds.files import deliver
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand
from calibrate.workflow.week import weekly as step
from calibrate.workflow.week.rates import Rates

REPORT = Kind("a report of `weekly`", lambda content: b"<title>Touchstone, " in content)


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """What a detector did; `why` says why it was not run."""

    scored: int
    missing: int
    why: str | None


@dataclass(frozen=True, slots=True)
class MovedDocument:
    detector: str
    model: str
    verdict: str


@dataclass(frozen=True, slots=True)
class WeeklyDocument:
    week: str
    version: int | None
    scored: Mapping[str, ScoredDocument]
    sample: str | None
    size: int | None
    drawn: bool
    verdict: str | None
    moved: Sequence[MovedDocument]
    next: Sequence[str]
    path: Path | None
    evidence: LabelsAtHand | None
    rates: Rates


def run(args: Namespace) -> Answer:
    if args.size < 1:
        raise BadInput(f"a sample of {args.size} traces holds nothing: ask for at least 1")
    store = open_store(args)
    out = None if args.out is None else check_target(args.out, REPORT, store=store.file)
    stopped = when_stopped(lambda: "what was scored and drawn so far is kept; the same command goes on from there")
    with stopped, progress(args, "scoring") as advance:
        report = step.weekly(
            store,
            size=args.size,
            by=args.by,
            now=now(),
            on_progress=lambda name, done, total: advance(done, total, f"scoring by {name}"),
        )
    lines = [f"{report.week}: {sentences.verdict(report)}"]
    lines += [f"{row.detector}: {sentences.scored(row)}" for row in report.scored]
    if report.sample:
        word = "drawn" if report.drawn else "exists already"
        size = f"{numbers.count(report.sample.size)} of {numbers.count(report.sample.pool)}"
        lines.append(f"sample {report.sample.name} {word}: {size} traces")
    lines += labels_lines(report.at_hand) if report.at_hand else []
    lines += rate_lines(report.rates)
    if out is not None:
        from calibrate.report.weekly_html import page

        deliver(page(report).encode(), str(out))
        lines.append(f"the report is in {out}")
    document = _document(report, out)
    lines += [f"Next: {visible(hint, 500)}" for hint in document.next]
    return Answer(document, "\n".join(lines))


def rate_lines(rates: Rates) -> list[str]:
    """How often the application hallucinated, newest week first, and what the newest one changed."""
    if not rates.series:
        return rate_sentences.remarks(rates)
    newest = rate_sentences.comparison(rates)
    of = [(f"{visible(series.value, 60)}: " if rates.by else "", series) for series in rates.series]
    changes = [f"{name}{rate_sentences.newest(series)}" for name, series in of]
    return [table(rate_table.rows(rates)), *([newest] if newest else []), *changes, *rate_sentences.remarks(rates)]


def _document(done: step.Weekly, path: Path | None) -> WeeklyDocument:
    report, sample = done.report, done.sample
    moved = report.moved if report else ()
    return WeeklyDocument(
        week=done.week,
        version=done.version,
        scored={row.detector: ScoredDocument(row.scored, row.missing, sentences.not_run(row)) for row in done.scored},
        sample=sample.name if sample else None,
        size=sample.size if sample else None,
        drawn=done.drawn,
        verdict=drift.verdict(report) if report else None,
        moved=[MovedDocument(line.detector, line.model, drift.line_verdict(line)) for line in moved],
        next=sentences.next_steps(done),
        path=path,
        evidence=done.at_hand,
        rates=done.rates,
    )
