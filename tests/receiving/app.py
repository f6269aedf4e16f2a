"""A program that answers two questions, traced with the OpenTelemetry SDK and sent by its OTLP exporter."""

from __future__ import annotations

import json

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def text(role: str, content: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])


provider = TracerProvider(resource=Resource({"service.name": "python"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("app")
for number in range(2):
    with tracer.start_as_current_span("request", attributes={"session.id": "s1"}):
        with tracer.start_as_current_span("retrieve") as span:
            span.set_attribute("gen_ai.operation.name", "retrieval")
            documents = [{"id": "a", "content": f"Paris has {number} rivers.", "score": 0.5}]
            span.set_attribute("gen_ai.retrieval.documents", json.dumps(documents))
        with tracer.start_as_current_span("chat") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.response.model", "python-model")
            span.set_attribute("gen_ai.input.messages", text("user", "How many rivers has Paris?"))
            span.set_attribute("gen_ai.output.messages", text("assistant", f"It has {number}."))
            said = {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": number / 4}
            span.add_event("gen_ai.evaluation.result", said)
provider.shutdown()
