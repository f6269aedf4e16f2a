"""Read spans from OTLP, the format of OpenTelemetry's exporters, as JSON and as protobuf.

A span that cannot be used comes as `Refused` in its place, with the reason; the others are read. What is no OTLP at all
raises BadInput. The protobuf is parsed span by span: memory does not grow with the size of a request.
"""

from __future__ import annotations

import binascii
import itertools
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.spans.record import SpanEvent, SpanRecord
from calibrate.ingest.spans.wire import message_fields

MAX_SPANS = 100_000
"""Spans in one document, and resources and scopes."""
MAX_SPAN_BYTES = 8 * 1024 * 1024
MAX_ATTRIBUTES = 20_000
MAX_EVENTS = 10_000
MAX_DEPTH = 30
"""Levels of lists and objects in an attribute. Protobuf's own parser stops there too."""

_HEX = re.compile(r"[0-9a-f]+")
_HAS_REMOTE, _IS_REMOTE = 0x100, 0x200  # in a span's flags
_Place = tuple[int, int]  # start and end in a body


@dataclass(frozen=True, slots=True)
class Refused:
    """A span that cannot be used, and why. The reason is a part of a sentence, for whoever sent it."""

    reason: str


class _Unusable(ValueError):
    """Why a span is refused."""


def spans_of_json(document: Mapping[str, Any]) -> Iterator[SpanRecord | Refused]:
    """Read the spans of an OTLP document in JSON.

    Ids are hexadecimal in either case, or base64 as protobuf's own JSON writes them. Keys are camelCase or snake_case.
    Attributes are a list of key and value, or an object.

    Parameters
    ----------
    document : mapping
        With `resourceSpans`, as an exporter sends it or the Collector's file exporter writes it.

    Returns
    -------
    iterator of SpanRecord or Refused

    Raises
    ------
    BadInput
        If this is no OTLP, or holds too many spans.
    """
    if not document:  # what has its default may be left out: a request without spans
        return
    count = 0
    resources = _pick(document, "resourceSpans", "resource_spans", "batches")
    if not isinstance(resources, list):
        raise BadInput("this is no OTLP JSON: `resourceSpans`, a list, is missing")
    for resource_spans in _objects(resources):
        try:
            attributes = _json_attributes(_object(resource_spans.get("resource")).get("attributes"))
        except _Unusable:
            attributes = {}
        for scope_spans in _objects(
            _pick(resource_spans, "scopeSpans", "scope_spans", "instrumentationLibrarySpans") or ()
        ):
            scope = _object(_pick(scope_spans, "scope", "instrumentationLibrary")).get("name")
            spans = scope_spans.get("spans")
            for span in spans if isinstance(spans, list) else ():
                count += 1
                _check_count(count)
                try:
                    yield _json_span(span, _text(scope), attributes)
                except _Unusable as reason:
                    yield Refused(str(reason))


def spans_of_protobuf(body: bytes) -> Iterator[SpanRecord | Refused]:
    """Read the spans of an OTLP request in protobuf.

    Parameters
    ----------
    body : bytes
        An `ExportTraceServiceRequest` or `TracesData`, which look the same, not compressed.

    Returns
    -------
    iterator of SpanRecord or Refused

    Raises
    ------
    BadInput
        If this is no such message, or holds too many spans, or the package opentelemetry-proto is missing.
    """
    resource_at: _Place | None = None
    resource: dict[str, Any] = {}
    for span, scope, place in _messages(body):
        if isinstance(span, Refused):
            yield span
            continue
        if place != resource_at:
            resource_at, resource = place, _resource_attributes(body, place)
        try:
            yield _protobuf_span(span, scope, resource)
        except _Unusable as reason:
            yield Refused(str(reason))


def check_protobuf(body: bytes) -> tuple[int, list[Refused]]:
    """Count the spans of a request and find those that `spans_of_protobuf` refuses, several times faster.

    Parameters
    ----------
    body : bytes
        As for `spans_of_protobuf`, which raises the same.

    Returns
    -------
    tuple of (int, list of Refused)
        All spans, and the refused ones of these.
    """
    count, refused = 0, []
    for span, _, _ in _messages(body):
        count += 1
        if isinstance(span, Refused):
            refused.append(span)
        else:
            try:
                _check_protobuf_span(span)
            except _Unusable as reason:
                refused.append(Refused(str(reason)))
    return count, refused


def _check_count(count: int) -> None:
    if count > MAX_SPANS:
        raise BadInput(f"more than {MAX_SPANS:,} spans, resources or scopes at once: send fewer in one batch")


# --- JSON


def _json_span(span: Any, scope: str, resource: Mapping[str, Any]) -> SpanRecord:
    if not isinstance(span, Mapping):
        raise _Unusable("a span is no object")
    parent = _pick(span, "parentSpanId", "parent_span_id")
    flags = _whole(span.get("flags"))
    events = span.get("events") or ()
    if not isinstance(events, (list, tuple)):
        raise _Unusable("events are no list")
    _check_events(len(events))
    return SpanRecord(
        trace_id=_json_id(_pick(span, "traceId", "trace_id"), "trace id", 16),
        span_id=_json_id(_pick(span, "spanId", "span_id"), "span id", 8),
        parent_id=_json_parent(parent),
        name=_text(span.get("name")),
        scope=scope,
        started=_whole(_pick(span, "startTimeUnixNano", "start_time_unix_nano")),
        ended=_whole(_pick(span, "endTimeUnixNano", "end_time_unix_nano")),
        attributes=_json_attributes(span.get("attributes")),
        events=tuple(
            SpanEvent(_text(event.get("name")), _json_attributes(event.get("attributes"))) for event in _objects(events)
        ),
        resource=resource,
        remote_parent=flags & (_HAS_REMOTE | _IS_REMOTE) == _HAS_REMOTE | _IS_REMOTE,
    )


def _json_id(value: Any, name: str, size: int) -> str:
    """Read an id of so many bytes as lower-case hexadecimal."""
    text = value.lower() if isinstance(value, str) else ""
    if len(text) == 2 * size and _HEX.fullmatch(text) and text.strip("0"):
        return text
    if isinstance(value, str) and len(value) == 4 * math.ceil(size / 3):
        try:
            decoded = b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            decoded = b""
        if len(decoded) == size and any(decoded):
            return decoded.hex()
    raise _Unusable(f"a {name} is not {2 * size} hexadecimal digits, or is zero")


def _json_parent(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip("0")):
        return None
    return _json_id(value, "parent id", 8)


def _json_attributes(entries: Any) -> dict[str, Any]:
    """Read a list of key and value, or an object of plain values."""
    if entries is None:
        return {}
    if isinstance(entries, Mapping):
        _check_attributes(len(entries))
        return {str(key): _plain(value, 1) for key, value in entries.items()}
    if not isinstance(entries, list):
        raise _Unusable("attributes are neither a list nor an object")
    _check_attributes(len(entries))
    return {
        entry["key"]: _json_value(entry.get("value"), 1)
        for entry in _objects(entries)
        if isinstance(entry.get("key"), str)
    }


def _json_value(value: Any, depth: int) -> Any:
    """Read an AnyValue: an object with one key, which names the kind."""
    if not isinstance(value, Mapping):
        return _plain(value, depth)
    if depth > MAX_DEPTH:
        raise _Unusable(f"an attribute is nested deeper than {MAX_DEPTH} levels")
    for kind, inner in value.items():
        read = _KINDS.get(kind)
        if read is not None:
            return read(inner, depth)
    return None


def _json_array(value: Any, depth: int) -> list[Any]:
    items = value.get("values") if isinstance(value, Mapping) else value
    return [_json_value(item, depth + 1) for item in items] if isinstance(items, list) else []


def _json_list_of_pairs(value: Any, depth: int) -> dict[str, Any]:
    items = value.get("values") if isinstance(value, Mapping) else value
    return {
        item["key"]: _json_value(item.get("value"), depth + 1)
        for item in _objects(items if isinstance(items, list) else ())
        if isinstance(item.get("key"), str)
    }


def _json_int(value: Any, _: int) -> int | None:
    try:
        return int(value) if isinstance(value, (str, int)) and len(str(value)) <= 20 else None
    except ValueError:
        return None


def _json_double(value: Any, _: int) -> float | None:
    """Read a number, or "NaN" and "Infinity", which are no values in JSON."""
    try:
        return _finite(float(value))
    except (TypeError, ValueError, OverflowError):
        return None


_KINDS: dict[str, Callable[[Any, int], Any]] = {
    "stringValue": lambda value, _: _text(value),
    "boolValue": lambda value, _: value if isinstance(value, bool) else None,
    "intValue": _json_int,
    "doubleValue": _json_double,
    "bytesValue": lambda value, _: _text(value),
    "arrayValue": _json_array,
    "kvlistValue": _json_list_of_pairs,
}
_KINDS |= {re.sub("(?=[A-Z])", "_", kind).lower(): read for kind, read in _KINDS.items()}


def _plain(value: Any, depth: int) -> Any:
    """Check a value that is written as it is, not as an AnyValue."""
    if depth > MAX_DEPTH:
        raise _Unusable(f"an attribute is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return _finite(value) if isinstance(value, float) else value


def _whole(value: Any) -> int:
    """Read a time or flags, from text or a number. 0 for anything else."""
    number = _json_int(value, 0) if not isinstance(value, float) else int(value) if math.isfinite(value) else 0
    return number if number is not None and 0 <= number < 2**64 else 0


def _pick(value: Mapping[str, Any], *keys: str) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(values: Any) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, Mapping)) if isinstance(values, (list, tuple)) else iter(())


# --- protobuf


@cache
def _types() -> tuple[type[Any], type[Any], type[Any]]:
    try:
        from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
        from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        from opentelemetry.proto.trace.v1.trace_pb2 import Span
    except ImportError:
        raise BadInput("OTLP as protobuf needs a package: pip install opentelemetry-proto") from None
    return Span, InstrumentationScope, Resource


def _messages(body: bytes) -> Iterator[tuple[Any, str, _Place]]:
    """Yield each span or why it is refused, the name of its scope, and where in the body its resource is."""
    span_type, scope_type, _ = _types()
    count = itertools.count(1)
    all_resources, _ = _split(body, (0, len(body)), count)
    for resource_spans in all_resources:
        resources, all_scopes = _split(body, resource_spans, count)
        resource = resources[0] if resources else (0, 0)
        for scope_spans in all_scopes:
            scopes, spans = _split(body, scope_spans, count)
            scope = _parse(scope_type, body, scopes[0]) if scopes else None
            name = "" if scope is None or isinstance(scope, Refused) else scope.name
            for place in spans:
                yield _parse(span_type, body, place), name, resource


def _split(body: bytes, place: _Place, count: Iterator[int]) -> tuple[list[_Place], list[_Place]]:
    """Find the parts of a message with the numbers 1 and 2: its head and what it is a list of."""
    heads: list[_Place] = []
    items: list[_Place] = []
    for number, start, end in message_fields(body, *place):
        _check_count(next(count))
        if number == 1:
            heads.append((start, end))
        elif number == 2:
            items.append((start, end))
    return heads, items


def _parse(kind: type[Any], body: bytes, place: _Place) -> Any:
    """Parse a part of the body, or say why it is refused."""
    from google.protobuf.message import DecodeError

    start, end = place
    if end - start > MAX_SPAN_BYTES:
        return Refused(f"a span has {(end - start) / 1e6:.1f} MB, at most {MAX_SPAN_BYTES / 1e6:.1f} are possible")
    try:
        return kind.FromString(body[start:end])
    except DecodeError:
        return Refused("a span is damaged, or an attribute nested too deeply")


def _resource_attributes(body: bytes, place: _Place) -> dict[str, Any]:
    resource = _parse(_types()[2], body, place)
    try:
        return {} if isinstance(resource, Refused) else _protobuf_attributes(resource.attributes)
    except _Unusable:
        return {}


def _check_protobuf_span(span: Any) -> None:
    for name, value, size in (("trace id", span.trace_id, 16), ("span id", span.span_id, 8)):
        if len(value) != size or not any(value):
            raise _Unusable(f"a {name} is not {2 * size} hexadecimal digits, or is zero")
    if len(span.parent_span_id) not in (0, 8):
        raise _Unusable("a parent id is not 16 hexadecimal digits")
    _check_attributes(len(span.attributes))
    _check_events(len(span.events))
    for event in span.events:
        _check_attributes(len(event.attributes))


def _protobuf_span(span: Any, scope: str, resource: Mapping[str, Any]) -> SpanRecord:
    _check_protobuf_span(span)
    remote = _HAS_REMOTE | _IS_REMOTE
    return SpanRecord(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if any(span.parent_span_id) else None,
        name=span.name,
        scope=scope,
        started=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes=_protobuf_attributes(span.attributes),
        events=tuple([SpanEvent(event.name, _protobuf_attributes(event.attributes)) for event in span.events]),
        resource=resource,
        remote_parent=span.flags & remote == remote,
    )


def _protobuf_attributes(pairs: Any) -> dict[str, Any]:
    _check_attributes(len(pairs))
    return {pair.key: _protobuf_value(pair.value) for pair in pairs}


def _protobuf_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or kind == "string_value_strindex":  # an index into a table that only profiles have
        return None
    inner = getattr(value, kind)
    if kind == "array_value":
        return [_protobuf_value(item) for item in inner.values]
    if kind == "kvlist_value":
        return {pair.key: _protobuf_value(pair.value) for pair in inner.values}
    if kind == "bytes_value":
        return b64encode(inner).decode()
    return _finite(inner) if kind == "double_value" else inner


# --- both


def _check_attributes(count: int) -> None:
    if count > MAX_ATTRIBUTES:
        raise _Unusable(f"a span has {count:,} attributes, at most {MAX_ATTRIBUTES:,} are possible")


def _check_events(count: int) -> None:
    if count > MAX_EVENTS:
        raise _Unusable(f"a span has {count:,} events, at most {MAX_EVENTS:,} are possible")


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
