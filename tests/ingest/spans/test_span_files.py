"""Files of spans, written by the SDK's own encoders and printers: what is imported, and what is said of the rest."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.internal.encoder import _VarintBytes
from google.protobuf.json_format import MessageToDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from calibrate.errors import BadInput
from calibrate.ingest import Rejected, preview, read, span_files
from calibrate.types import Record
from tests.ingest.spans.making import TRUE, chat, retrieval

PASSAGE = "Oxygen was discovered by Joseph Priestley in 1774."


def traced(count: int = 3) -> tuple[ReadableSpan, ...]:
    """The spans of so many requests to a program: a retriever's, a model's, and the root."""
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("program")
    for number in range(count):
        with tracer.start_as_current_span("answer", attributes={"user.id": f"u-{number}"}):
            tracer.start_span("retrieve", attributes=retrieval(PASSAGE)).end()
            tracer.start_span("chat", attributes=chat(f"{TRUE} {number}")).end()
    return exporter.get_finished_spans()


SPANS = traced()
REQUESTS = [encode_spans(SPANS[at : at + 2]) for at in range(0, len(SPANS), 2)]  # a trace is in several requests
PLAIN = [MessageToDict(request) for request in REQUESTS]
WHOLE = encode_spans(SPANS)


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def lines(documents: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def framed(bodies: Iterable[bytes], length: Callable[[int], bytes]) -> bytes:
    return b"".join(length(len(body)) + body for body in bodies)


def fixed(length: int) -> bytes:
    return struct.pack(">I", length)


BODIES = [request.SerializeToString() for request in REQUESTS]
JAVASCRIPT = [
    {
        "name": one.name,
        "spanContext": {"traceId": f"{one.context.trace_id:032x}", "spanId": f"{one.context.span_id:016x}"},
        "parentSpanContext": {"spanId": f"{one.parent.span_id:016x}"} if one.parent else None,
        "startTime": divmod(one.start_time or 0, 10**9),
        "endTime": divmod(one.end_time or 0, 10**9),
        "attributes": dict(one.attributes or {}),
        "events": [],
    }
    for one in SPANS
]
ANY_AGENT = {
    "spans": [
        {
            "name": one.name,
            "context": {"trace_id": one.context.trace_id, "span_id": one.context.span_id, "is_remote": False},
            "parent": {"span_id": one.parent.span_id} if one.parent else None,
            "start_time": one.start_time,
            "end_time": one.end_time,
            "attributes": dict(one.attributes or {}),
        }
        for one in SPANS
    ],
    "final_output": "",
}
FILES: dict[str, bytes] = {
    "document.json": json.dumps(MessageToDict(WHOLE), indent=2).encode(),
    "line.json": json.dumps(MessageToDict(WHOLE)).encode(),
    "mark.json": b"\xef\xbb\xbf" + json.dumps(MessageToDict(WHOLE)).encode(),
    "requests.jsonl": lines(PLAIN),
    "collector.json": lines([*PLAIN[:2], {"resourceMetrics": []}, *PLAIN[2:]]),
    "list.json": json.dumps(PLAIN).encode(),
    "requests.jsonl.gz": gzip.compress(lines(PLAIN)),
    "request.pb": WHOLE.SerializeToString(),
    "request.pb.gz": gzip.compress(WHOLE.SerializeToString()),
    "collector.pb": framed(BODIES, fixed),
    "collector.zst": framed([zstd(body) for body in BODIES], fixed),
    "delimited.bin": framed(BODIES, _VarintBytes),
    "console.txt": "\n".join(one.to_json() for one in SPANS).encode(),
    "console.jsonl": "\n".join(one.to_json(indent=None) for one in SPANS).encode(),
    "javascript.json": json.dumps(JAVASCRIPT, indent=2).encode(),
    "any_agent.json": json.dumps(ANY_AGENT, indent=2).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_spans_is_recognized_and_its_answers_are_those_of_the_spans(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    records = [record for record in read(path) if isinstance(record, Record)]
    assert [record.trace.answer for record in records] == [f"{TRUE} {number}" for number in range(3)]
    ids = [f"{one.context.trace_id:032x}-{one.context.span_id:016x}" for one in SPANS if one.name == "chat"]
    starts = [(one.start_time or 0) // 1000 for one in SPANS if one.name == "chat"]
    assert [record.trace.id for record in records] == ids
    for record, start, number in zip(records, starts, range(3), strict=True):
        trace = record.trace
        assert (trace.question, trace.model, trace.operation) == ("Who discovered oxygen?", "m-1", "chat")
        assert [source.text for source in trace.sources] == [PASSAGE]
        assert trace.timestamp is not None
        to_the_millisecond = name.startswith("console")
        assert abs(trace.timestamp.timestamp() * 1e6 - start) < (1000 if to_the_millisecond else 2)
        assert trace.attributes["user.id"] == f"u-{number}"
    assert preview(path).format == ("otlp" if name.split(".")[0] in OTLP else "spans")


OTLP = ("document", "line", "mark", "requests", "collector", "list", "request", "delimited")


def rows(path: Path, **settings: Any) -> tuple[list[Record], list[Rejected]]:
    results = list(read(path, **settings))
    records = [each for each in results if isinstance(each, Record)]
    return records, [each for each in results if isinstance(each, Rejected)]


def test_a_program_names_its_own_attributes_as_columns(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    item = {"name": "x", "context": {"trace_id": "0x1", "span_id": "0x2"}, "attributes": {"app.reply": "Yes"}}
    path.write_text(json.dumps(item))
    (record,), _ = rows(path, columns={"answer": "app.reply"})
    assert record.trace.answer == "Yes"
    with pytest.raises(BadInput, match="no field anwser; there are"):
        list(read(path, columns={"anwser": "app.reply"}))


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"http.method": "GET"}, "trace.json: 1 span, none holds an answer. The span of a model's call has it"),
        ({"gen_ai.operation.name": "chat"}, "trace.json: 1 span, of which 1 is a call of a model, without the text"),
    ],
)
def test_a_file_without_an_answer_says_what_it_has_and_what_to_switch_on(
    attributes: dict[str, str], said: str, tmp_path: Path
) -> None:
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.get_tracer("program").start_span("x", attributes=attributes).end()
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(MessageToDict(encode_spans(exporter.get_finished_spans()))))
    with pytest.raises(BadInput, match=said) as problem:
        list(read(path))
    assert "opentelemetry.md" in str(problem.value)


def test_what_is_damaged_is_rejected_and_the_rest_is_kept(tmp_path: Path) -> None:
    broken = json.loads(json.dumps(PLAIN[0]))
    broken["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "short"
    path = tmp_path / "requests.jsonl"
    path.write_bytes(lines(PLAIN) + b"{not json\n" + lines([broken, {"resourceSpans": 5}, [], "x"]))
    records, rejected = rows(path)
    assert len(records) == 3
    assert [each.line for each in rejected] == [6, 7, 8]
    cut = tmp_path / "cut.pb"
    cut.write_bytes(framed(BODIES, fixed)[:-5])
    records, (rejection,) = rows(cut)
    assert len(records) == 3
    assert rejection.last
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(lines(PLAIN * 100))[:-20])
    assert any(each.last for each in rows(cut)[1])


def test_a_document_too_large_to_decode_is_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_files, "MAX_DOCUMENT_BYTES", 1500)
    for name in ("document.json", "line.json", "any_agent.json", "request.pb"):
        path = tmp_path / name
        path.write_bytes(FILES[name])
        with pytest.raises(BadInput, match=r"of more than 0 MB.*(request a line|each request after its length)"):
            list(read(path))
    bomb = tmp_path / "bomb.zst"
    bomb.write_bytes(framed([zstd(b"\x0a" * 100_000)], fixed))
    assert "decompressed" in rows(bomb)[1][0].reason


def test_what_waits_for_its_trace_is_bounded_and_a_cut_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_files, "MAX_HELD_SPANS", 4)
    many = traced(6)
    ordered = [*many[:2], *many[3:12], many[2], *many[12:]]  # the first root comes after nine others
    late = [*many[3:], many[0], many[1]]
    for order, cuts in ((ordered, 0), ([many[0], *many[3:], many[1]], 1), (late, 0)):
        path = tmp_path / "requests.jsonl"
        path.write_bytes(lines(MessageToDict(encode_spans([one])) for one in order))
        records, rejected = rows(path)
        assert sorted(record.trace.answer for record in records) == [f"{TRUE} {number}" for number in range(6)]
        assert len(rejected) == cuts
        assert all("is cut in two" in each.reason for each in rejected)
        assert sum(not record.trace.sources for record in records) == cuts


ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        ["gen_ai.output.messages", "gen_ai.completion", "touchstone.sources", "output.value", "ai.operationId", "x"]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
IDS = st.one_of(st.none(), st.integers(), st.text("0123456789abcdefx-", max_size=40))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.none() | st.text(max_size=5),
                "context": st.fixed_dictionaries({"trace_id": IDS, "span_id": IDS}),
            },
            optional={
                "attributes": ATTRIBUTES | st.none() | st.integers(),
                "start_time": st.none() | st.integers() | st.text(max_size=30) | st.lists(st.integers(), max_size=3),
                "parent": st.none() | st.dictionaries(st.sampled_from(["span_id"]), IDS),
                "events": st.none() | st.lists(st.fixed_dictionaries({"name": st.none(), "attributes": ATTRIBUTES})),
            },
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_a_dump_of_spans_holds_it_is_read_or_refused(tmp_path: Path, spans: list[Any]) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(spans))
    try:
        records, rejected = rows(path, format="spans")
    except BadInput:
        return
    assert all(record.trace.id and record.trace.answer for record in records)
    assert all(each.reason for each in rejected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.sampled_from(["collector.pb", "request.pb", "requests.jsonl"]))
def test_garbage_in_a_file_is_refused_with_a_sentence(tmp_path: Path, garbage: bytes, place: int, name: str) -> None:
    content = FILES[name]
    path = tmp_path / name
    path.write_bytes(content[:place] + garbage + content[place + len(garbage) :])
    try:
        records, _ = rows(path, format="otlp")
    except BadInput:
        return
    assert all(record.trace.answer for record in records)
