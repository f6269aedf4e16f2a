"""Any OpenTelemetry backend, by OTLP/HTTP: a result span for each answer, as the span processor makes them.

Its own environment variables say where the backend is: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or
OTEL_EXPORTER_OTLP_ENDPOINT, and OTEL_EXPORTER_OTLP_HEADERS. A note always has the same span id, so that a backend that
gets it twice holds one span.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from calibrate import __version__
from calibrate.errors import BadInput
from calibrate.ingest.systems.base import Note, PullRequest, need
from calibrate.ingest.systems.patience import patiently
from calibrate.urls import redact
from calibrate.webhook import check_url

SCOPE, SPAN, EVENT = "touchstone", "touchstone.detector.result", "gen_ai.evaluation.result"
TRACES, BASE = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
TIMEOUT = 30.0  # seconds
_WHAT = "`watch --annotate otel`"


class OtelAnnotator:
    """An OTLP endpoint that takes result spans.

    Raises
    ------
    BadInput
        If no endpoint is named.
    Unavailable
        If the messages of OTLP are not installed.
    """

    def __init__(self, request: PullRequest | None = None) -> None:
        self._request = request or PullRequest()
        base = os.environ.get(BASE, "").strip()
        url = os.environ.get(TRACES, "").strip() or (f"{base.rstrip('/')}/v1/traces" if base else "")
        if not url:
            raise BadInput(f"{_WHAT} needs an endpoint: set {BASE}, like http://localhost:4318")
        self._url = check_url(url, "the OTLP endpoint")
        self._headers = dict(_headers())
        self._messages = need(
            "opentelemetry.proto.collector.trace.v1.trace_service_pb2", _WHAT, install="opentelemetry-proto"
        )
        self._common = need("opentelemetry.proto.common.v1.common_pb2", _WHAT, install="opentelemetry-proto")

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """Send the notes. See `Annotator`."""
        fit = [note for note in notes if len(note.span_id) == 16]
        if fit:
            body = gzip.compress(self._body(fit))
            secrets = tuple(self._headers.values())
            patiently(lambda: self._post(body), self._request, f"OTLP at {redact(self._url)}", secrets=secrets)
        return {note.key: "its id names no OpenTelemetry span" for note in notes if len(note.span_id) != 16}

    def _post(self, body: bytes) -> None:
        own = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", "User-Agent": SCOPE}
        request = urllib.request.Request(self._url, body, {**self._headers, **own}, method="POST")
        with urllib.request.urlopen(request, timeout=TIMEOUT):
            pass

    def _body(self, notes: Sequence[Note]) -> bytes:
        message = self._messages.ExportTraceServiceRequest()
        holder = message.resource_spans.add()
        holder.resource.attributes.extend(self._pairs({"service.name": SCOPE}))
        spans = holder.scope_spans.add()
        spans.scope.name, spans.scope.version = SCOPE, __version__
        for note in notes:
            self._add(spans.spans.add(), note)
        return bytes(message.SerializeToString())

    def _add(self, span: Any, note: Note) -> None:
        moment = int(note.decided_at.timestamp() * 1e9) if note.decided_at else time.time_ns()
        span.trace_id, span.parent_span_id = bytes.fromhex(note.trace_id), bytes.fromhex(note.span_id)
        span.span_id = hashlib.sha256(note.key.encode()).digest()[:8]
        span.name, span.kind = SPAN, 1  # internal
        span.start_time_unix_nano = span.end_time_unix_nano = moment
        link = span.links.add()
        link.trace_id, link.span_id = span.trace_id, span.parent_span_id
        flags = tuple(name for name, each in note.scores.items() if each.flagged)
        attributes = {
            "touchstone.trace_id": f"{note.trace_id}-{note.span_id}",
            "touchstone.verdict": note.verdict,
            "touchstone.tier": note.tier,
            "touchstone.flags": flags,
            "touchstone.reasons": note.reasons,
            "touchstone.thresholds.version": note.version,
            **{f"touchstone.score.{name}": each.score for name, each in note.scores.items() if each.score is not None},
        }
        span.attributes.extend(self._pairs(attributes))
        for attributes in _evaluations(note):
            event = span.events.add()
            event.name, event.time_unix_nano = EVENT, moment
            event.attributes.extend(self._pairs(attributes))

    def _pairs(self, attributes: Mapping[str, Any]) -> list[Any]:
        return [self._common.KeyValue(key=key, value=self._value(value)) for key, value in attributes.items()]

    def _value(self, value: Any) -> Any:
        if isinstance(value, int):
            return self._common.AnyValue(int_value=value)
        if isinstance(value, float):
            return self._common.AnyValue(double_value=value)
        if isinstance(value, tuple):
            values = [self._value(each) for each in value]
            return self._common.AnyValue(array_value=self._common.ArrayValue(values=values))
        return self._common.AnyValue(string_value=str(value))


def open_annotator(project: str | None = None) -> OtelAnnotator:
    """Open the OTLP endpoint that the environment names. It knows no projects."""
    return OtelAnnotator()


def _evaluations(note: Note) -> Iterator[dict[str, Any]]:
    """An event of the GenAI conventions for each detector."""
    for name, each in note.scores.items():
        event: dict[str, Any] = {"gen_ai.evaluation.name": name, "touchstone.thresholds.version": note.version}
        if each.score is not None:
            event["gen_ai.evaluation.score.value"] = each.score
        event["gen_ai.evaluation.score.label"] = "flagged" if each.flagged else "not_flagged"
        if each.score is None and not each.flagged:
            event["gen_ai.evaluation.score.label"] = "unscored"
        if each.reason:
            event["gen_ai.evaluation.explanation"] = each.reason
        yield event


def _headers() -> Iterator[tuple[str, str]]:
    """Headers as OpenTelemetry writes them: `name=value,name=value`, values as in URLs."""
    for variable in HEADERS:
        for pair in os.environ.get(variable, "").split(","):
            name, equals, value = pair.partition("=")
            if equals and name.strip():
                yield name.strip(), unquote(value.strip())
