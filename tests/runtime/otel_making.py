"""A small instrumented program for tests: the real OpenTelemetry SDK with exporters that keep what they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from calibrate import registry
from calibrate.runtime.otel import TouchstoneSpanProcessor
from calibrate.thresholds import DetectorEntry, ThresholdsFile
from tests.ingest.spans.making import TRUE, chat, retrieval
from tests.thresholds.make import entry, release

RESULT = "touchstone.detector.result"
PASSAGE = "Oxygen was discovered by Joseph Priestley in 1774."
FALSE = "Marie Curie invented helium balloons yesterday."
__all__ = ["FALSE", "TRUE", "chat", "retrieval"]


def file_of(**entries: Any) -> ThresholdsFile:
    """A release with these detectors: name=(threshold, flag_when, tier)."""
    return release({name: point_of(name, *point) for name, point in entries.items()})


def point_of(name: str, threshold: float, flag_when: str, tier: str, **more: Any) -> DetectorEntry:
    version = registry.get(name).version if name in registry.names() else "1"
    return entry(threshold, flag_when, tier, params={}, revision="", version=version, **more)


FILE = file_of(word_overlap=(0.5, "below", "page"))


class Program:
    """One that answers: `ask` makes a trace of three spans, `results` are what the processor sent."""

    def __init__(self, thresholds: Any = FILE, **settings: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        settings = {"tracer_provider": self.provider, "meter_provider": self.meters} | settings
        self.processor = TouchstoneSpanProcessor(thresholds, **settings)
        self.provider.add_span_processor(self.processor)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("program")

    def ask(self, answer: str = TRUE, *passages: str, **more: Any) -> None:
        with self.tracer.start_as_current_span("answer"):
            with self.tracer.start_as_current_span("retrieve", attributes=retrieval(*(passages or (PASSAGE,)))):
                pass
            with self.tracer.start_as_current_span("chat", attributes=chat(answer, **more)):
                pass

    def span(self, **attributes: Any) -> None:
        """A trace of one span."""
        self.tracer.start_span("one", attributes=attributes).end()

    def results(self) -> list[ReadableSpan]:
        """After a flush."""
        assert self.provider.force_flush(20_000)
        return [span for span in self.exporter.get_finished_spans() if span.name == RESULT]

    def result(self) -> ReadableSpan:
        (span,) = self.results()
        return span

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """(attributes, data point) by the metric's name."""
        read = self.reader.get_metrics_data()
        scopes = [scope for resource in read.resource_metrics for scope in resource.scope_metrics] if read else []
        return {m.name: [(dict(p.attributes), p) for p in m.data.data_points] for s in scopes for m in s.metrics}


def scores(span: ReadableSpan) -> dict[str, float]:
    prefix = "touchstone.score."
    return {key.removeprefix(prefix): value for key, value in (span.attributes or {}).items() if key.startswith(prefix)}


def events(span: ReadableSpan) -> Sequence[dict[str, Any]]:
    return [dict(event.attributes or {}) for event in span.events if event.name == "gen_ai.evaluation.result"]
