"""Spans of Phoenix and traces of MLflow, written by hand from what their servers return."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest import read
from calibrate.ingest.exports import mlflow, phoenix
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.record import SpanRecord
from calibrate.ingest.values import FieldError
from calibrate.types import Record, Source, Trace

TRACE, LLM, RETRIEVER, ROOT = (
    "a88ed407277f80ff39048bb0ffbf3b46",
    "f83b305a80f6c689",
    "f80c86660cbc8168",
    "72c40aabda03a2fd",
)
EXPECTED = Trace(
    id=f"{TRACE}-{LLM}",
    answer="At noon.",
    question="When?",
    sources=(Source("1", "Parcels leave at noon.", "d1", 0.9),),
    timestamp=datetime(2026, 11, 23, 17, 56, 12, 394593, UTC),
    model="m",
    attributes={"session.id": "s1"},
)


def span(name: str, span_id: str, kind: str, second: str, parent: str | None, **attributes: Any) -> dict[str, Any]:
    return {
        "id": "U3Bhbjox", "name": name, "context": {"trace_id": TRACE, "span_id": span_id}, "span_kind": kind,
        "parent_id": parent, "start_time": f"2026-11-23T17:56:{second}+00:00", "status_code": "UNSET",
        "end_time": "2026-11-23T17:56:12.420000+00:00", "status_message": "", "events": [], "attributes": attributes,
    }  # fmt: skip


MESSAGES = {
    "llm.model_name": "m",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "When?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "At noon.",
}
DOCUMENT = {
    "retrieval.documents.0.document.id": "d1",
    "retrieval.documents.0.document.score": 0.9,
    "retrieval.documents.0.document.content": "Parcels leave at noon.",
}
API = [
    span("rag", ROOT, "CHAIN", "12.104244", None, **{"session.id": "s1", "input.value": "q?"}),
    span("llm", LLM, "LLM", "12.394593", ROOT, **MESSAGES),
    span("search", RETRIEVER, "RETRIEVER", "12.104346", ROOT, **DOCUMENT, **{"input.value": "q?"}),
]
NAN = float("nan")


def frame_row(each: dict[str, Any]) -> dict[str, Any]:
    """As `get_spans_dataframe` has it: ids and attributes in columns, messages in lists, NaN where there is nothing."""
    row = {key: value for key, value in each.items() if key not in ("context", "attributes", "id")}
    row |= {
        "context.trace_id": TRACE,
        "context.span_id": each["context"]["span_id"],
        "parent_id": each["parent_id"] or NAN,
    }
    nested = {
        "attributes.llm.model_name": each["attributes"].get("llm.model_name", NAN),
        "attributes.session.id": each["attributes"].get("session.id", NAN),
        "attributes.input.value": each["attributes"].get("input.value", NAN),
        "attributes.llm.input_messages": None, "attributes.llm.output_messages": None,
        "attributes.retrieval.documents": None, "attributes.openinference.span.kind": each["span_kind"],
    }  # fmt: skip
    if "llm.model_name" in each["attributes"]:
        nested["attributes.llm.input_messages"] = [{"message.role": "user", "message.content": "When?"}]
        nested["attributes.llm.output_messages"] = [{"message.role": "assistant", "message.content": "At noon."}]
    if each["span_kind"] == "RETRIEVER":
        document = {"document.id": "d1", "document.score": 0.9, "document.content": "Parcels leave at noon."}
        nested["attributes.retrieval.documents"] = [document]
    return row | nested


def answers(spans: list[SpanRecord]) -> list[Trace]:
    return [answer.trace for answer in answers_of(spans)]


def test_spans_of_the_api_are_one_answer_with_its_sources() -> None:
    assert answers([phoenix.span_of(each) for each in API]) == [EXPECTED]


def test_rows_of_the_dataframe_say_the_same() -> None:
    assert answers([phoenix.span_of(frame_row(each)) for each in API]) == [EXPECTED]


def test_times_in_a_frame_that_pandas_wrote_as_json_are_milliseconds() -> None:
    assert phoenix.moment(1795456572394) == 1795456572394 * 10**6
    assert phoenix.moment("2026-11-23T17:56:12.394593+00:00") == 1795456572394593 * 10**3


@pytest.mark.parametrize("broken", [{"context": {}}, {"context": {"trace_id": TRACE}}, {"start_time": "noon"}])
def test_a_span_without_an_id_or_with_no_time_is_named(broken: dict[str, Any]) -> None:
    with pytest.raises(FieldError, match=r"trace_id|span_id|time"):
        phoenix.span_of({**API[0], **broken})


def test_annotations_are_of_people_or_of_programs() -> None:
    given = {"span_id": LLM, "name": "hallucination", "annotator_kind": "HUMAN", "identifier": "ann",
             "result": {"label": "hallucinated", "score": 1.0, "explanation": "wrong"}}  # fmt: skip
    remark = phoenix.remark_of(given)
    assert (remark.value, remark.by_person, remark.author, remark.comment) == ("hallucinated", True, "ann", "wrong")
    program = phoenix.remark_of({**given, "annotator_kind": "LLM"})
    assert (program.value, program.by_person) == (1.0, False)


MLFLOW: dict[str, Any] = {
    "info": {
        "trace_id": f"tr-{TRACE}",
        "request_time": "2026-11-23T17:57:45.255Z",
        "state": "OK",
        "trace_metadata": {"mlflow.trace.session": "s1", "mlflow.user": "root"},
        "tags": {"mlflow.traceName": "rag"},
        "assessments": [
            {"assessment_id": "a1", "assessment_name": "hallucination", "span_id": LLM, "rationale": "wrong",
             "source": {"source_type": "HUMAN", "source_id": "ann"}, "feedback": {"value": True}, "valid": True},
            {"assessment_id": "a2", "assessment_name": "faithful", "feedback": {"value": 0.5}, "valid": False,
             "source": {"source_type": "LLM_JUDGE", "source_id": "j"}},
        ],
    },
    "data": {
        "spans": [
            {"trace_id": "qI7UByd/gP85BIuw/787Rg==", "span_id": "csQKq9oDov0=", "parent_span_id": None, "name": "rag",
             "start_time_unix_nano": 1795456572104244000, "end_time_unix_nano": 1795456572420000000, "events": [],
             "attributes": {"mlflow.spanType": '"UNKNOWN"', "mlflow.spanInputs": '{"question": "When?"}',
                            "mlflow.spanOutputs": '"At noon."'}},
            {"trace_id": "qI7UByd/gP85BIuw/787Rg==", "span_id": "+AyGZgy8gWg=", "parent_span_id": "csQKq9oDov0=",
             "name": "search", "start_time_unix_nano": 1795456572104346000, "end_time_unix_nano": 1795456572104400000,
             "events": [], "attributes": {"mlflow.spanType": '"RETRIEVER"', "mlflow.spanInputs": '{"q": "q?"}',
             "mlflow.spanOutputs": '[{"page_content": "Parcels leave at noon.", "metadata": {"score": 0.9}, "id": "d1"}]'}},  # noqa: E501
            {"trace_id": "qI7UByd/gP85BIuw/787Rg==", "span_id": "+DswWoD2xok=", "parent_span_id": "csQKq9oDov0=",
             "name": "llm", "start_time_unix_nano": 1795456572394593000, "end_time_unix_nano": 1795456572394600000,
             "events": [], "attributes": {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": '"m"',
             "mlflow.spanInputs": '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "When?"}]}',  # noqa: E501
             "mlflow.spanOutputs": '{"choices": [{"message": {"role": "assistant", "content": "At noon."}}]}'}},
        ]
    },
}  # fmt: skip


def test_a_trace_of_mlflow_3_is_one_answer_with_its_sources() -> None:
    built = mlflow.build_trace(MLFLOW)
    (answer,) = answers(built.spans)
    assert answer == Trace(**{**{name: getattr(EXPECTED, name) for name in EXPECTED.__slots__}, "operation": "chat"})


def test_a_trace_of_mlflow_2_has_its_ids_in_hexadecimal_and_times_in_nanoseconds() -> None:
    spans = []
    for each, own in zip(MLFLOW["data"]["spans"], (ROOT, RETRIEVER, LLM), strict=True):
        old = {"context": {"span_id": f"0x{own}", "trace_id": f"0x{TRACE}"}, "name": each["name"], "events": []}
        times = {"start_time": each["start_time_unix_nano"], "end_time": each["end_time_unix_nano"]}
        spans.append(
            {**old, **times, "parent_id": None if own == ROOT else f"0x{ROOT}", "attributes": each["attributes"]}
        )
    info = {"request_id": TRACE, "timestamp_ms": 1795456665255, "status": "OK", "request_metadata": {}, "tags": {}}
    (answer,) = answers(mlflow.build_trace({"info": info, "data": {"spans": spans}}).spans)
    assert (answer.id, answer.answer, answer.sources) == (EXPECTED.id, EXPECTED.answer, EXPECTED.sources)
    assert answer.timestamp == EXPECTED.timestamp


def test_a_function_that_is_traced_alone_answers_with_what_it_returns() -> None:
    alone = {**MLFLOW, "data": {"spans": MLFLOW["data"]["spans"][:2]}}
    (answer,) = answers(mlflow.build_trace(alone).spans)
    assert (answer.id, answer.question, answer.answer) == (f"{TRACE}-{ROOT}", "When?", "At noon.")
    assert [source.text for source in answer.sources] == ["Parcels leave at noon."]


def test_assessments_that_others_replaced_do_not_count() -> None:
    (remark,) = mlflow.build_trace(MLFLOW).remarks
    assert (remark.name, remark.value, remark.by_person, remark.target) == ("hallucination", True, True, LLM)
    assert (remark.author, remark.comment) == ("ann", "wrong")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS | st.sampled_from(['{"a": [1', '"x"', "[]", TRACE, LLM, "LLM", '"CHAT_MODEL"', "2026-11-23T17:56:12Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def changed(document: Any, data: st.DataObject) -> Any:
    """The document with a few of its values replaced or taken away."""
    copy = json.loads(json.dumps(document))
    for _ in range(data.draw(st.integers(1, 4))):
        holder: Any = copy
        while isinstance(holder, (dict, list)) and holder:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            key = data.draw(st.sampled_from(list(keys)))
            if not isinstance(holder[key], (dict, list)) or data.draw(st.booleans()):
                holder[key] = data.draw(VALUES)
                break
            holder = holder[key]
    return copy


@given(st.data())
def test_no_garbage_in_phoenix_is_a_traceback(data: st.DataObject) -> None:
    spans = []
    for each in data.draw(st.sampled_from([API, [frame_row(each) for each in API]])):
        try:
            spans.append(phoenix.span_of(changed(each, data)))
        except FieldError:
            continue
    for answer in answers_of(spans):
        assert row_of(answer, 1).fields["answer"]
    phoenix.remark_of(data.draw(st.dictionaries(st.text(max_size=5), VALUES, max_size=4)))


@given(st.data())
def test_no_garbage_in_mlflow_is_a_traceback(data: st.DataObject) -> None:
    try:
        built = mlflow.build_trace(changed(MLFLOW, data))
    except FieldError:
        return
    for answer in answers_of(built.spans):
        assert row_of(answer, 1).fields["answer"]


def imported(tmp_path: Path, text: str, name: str = "export.json") -> list[Trace]:
    path = tmp_path / name
    path.write_text(text)
    return [record.trace for record in read(path) if isinstance(record, Record)]


def test_files_of_both_are_recognized_by_what_they_hold(tmp_path: Path) -> None:
    trace = {name: getattr(EXPECTED, name) for name in EXPECTED.__slots__}
    assert imported(tmp_path, json.dumps(API)) == [EXPECTED]
    assert imported(tmp_path, json.dumps({"data": API, "next_cursor": None}, indent=1)) == [EXPECTED]
    rows = [{name: value for name, value in frame_row(each).items() if value == value} for each in API]
    assert imported(tmp_path, "\n".join(map(json.dumps, rows)), "spans.jsonl") == [EXPECTED]
    for text in (json.dumps(MLFLOW), json.dumps([MLFLOW]), json.dumps(MLFLOW, indent=2)):
        assert imported(tmp_path, text) == [Trace(**{**trace, "operation": "chat"})]


def test_a_dataframe_of_phoenix_as_parquet(tmp_path: Path) -> None:
    path = tmp_path / "spans.parquet"
    frame = pd.DataFrame([frame_row(each) for each in API])
    frame["start_time"] = pd.to_datetime(frame["start_time"])
    frame.drop(columns="events").to_parquet(path)
    assert [record.trace for record in read(path, format="phoenix") if isinstance(record, Record)] == [EXPECTED]


def test_a_file_without_an_answer_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="traces of Phoenix without an answer"):
        imported(tmp_path, json.dumps(API[:1]))
