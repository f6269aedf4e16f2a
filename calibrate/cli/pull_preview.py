"""`pull sql --preview`: what an import would make of the first rows of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from calibrate.cli import Answer
from calibrate.cli.output import table
from calibrate.ingest.base import Rejected
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.pulls import COLUMNS_ARE, NO_ROWS
from calibrate.sanitize import visible
from calibrate.types import Record
from calibrate.workflow.pulling.own_table import OwnTable


@dataclass(frozen=True, slots=True)
class PreviewedTrace:
    """A row as it would come in; `problem` says why it would not, and the rest is empty then."""

    row: int
    problem: str | None
    trace_id: str | None = None
    timestamp: datetime | None = None
    model: str | None = None
    question: str | None = None
    answer: str | None = None
    sources: int = 0
    attributes: Mapping[str, object] | None = None
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PreviewDocument:
    """The columns of a query and its first rows. Nothing was stored."""

    name: str
    columns: Sequence[str]
    traces: Sequence[PreviewedTrace]


def show_preview(source: OwnTable, *, redact: str | None) -> Answer:
    columns, rows = source.preview(redact=redact)
    document = PreviewDocument(source.name, columns, [_trace(row) for row in rows])
    if not rows:
        return Answer(document, f"{source.name}: {NO_ROWS} {COLUMNS_ARE} {', '.join(columns)}")
    cells: list[tuple[str, ...]] = [("time", "trace", "model", "sources", "question", "answer")]
    cells += [_cells(trace) for trace in document.traces]
    return Answer(document, f"{source.name}: {COLUMNS_ARE} {', '.join(columns)}\n{table(cells, right=[3])}")


def _trace(row: Record | Rejected) -> PreviewedTrace:
    if isinstance(row, Rejected):
        return PreviewedTrace(row.line, row.reason)
    trace = row.trace
    return PreviewedTrace(
        row.line, None, trace.id, trace.timestamp, trace.model, trace.question, trace.answer, len(trace.sources),
        trace.attributes, row.left_out,
    )  # fmt: skip


def _cells(trace: PreviewedTrace) -> tuple[str, ...]:
    if trace.problem is not None:
        return ("–", "–", "–", "–", "–", trace.problem)
    return (
        trace.timestamp.isoformat(" ", "minutes")[:16] if trace.timestamp else "–",
        visible(trace.trace_id or ""),
        visible(trace.model or "") or "–",
        count(trace.sources),
        visible(trace.question or "", 40).replace("\n", " ") or "–",
        visible(trace.answer or "", 40).replace("\n", " "),
    )
