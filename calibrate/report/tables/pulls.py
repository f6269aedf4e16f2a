"""The columns of pulls from other systems: one row for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from calibrate.ingest.base import Rejected
from calibrate.report.numbers import stamp
from calibrate.report.tables.column import Column, Form
from calibrate.sanitize import one_line
from calibrate.types import Record, Trace


class Line(Protocol):
    """A pull, as `db.exchange.pulls` has it."""

    @property
    def name(self) -> str: ...
    @property
    def system(self) -> str: ...
    @property
    def cursor(self) -> Mapping[str, Any] | None: ...
    @property
    def traces(self) -> int: ...
    @property
    def pulled_at(self) -> datetime | None: ...
    @property
    def finished(self) -> bool: ...


def cursor(line: Line) -> str:
    """Write a cursor for people: its values by name."""
    items = (line.cursor or {}).items()
    return one_line(", ".join(f"{name} {_value(value)}" for name, value in items), 100)


def _value(value: Any) -> str:
    """A time to the minute, a text as it is, all else as JSON."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return value if len(value) < 16 else stamp(moment)


COLUMNS: tuple[Column[Line], ...] = (
    Column("name", "Pull", lambda line: one_line(line.name, 80), width=260),
    Column("system", "From", lambda line: line.system, width=90),
    Column("traces", "Answers", lambda line: line.traces, Form.COUNT, width=80),
    Column("pulled_at", "Last (UTC)", lambda line: stamp(line.pulled_at) if line.pulled_at else None, width=135),
    Column("finished", "To its end", lambda line: line.finished, Form.FLAG, width=80),
    Column("cursor", "Goes on at", cursor),
)


def _of_trace(value: Callable[[Trace], Any]) -> Callable[[Record | Rejected], Any]:
    return lambda row: None if isinstance(row, Rejected) else value(row.trace)


PREVIEW: tuple[Column[Record | Rejected], ...] = (
    Column("timestamp", "Time (UTC)", _of_trace(lambda trace: trace.timestamp and stamp(trace.timestamp)), width=135),
    Column("trace_id", "Trace", _of_trace(lambda trace: one_line(trace.id, 80)), width=160),
    Column("model", "Model", _of_trace(lambda trace: one_line(trace.model or "", 80)), width=110),
    Column("sources", "Sources", _of_trace(lambda trace: len(trace.sources)), Form.COUNT, width=70),
    Column("question", "Question", _of_trace(lambda trace: one_line(trace.question or "", 200)), width=220),
    Column("answer", "Answer", _of_trace(lambda trace: one_line(trace.answer, 200)), width=220),
    Column("problem", "Why not", lambda row: row.reason if isinstance(row, Rejected) else None),
)
