"""Result spans as an OTLP endpoint gets them: read with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from calibrate.errors import BadInput
from calibrate.ingest.systems.base import Note, NoteScore, PullRequest
from calibrate.ingest.systems.otel import OtelAnnotator

TRACE, SPAN = "a88ed407277f80ff39048bb0ffbf3b46", "f83b305a80f6c689"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOTE = Note(
    f"{TRACE}-{SPAN}/v7", TRACE, SPAN, 7, "REJECT", "page",
    {"rouge_l": NoteScore(0.25, 0.5, True, "rouge_l 0.25 ≤ 0.5"), "nli": NoteScore(None, 0.1, False)},
    ("rouge_l 0.25 ≤ 0.5",), NOW,
)  # fmt: skip


@contextmanager
def collector(*statuses: int) -> Iterator[tuple[str, list[tuple[dict[str, str], Any]]]]:
    got: list[tuple[dict[str, str], Any]] = []
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((dict(self.headers), ExportTraceServiceRequest.FromString(body)))
            self.send_response(left.pop(0) if left else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()


def values(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


def test_a_note_is_one_span_below_the_answers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    with collector(503) as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret, x-team=shop")
        annotator = OtelAnnotator(PullRequest(wait=waits.append))
        other = Note("x/v7", TRACE, TRACE, 7, "ACCEPT", "off", {})
        assert list(annotator.annotate([NOTE, other])) == ["x/v7"]
        annotator.annotate([NOTE])
    assert waits == [1.0]
    headers, first = got[1]
    assert (headers["Authorization"], headers["X-Team"]) == ("Bearer s3cret", "shop")
    (span,) = first.resource_spans[0].scope_spans[0].spans
    assert (span.trace_id.hex(), span.parent_span_id.hex(), len(span.span_id)) == (TRACE, SPAN, 8)
    assert span.name == "touchstone.detector.result"
    assert span.start_time_unix_nano == int(NOW.timestamp()) * 10**9
    attributes = values(span.attributes)
    assert attributes["touchstone.verdict"] == "REJECT"
    assert attributes["touchstone.thresholds.version"] == 7
    assert attributes["touchstone.score.rouge_l"] == 0.25
    assert [each.string_value for each in attributes["touchstone.flags"].values] == ["rouge_l"]
    flagged, unscored = [values(event.attributes) for event in span.events]
    assert flagged == {
        "gen_ai.evaluation.name": "rouge_l", "touchstone.thresholds.version": 7, "gen_ai.evaluation.score.value": 0.25,
        "gen_ai.evaluation.score.label": "flagged", "gen_ai.evaluation.explanation": "rouge_l 0.25 ≤ 0.5",
    }  # fmt: skip
    assert unscored["gen_ai.evaluation.score.label"] == "unscored"
    assert got[0][1] == got[1][1] == got[2][1]  # a backend takes the second for the same span


def test_without_an_endpoint_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    with pytest.raises(BadInput, match="set OTEL_EXPORTER_OTLP_ENDPOINT"):
        OtelAnnotator()
