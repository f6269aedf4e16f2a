"""Phoenix's spans: as its API returns them, and as its dataframe is saved.

References
----------
The API, GET /v1/projects/{project}/spans: https://arize.com/docs/phoenix/sdk-api-reference/rest-api
The attributes: https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from calibrate.ingest.exports.fields import identity, items, mapping, nanoseconds
from calibrate.ingest.exports.remarks import Remark
from calibrate.ingest.spans.record import SpanEvent, SpanRecord
from calibrate.ingest.values import FieldError

KIND = "openinference.span.kind"
_PREFIX = "attributes."
MAX_DEPTH = 12
MAX_LEAVES = 200_000


def span_of(fields: Mapping[str, Any]) -> SpanRecord:
    """Read a span.

    Parameters
    ----------
    fields : mapping
        A span of the API, or a row of the dataframe, whose columns are called `context.span_id` and
        `attributes.llm.model_name`.

    Returns
    -------
    SpanRecord

    Raises
    ------
    FieldError
        If an id is missing, or a time is none.
    """
    context = mapping(fields.get("context"))
    attributes = _attributes(fields)
    kind = fields.get("span_kind")
    if isinstance(kind, str) and kind not in ("", "UNKNOWN"):
        attributes.setdefault(KIND, kind)
    parent = fields.get("parent_id")
    return SpanRecord(
        trace_id=identity(context.get("trace_id") or fields.get("context.trace_id"), "trace_id").lower(),
        span_id=identity(context.get("span_id") or fields.get("context.span_id"), "span_id").lower(),
        parent_id=parent.lower() if isinstance(parent, str) and parent else None,
        name=str(fields.get("name") or ""),
        started=moment(fields.get("start_time")),
        ended=moment(fields.get("end_time")),
        attributes=attributes,
        events=tuple(_events(fields.get("events"))),
    )


def remark_of(annotation: Mapping[str, Any]) -> Remark:
    """Read an annotation of a span or a trace.

    Parameters
    ----------
    annotation : mapping
        As the API returns it.

    Returns
    -------
    Remark
        By a person where its kind is HUMAN.
    """
    result = mapping(annotation.get("result"))
    by_person = annotation.get("annotator_kind") == "HUMAN"
    score, label = result.get("score"), result.get("label")
    author = annotation.get("identifier") or annotation.get("user_id") or ""
    span = annotation.get("span_id")
    return Remark(
        name=str(annotation.get("name") or ""),
        value=label if by_person and label not in (None, "") else score,
        by_person=by_person,
        target=span if isinstance(span, str) else None,
        author=author if isinstance(author, str) else "",
        comment=explanation if isinstance(explanation := result.get("explanation"), str) else None,
        made_at=annotation.get("updated_at") or annotation.get("created_at"),
        place=f"annotation {str(annotation.get('id') or '')[:60]}",
    )


def moment(value: Any) -> int:
    """Read a time as nanoseconds of the epoch: ISO 8601, or milliseconds, as pandas writes times into JSON.

    Parameters
    ----------
    value : object

    Returns
    -------
    int
        0 where there is none.
    """
    if isinstance(value, bool) or value is None or value != value:
        return 0
    if isinstance(value, (int, float)):
        seconds = value / 1e3 if abs(value) < 1e14 else value / 1e6 if abs(value) < 1e17 else value / 1e9
        try:
            return nanoseconds(datetime.fromtimestamp(seconds, UTC))
        except (OverflowError, ValueError, OSError):
            raise FieldError("start_time: no time") from None
    return nanoseconds(value)


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """All attributes under flat names, without those that the row has no value for."""
    flat = dict(flatten(mapping(fields.get("attributes"))))
    for name, value in fields.items():
        if name.startswith(_PREFIX):
            flat.update(flatten({name.removeprefix(_PREFIX): value}))
    return flat


def flatten(value: Any, prefix: str = "", depth: int = MAX_DEPTH) -> Iterator[tuple[str, Any]]:
    """Write nested objects and lists of objects under flat names, as OpenInference has them.

    Parameters
    ----------
    value : object
    prefix : str
    depth : int
        Levels that are taken apart; what lies deeper stays as it is.

    Yields
    ------
    tuple of (str, object)
    """
    if isinstance(value, Mapping) and depth:
        for name, inner in value.items():
            yield from flatten(inner, f"{prefix}.{name}" if prefix else str(name), depth - 1)
    elif isinstance(value, list) and depth and value and all(isinstance(item, Mapping) for item in value):
        for place, item in enumerate(value):
            yield from flatten(item, f"{prefix}.{place}", depth - 1)
    elif value is not None and value == value:  # a dataframe has NaN where there is nothing
        yield prefix, value


def _events(value: Any) -> Iterator[SpanEvent]:
    for event in items(value):
        if isinstance(event, Mapping):
            yield SpanEvent(str(event.get("name") or ""), dict(mapping(event.get("attributes"))))
