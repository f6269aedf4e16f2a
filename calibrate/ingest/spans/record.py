"""A span as every system's export can be written: what the reader of spans needs, and nothing of any library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_HEX = re.compile(r"[0-9a-f]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that a span says happened, with its attributes."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """An ended span.

    Attributes
    ----------
    trace_id, span_id : str
        As the system names them; OpenTelemetry's in lower-case hexadecimal.
    parent_id : str or None
        The parent's span id. None for the root of the trace.
    name : str
    scope : str
        The instrumentation that made the span, "" where nobody says.
    started, ended : int
        Nanoseconds of the epoch, 0 where nobody says.
    attributes : mapping of str to any
        Values as JSON has them. A text may hold JSON itself.
    events : tuple of SpanEvent
    resource : mapping of str to any
        Attributes of the process: `service.name` and the like.
    remote_parent : bool
        The parent is in another process, so that within this one the span is a root.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    scope: str = ""
    started: int = 0
    ended: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    resource: Mapping[str, Any] = field(default_factory=dict)  # shared by all spans of a process
    remote_parent: bool = False

    @property
    def is_root(self) -> bool:
        """Whether the span is the root of its trace within its process."""
        return self.parent_id is None or self.remote_parent


def answer_id(trace_id: str, span_id: str) -> str:
    """Name the trace of an LLM span's answer.

    The same two ids give the same name whichever way they came, so that decisions, labels and scores of one answer
    meet: by file, receiver, pull or span processor.

    Parameters
    ----------
    trace_id, span_id : str
        As the system names them.

    Returns
    -------
    str
        Both joined by a hyphen, UUIDs without theirs.
    """
    return f"{_compact(trace_id)}-{_compact(span_id)}"


def split_answer_id(name: str) -> tuple[str, str] | None:
    """Split what `answer_id` joined.

    Parameters
    ----------
    name : str
        The id of a trace.

    Returns
    -------
    tuple of (str, str) or None
        Trace id and span id: of 32 and 16 or 32 hexadecimal digits. None for an id of another form.
    """
    trace_id, hyphen, span_id = name.partition("-")
    fits = len(trace_id) == 32 and len(span_id) in (16, 32) and _HEX.fullmatch(trace_id) and _HEX.fullmatch(span_id)
    return (trace_id, span_id) if hyphen and fits else None


def _compact(name: str) -> str:
    lower = name.lower()
    return lower.replace("-", "") if _UUID.fullmatch(lower) else lower if _HEX.fullmatch(lower) else name
