"""`traces`: list traces, newest first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.purges import IN_PLACE
from calibrate.sanitize import visible
from calibrate.stats.sampling import designs
from calibrate.types import TraceFilter

MOST_LINES = 100_000
LABEL_STATES = ("any", "unlabelled", "labelled", "clean", "hallucinated", "unsure", "disputed")


@dataclass(frozen=True, slots=True)
class TraceLine:
    trace_id: str
    timestamp: datetime | None
    model: str | None
    operation: str | None
    gold: str | None
    question: str | None
    answer: str
    purged: bool


@dataclass(frozen=True, slots=True)
class TracesDocument:
    """A page of traces, and how many there are in all."""

    total: int
    traces: Sequence[TraceLine]


def run(args: Namespace) -> Answer:
    if args.label not in LABEL_STATES:
        raise BadInput(f"--label is one of {', '.join(LABEL_STATES)}, not {args.label!r}")
    if not 1 <= args.limit <= MOST_LINES:
        raise BadInput(f"--limit {args.limit} is not from 1 to {MOST_LINES:,}")
    store = open_store(args)
    since = designs.window_start(designs.parse_since(args.since), now())
    where = TraceFilter(since=since, undated=since is None, label=args.label, text=args.text)
    lines = [
        TraceLine(
            line.id, line.timestamp, line.model, line.operation, line.gold, line.question, line.answer, line.purged
        )
        for line in store.traces.page(where, limit=args.limit).lines
    ]
    document = TracesDocument(store.traces.count(where), lines)
    rows = [("time", "trace", "model", "gold", "answer"), *map(_row, lines)]
    return Answer(document, f"{table(rows)}\n{count(len(lines))} of {count(document.total)}")


def _row(line: TraceLine) -> tuple[str, ...]:
    return (
        line.timestamp.isoformat(" ", "minutes")[:16] if line.timestamp else "–",
        visible(line.trace_id),
        visible(line.model) or "–",
        line.gold or "–",
        IN_PLACE if line.purged else visible(line.answer, 60).replace("\n", " "),
    )
