"""OTLP as JSON and protobuf: hand-written documents, what the SDK's own encoder writes, and garbage."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from calibrate.errors import BadInput
from calibrate.ingest.spans import otlp
from calibrate.ingest.spans.otlp import Refused, check_protobuf, spans_of_json, spans_of_protobuf
from calibrate.ingest.spans.record import SpanEvent, SpanRecord

TRACE, SPAN, PARENT = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"


def document(**span: Any) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    spans = [{"traceId": TRACE, "spanId": SPAN, **span}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "lib"}, "spans": spans}]}]}


def only(document: dict[str, Any]) -> SpanRecord | Refused:
    [span] = spans_of_json(document)
    return span


def test_json_as_the_specification_writes_it() -> None:
    values = {
        "text": {"stringValue": "a"},
        "flag": {"boolValue": False},
        "whole": {"intValue": "9007199254740993"},
        "number": {"intValue": 7},
        "share": {"doubleValue": 0.5},
        "none": {"doubleValue": "NaN"},
        "bytes": {"bytesValue": "AAE="},
        "list": {"arrayValue": {"values": [{"stringValue": "x"}, {"intValue": "2"}]}},
        "object": {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {}}}]}},
        "empty": {},
    }
    span = only(
        document(
            traceId=TRACE.upper(),
            parentSpanId=PARENT.upper(),
            name="chat",
            startTimeUnixNano="1544712660000000000",
            endTimeUnixNano=1544712661000000000,
            flags=0x301,
            attributes=[{"key": key, "value": value} for key, value in values.items()],
            events=[{"name": "gen_ai.choice", "attributes": [{"key": "index", "value": {"intValue": "0"}}]}],
        )
    )
    assert span == SpanRecord(
        trace_id=TRACE,
        span_id=SPAN,
        parent_id=PARENT,
        name="chat",
        scope="lib",
        started=1544712660000000000,
        ended=1544712661000000000,
        attributes={
            "text": "a",
            "flag": False,
            "whole": 9007199254740993,
            "number": 7,
            "share": 0.5,
            "none": None,
            "bytes": "AAE=",
            "list": ["x", 2],
            "object": {"k": []},
            "empty": None,
        },
        events=(SpanEvent("gen_ai.choice", {"index": 0}),),
        resource={"service.name": "shop"},
        remote_parent=True,
    )


def test_json_in_other_spellings() -> None:
    snake = {
        "resource_spans": [
            {
                "scope_spans": [
                    {
                        "spans": [
                            {
                                "trace_id": base64.b64encode(bytes.fromhex(TRACE)).decode(),
                                "span_id": base64.b64encode(bytes.fromhex(SPAN)).decode(),
                                "parent_span_id": "",
                                "start_time_unix_nano": 1.5e18,
                                "attributes": {"gen_ai.operation.name": "chat", "n": {"a": [1.5, float("inf")]}},
                            }
                        ]
                    }
                ]
            }
        ]
    }
    span = only(snake)
    assert isinstance(span, SpanRecord)
    assert (span.trace_id, span.span_id, span.parent_id, span.is_root) == (TRACE, SPAN, None, True)
    assert span.started == 1_500_000_000_000_000_000
    assert span.attributes == {"gen_ai.operation.name": "chat", "n": {"a": [1.5, None]}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"intValue": "1"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return value


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        ({"traceId": "0" * 32}, "trace id"),
        ({"traceId": None}, "trace id"),
        ({"spanId": SPAN[:-1]}, "span id"),
        ({"spanId": SPAN[:-1] + "g"}, "span id"),
        ({"parentSpanId": 7}, "parent id"),
        ({"attributes": "text"}, "neither a list nor an object"),
        ({"attributes": [{"key": "a", "value": nested(31)}]}, "nested deeper"),
        ({"attributes": {"a": json.loads("[" * 40 + "]" * 40)}}, "nested deeper"),
        ({"attributes": [{"key": str(n)} for n in range(20_001)]}, "20,001 attributes"),
        ({"events": [{}] * 10_001}, "10,001 events"),
    ],
)
def test_a_span_is_refused_with_the_reason_and_others_are_read(span: dict[str, Any], reason: str) -> None:
    both = document(**span)
    both["resourceSpans"][0]["scopeSpans"][0]["spans"].append({"traceId": TRACE, "spanId": PARENT})
    refused, good = spans_of_json(both)
    assert isinstance(refused, Refused)
    assert reason in refused.reason
    assert isinstance(good, SpanRecord)


def test_protobuf_and_json_of_the_sdk_read_alike() -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("lib")
    with tracer.start_as_current_span("root") as root:
        root.set_attribute("texts", ["a", "b"])
        with tracer.start_as_current_span("chat", attributes={"whole": 2**62, "share": 0.25, "flag": True}) as chat:
            chat.add_event("gen_ai.choice", {"index": 0})
    written = encode_spans(memory.get_finished_spans())
    [chat_span, root_span] = spans_of_protobuf(written.SerializeToString())
    assert isinstance(chat_span, SpanRecord)
    assert isinstance(root_span, SpanRecord)
    contexts = [span.get_span_context() for span in memory.get_finished_spans()]
    assert [(span.trace_id, span.span_id) for span in (chat_span, root_span)] == [
        (f"{context.trace_id:032x}", f"{context.span_id:016x}") for context in contexts if context
    ]
    assert chat_span.parent_id == root_span.span_id
    assert root_span.is_root
    assert not chat_span.is_root
    assert (chat_span.name, chat_span.scope, chat_span.resource["service.name"]) == ("chat", "lib", "shop")
    assert chat_span.attributes == {"whole": 2**62, "share": 0.25, "flag": True}
    assert chat_span.events == (SpanEvent("gen_ai.choice", {"index": 0}),)
    assert root_span.attributes == {"texts": ["a", "b"]}
    assert chat_span.started == memory.get_finished_spans()[0].start_time
    # protobuf's own JSON: base64 ids, camelCase keys, times as text
    from google.protobuf.json_format import MessageToDict

    assert list(spans_of_json(MessageToDict(written))) == [chat_span, root_span]


def test_protobuf_refuses_what_it_cannot_use() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    good = spans.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN))
    spans.add(trace_id=bytes(16), span_id=bytes.fromhex(SPAN))
    crowded = spans.add(trace_id=good.trace_id, span_id=good.span_id)
    for _ in range(100_000):
        crowded.attributes.add(key="a")
    deep = spans.add(trace_id=good.trace_id, span_id=good.span_id).attributes.add(key="deep").value
    for _ in range(60):
        deep = deep.array_value.values.add()
    body = request.SerializeToString()
    first, *others = spans_of_protobuf(body)
    assert isinstance(first, SpanRecord)
    reasons = [span.reason for span in others if isinstance(span, Refused)]
    assert ["trace id" in reasons[0], "100,000 attributes" in reasons[1], "nested" in reasons[2]] == [True] * 3
    assert check_protobuf(body) == (4, others)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_request_of_empty_messages_does_not_grow_in_memory(level: int) -> None:
    inner = b"\x0a\x00" if level == 0 else b"\x12\x00"
    body = inner * 2_000_000
    for number in [b"\x0a", b"\x12"][:level][::-1]:
        size = len(body)
        length = bytearray()
        while size > 0x7F:
            length.append(size & 0x7F | 0x80)
            size >>= 7
        body = number + bytes([*length, size]) + body
    with pytest.raises(BadInput, match="at once"):
        for _ in spans_of_protobuf(body):
            pass


def test_limits_agree_with_the_parser() -> None:
    """Protobuf's parser accepts what JSON may hold, so that both ways take the same spans."""
    span = Span(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN))
    value = span.attributes.add(key="deep").value
    for _ in range(otlp.MAX_DEPTH - 1):
        value = value.kvlist_value.values.add(key="k").value
    value.int_value = 1
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.append(span)
    assert check_protobuf(request.SerializeToString()) == (1, [])
    [read] = spans_of_json(document(attributes=[{"key": "deep", "value": nested(otlp.MAX_DEPTH - 1)}]))
    assert isinstance(read, SpanRecord)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_no_protobuf(body: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert all(isinstance(span, (SpanRecord, Refused)) for span in spans_of_protobuf(body))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_protobuf_never_ends_in_a_traceback(data: st.DataObject) -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for name in ("one", "two"):
        span = spans.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), name=name)
        span.attributes.add(key="a").value.array_value.values.add(string_value="é")
    body = bytearray(request.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadInput):
        read = list(spans_of_protobuf(bytes(body)))
        assert check_protobuf(bytes(body)) == (len(read), [span for span in read if isinstance(span, Refused)])


KEYS = [
    "resource",
    "attributes",
    "scope",
    "spans",
    "traceId",
    "spanId",
    "parentSpanId",
    "key",
    "value",
    "values",
    "name",
]
KEYS += ["stringValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "events", "flags", "startTimeUnixNano"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(JSON, JSON, st.dictionaries(st.sampled_from(["attributes", "events", "flags", "parentSpanId", "name"]), JSON))
def test_odd_json_never_ends_in_a_traceback(outer: Any, scopes: Any, span: dict[str, Any]) -> None:
    bodies: list[Any] = [{"resourceSpans": outer}, {"resourceSpans": [{"scopeSpans": scopes}]}, document(**span)]
    for body in bodies:
        with contextlib.suppress(BadInput):
            assert all(isinstance(read, (SpanRecord, Refused)) for read in spans_of_json(body))
