"""A shop's assistant that is traced into Phoenix by OpenTelemetry: `phoenix_shop.py PROJECT COUNT`.

Its answers are spread over the last days. Prints the ids of the spans, one answer a line.
"""

import json
import os
import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from phoenix.client import Client

project, count = sys.argv[1], int(sys.argv[2])
server = os.environ["SERVER"]
provider = TracerProvider(resource=Resource({"openinference.project.name": project}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{server}/v1/traces")))
tracer = provider.get_tracer("shop")
SECOND = 10**9
now = time.time_ns()
for n in range(count):
    began = now - (count - n) * 7 * 3600 * SECOND
    root = tracer.start_span(
        "ask",
        start_time=began,
        attributes={
            "openinference.span.kind": "CHAIN",
            "input.value": f"When does parcel {n} leave?",
            "session.id": f"s{n}",
        },
    )
    inside = trace.set_span_in_context(root)
    retriever = tracer.start_span(
        "search",
        context=inside,
        start_time=began + SECOND,
        attributes={
            "openinference.span.kind": "RETRIEVER",
            "input.value": f"parcel {n}",
            "retrieval.documents.0.document.id": "handbook",
            "retrieval.documents.0.document.score": 0.75,
            "retrieval.documents.0.document.content": "parcels leave our warehouse before noon",
        },
    )
    retriever.end(began + 2 * SECOND)
    clean = n % 2
    answer = "parcels leave our warehouse before noon" if clean else f"bananas are yellow {n}"
    call = tracer.start_span(
        "model",
        context=inside,
        start_time=began + 3 * SECOND,
        attributes={
            "openinference.span.kind": "LLM",
            "llm.model_name": "small-1",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": f"When does parcel {n} leave?",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer,
        },
    )
    call.end(began + 4 * SECOND)
    root.end(began + 5 * SECOND)
    ids = call.get_span_context()
    print(
        json.dumps(
            {
                "trace": format(ids.trace_id, "032x"),
                "span": format(ids.span_id, "016x"),
                "root": format(root.get_span_context().span_id, "016x"),
                "began": began + 3 * SECOND,
                "answer": answer,
            }
        )
    )
provider.shutdown()
client = Client(base_url=server)
for _ in range(100):  # Phoenix takes spans in and stores them a moment later
    try:
        if len(client.spans.get_spans(project_identifier=project, limit=3 * count)) == 3 * count:
            break
    except Exception:
        pass
    time.sleep(0.3)
else:
    sys.exit("the spans did not arrive")
