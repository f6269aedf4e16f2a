"""Turn a span of the SDK into the plain record that the reader of spans takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext

from calibrate.ingest.spans.record import SpanEvent, SpanRecord, answer_id

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


def record_of(span: ReadableSpan) -> SpanRecord:
    """Copy what the reader needs of an ended span.

    Parameters
    ----------
    span : ReadableSpan

    Returns
    -------
    SpanRecord
        Its attributes are the span's own.
    """
    context, scope, parent = span.get_span_context() or INVALID_SPAN_CONTEXT, span.instrumentation_scope, span.parent
    return SpanRecord(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=None if parent is None else f"{parent.span_id:016x}",
        name=span.name,
        scope=scope.name if scope is not None else "",
        started=span.start_time or 0,
        ended=span.end_time or 0,
        attributes=span.attributes or {},
        resource=span.resource.attributes,
        events=tuple([SpanEvent(event.name, event.attributes or {}) for event in span.events]),
        remote_parent=parent is not None and parent.is_remote,
    )


def trace_id_of(context: SpanContext) -> str:
    """Name the trace of an LLM span's answer, unless the span's `touchstone.trace_id` does.

    Parameters
    ----------
    context : SpanContext
        Of the LLM span.

    Returns
    -------
    str
        Its trace id and span id in hexadecimal, joined by a hyphen.
    """
    return answer_id(f"{context.trace_id:032x}", f"{context.span_id:016x}")
