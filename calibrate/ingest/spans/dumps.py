"""Read spans as SDKs print them: Python's `to_json`, the objects of the JavaScript SDK, and any-agent's traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrate.ingest.spans.otlp import Refused
from calibrate.ingest.spans.record import SpanEvent, SpanRecord

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def spans_of_dump(value: Any) -> Iterator[SpanRecord | Refused]:
    """Read the spans of a decoded JSON value.

    Parameters
    ----------
    value : object
        A span, a list of spans, or an object with such a list as `spans`.

    Returns
    -------
    iterator of SpanRecord or Refused
        Numbers of any size are ids: they become hexadecimal.
    """
    if isinstance(value, Mapping) and isinstance(value.get("spans"), list):
        value = value["spans"]
    for span in value if isinstance(value, list) else [value]:
        yield _read_span(span)


def _read_span(span: Any) -> SpanRecord | Refused:
    if not isinstance(span, Mapping):
        return Refused("a span is no object")
    context = _mapping(span.get("spanContext") or span.get("context"))
    trace_id = _id(_pick(context, "traceId", "trace_id"), 32)
    span_id = _id(_pick(context, "spanId", "span_id"), 16)
    if trace_id is None or span_id is None:
        return Refused("a span has no trace id and span id in `context` or `spanContext`")
    parent = _mapping(_pick(span, "parentSpanContext", "parent"))
    scope = _mapping(_pick(span, "instrumentationScope", "instrumentationLibrary", "instrumentation_scope", "scope"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(_pick(parent, "spanId", "span_id"), 16)
        or _id(_pick(span, "parentSpanId", "parent_id", "parentId"), 16),
        name=_text(span.get("name")),
        scope=_text(scope.get("name")),
        started=_nanoseconds(_pick(span, "startTime", "start_time")),
        ended=_nanoseconds(_pick(span, "endTime", "end_time")),
        attributes=_attributes(span),
        events=tuple(
            [
                SpanEvent(_text(event.get("name")), _attributes(event))
                for event in (span["events"] if isinstance(span.get("events"), list) else ())
                if isinstance(event, Mapping)
            ]
        ),
        resource=_attributes(_mapping(span.get("resource"))),
        remote_parent=bool(_pick(parent, "isRemote", "is_remote")),
    )


def _id(value: Any, digits: int) -> str | None:
    """Read an id: a number, or hexadecimal with or without 0x. Zero is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:0{digits}x}" if 0 < value < 16**digits else None
    text = value.lower().removeprefix("0x") if isinstance(value, str) else ""
    if len(text) > digits or not text.strip("0") or set(text) - set("0123456789abcdef"):
        return None
    return text.zfill(digits)


def _nanoseconds(value: Any) -> int:
    """Read a time: nanoseconds, [seconds, nanoseconds], or ISO 8601. 0 for anything else."""
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value):
        value = value[0] * 1_000_000_000 + value[1]
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            value = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
        except (ValueError, OverflowError):
            return 0
    return value if type(value) is int and 0 <= value < 2**64 else 0


def _attributes(place: Mapping[str, Any]) -> Mapping[str, Any]:
    attributes = place.get("attributes")
    return {str(key): value for key, value in attributes.items()} if isinstance(attributes, Mapping) else {}


def _pick(values: Mapping[str, Any], *keys: str) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
