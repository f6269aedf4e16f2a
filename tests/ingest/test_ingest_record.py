"""What a line of JSON becomes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingesting import good, only, reasons

from calibrate.ingest import Record, Rejected, read
from calibrate.ingest.record import RECORD_FIELDS
from calibrate.types import Source, Span, Token


def test_every_field(jsonl):
    line = good(
        timestamp="2026-01-31T14:00:00+02:00",
        model="gpt",
        operation="rag_qa",
        context="All of it.",
        sources={"1": "One.", "7": {"title": "Seven", "text": "7.", "retrieval_score": 0.5}},
        tokens=[
            {"token": "She", "logprob": -0.25, "top_logprobs": [{"token": "He", "logprob": -2}], "bytes": [83]},
            {"token": " did", "logprob": 0, "top_logprobs": {"x": -3.5}},
        ],
        samples=["He did.", ""],
        schema={"type": "object"},
        label="Hallucinated",
        label_type="contradiction",
        spans=[{"start": 0, "end": 3, "type": "name"}],
        dataset="D",
        source_id=12,
        attributes={"tier": "gold", "n": 3, "nested": {}},
        split="test",
        extra={"quality": "good", "long": "x" * 999, "claims": []},
    )
    record = only(jsonl(line))
    trace = record.trace
    assert (trace.id, trace.question, trace.answer, trace.context) == ("a", "Who?", "She did [1].", "All of it.")
    assert trace.timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert trace.sources == (Source("1", "One."), Source("7", "7.", "Seven", 0.5))
    assert trace.tokens == (Token("She", -0.25, (("He", -2.0),)), Token(" did", 0.0, (("x", -3.5),)))
    assert trace.alternatives == ("He did.", "")
    assert trace.schema == {"type": "object"}
    assert trace.group == "D/12"
    assert trace.attributes == {"tier": "gold", "n": 3, "dataset": "D", "split": "test", "quality": "good"}
    assert set(record.left_out) == {"attributes.nested", "extra.long", "extra.claims"}
    (label,) = record.labels
    assert (label.trace_id, label.verdict, label.kinds, label.note) == ("a", "hallucinated", ("contradiction",), None)
    assert label.spans == (Span(0, 3, "name"),)
    assert label.labeller == ""


def test_null_and_missing_are_the_same(jsonl):
    nulls = dict.fromkeys(RECORD_FIELDS - {"answer", "trace_id", "question"})
    assert only(jsonl(good(**nulls))).trace == only(jsonl(good(), name="b.jsonl")).trace


def test_a_label_type_we_do_not_know_is_kept_in_the_note(jsonl):
    (label,) = only(jsonl(good(label="clean", label_type="attributable"))).labels
    assert (label.kinds, label.note) == ((), "label_type: attributable")
    assert only(jsonl(good(label=None, label_type="unlabelled"), name="b.jsonl")).labels == ()


@pytest.mark.parametrize(
    ("sources", "numbers"),
    [
        (["One.", "Two."], ["1", "2"]),
        ([{"text": "One."}, {"number": 9, "text": "Two."}], ["1", "9"]),
        ({}, []),
        ([], []),
    ],
)
def test_sources_in_a_list(jsonl, sources, numbers):
    assert [source.number for source in only(jsonl(good(sources=sources))).trace.sources] == numbers


def test_alternatives_go_before_samples_and_a_schema_may_be_a_boolean(jsonl):
    trace = only(jsonl(good(alternatives=["x"], samples=["y"], schema=False))).trace
    assert trace.alternatives == ("x",)
    assert trace.schema is False


def test_traces_that_share_their_passages_share_a_group(jsonl):
    ragtruth = good(dataset="RAGTruth", source_id="12012", extra={"source_group": "14318"})
    assert only(jsonl(ragtruth)).trace.group == "RAGTruth/14318"
    assert only(jsonl(good(group="mine", source_id="x"), name="b.jsonl")).trace.group == "mine"


@pytest.mark.parametrize(
    ("value", "iso"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05.123456789+00:00", "2026-01-02T03:04:05.123456+00:00"),
        ("2026-01-02 03:04:05", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02", "2026-01-02T00:00:00+00:00"),
        (1767323045, "2026-01-02T03:04:05+00:00"),
        (1767323045.5, "2026-01-02T03:04:05.500000+00:00"),
        ("1767323045", "2026-01-02T03:04:05+00:00"),
        (1767323045_000, "2026-01-02T03:04:05+00:00"),
        (1767323045_000_000, "2026-01-02T03:04:05+00:00"),
        (1767323045_000_000_000, "2026-01-02T03:04:05+00:00"),
    ],
)
def test_time_in_all_the_ways_people_log_it(jsonl, value, iso):
    assert only(jsonl(good(timestamp=value))).trace.timestamp.isoformat() == iso


@pytest.mark.parametrize(
    "value",
    ["yesterday", "2026-13-01", "2026-02-30T00:00:00", -1, 1e30, True, [1], "0001-01-01T00:00:00+23:00", 10**400],
)
def test_a_time_that_cannot_be(jsonl, value):
    (reason,) = reasons(jsonl(good(timestamp=value))).values()
    assert reason.startswith("timestamp: expected a time (ISO 8601")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"answer": None}, "answer: missing"),
        ({"answer": 3}, "answer: expected text, found the number 3"),
        ({"question": ["x"]}, "question: expected text or null, found a list"),
        ({"context": {}}, "context: expected text or null, found an object"),
        ({"trace_id": 1.5}, "trace_id: expected text, found the number 1.5"),
        ({"trace_id": True}, "trace_id: expected text, found true"),
        ({"trace_id": "x" * 501}, "trace_id: 501 characters, at most 500 are possible"),
        ({"model": {"name": "x"}}, "model: expected text, found an object"),
        ({"sources": "text"}, "sources: expected an object {number: text} or a list, found the text 'text'"),
        ({"sources": {"1": None}}, "sources[1]: expected text or an object with text, found null"),
        ({"sources": {"1": {"title": "x"}}}, "sources[1].text: expected text, found null"),
        ({"sources": {"1": {"text": "x", "title": 1}}}, "sources[1].title: expected text or null, found the number 1"),
        (
            {"sources": [{"text": "x", "retrieval_score": "1"}]},
            "sources[1].retrieval_score: expected a finite number, found the text '1'",
        ),
        ({"sources": [{"number": 2, "text": "x"}, "y"]}, "sources: two of them have the same number"),
        ({"tokens": "x"}, "tokens: expected a list, found the text 'x'"),
        ({"tokens": [{"token": "x"}]}, "tokens[0].logprob: expected a finite number, found null"),
        ({"tokens": [{"token": "x", "logprob": "NaN"}]}, "tokens[0].logprob: expected a finite number, found the text"),
        ({"tokens": [{"token": 1, "logprob": -1}]}, "tokens[0].token: expected text, found the number 1"),
        (
            {"tokens": [{"token": "x", "logprob": -1, "top_logprobs": {"a": True}}]},
            "tokens[0].top_logprobs: expected a finite number, found true",
        ),
        ({"samples": "x"}, "alternatives: expected a list of texts, found the text 'x'"),
        ({"alternatives": [1]}, "alternatives: expected a list of texts, found the number 1"),
        ({"schema": "{}"}, "schema: expected an object, true or false, found the text '{}'"),
        ({"label": "maybe"}, "label: expected one of clean, hallucinated, unsure, found the text 'maybe'"),
        ({"label": 1}, "label: expected one of clean, hallucinated, unsure, found the number 1"),
        ({"label": "clean", "spans": [{"start": 0, "end": 99}]}, "spans[0]: 0 to 99 is not a part of the answer of 12"),
        ({"label": "clean", "spans": [[0, 1]]}, "spans[0]: expected an object with whole numbers start and end"),
        ({"attributes": ["x"]}, "attributes: expected an object, found a list"),
        ({"extra": "x"}, "extra: expected an object, found the text 'x'"),
    ],
)
def test_a_wrong_type_says_the_field_what_was_found_and_what_was_expected(jsonl, fields, reason):
    path = jsonl(good("first"), good(**fields), good("last"))
    found = list(read(path))
    assert isinstance(found[1], Rejected)
    assert found[1].line == 2
    assert found[1].reason.startswith(reason)
    assert [found[0].trace.id, found[2].trace.id] == ["first", "last"]


def test_numbers_out_of_range_are_refused_wherever_they_hide(jsonl):
    lines = ['"tokens": [{"token": "x", "logprob": -1e999}]', '"schema": {"maximum": 1e999}', '"cost": 1e999']
    path = jsonl(*(f'{{"answer": "x", {line}}}' for line in lines))
    assert [reason.split(":")[0] for reason in reasons(path).values()] == ["tokens[0].logprob", "schema", "cost"]


def test_a_field_name_cannot_drive_the_terminal(jsonl):
    path = jsonl(good(sources={"\x1b[2J\nline 9": 1}), good("b", **{"\x1b]0;x": []}))
    assert reasons(path)[1].startswith("sources[⟦ESC⟧[2J line 9]: expected text")
    assert list(read(path))[1].left_out == ("⟦ESC⟧]0;x",)


def test_a_log_probability_above_zero_is_kept_for_the_detectors_to_judge(jsonl):
    assert only(jsonl(good(tokens=[{"token": "x", "logprob": 3.5}]))).trace.tokens == (Token("x", 3.5),)


def test_whole_numbers_beyond_64_bits_keep_their_digits(jsonl):
    trace = only(jsonl(good(id=None, trace_id=2**70, span=2**70))).trace
    assert (trace.id, trace.attributes) == (str(2**70), {"span": str(2**70)})


def test_a_record_without_an_id_gets_a_stable_one(jsonl):
    line = {"answer": "x", "label": "clean"}
    path = jsonl(line, line, {**line, "timestamp": 1767323045})
    first, second, third = read(path)
    assert first.trace.id == second.trace.id != third.trace.id
    assert first.trace.id.startswith("jsonl-")
    assert first.labels[0].trace_id == first.trace.id


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=12,
)
some_record = st.fixed_dictionaries(
    {"answer": st.text(max_size=20)}, optional=dict.fromkeys(sorted(RECORD_FIELDS - {"answer"}), any_json)
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=some_record | any_json.filter(lambda value: not isinstance(value, list)))
def test_any_json_is_taken_or_rejected_with_a_reason(tmp_path, value):
    path = tmp_path / "any.jsonl"
    path.write_text(json.dumps(value) + "\n")
    (found,) = read(path)
    if isinstance(found, Rejected):
        assert found.line == 1
        assert found.reason
    else:
        # Whatever came in can go into a database: it has UTF-8, and JSON without NaN.
        found.trace.content_hash().encode()
        json.dumps([found.trace.schema, dict(found.trace.attributes)], allow_nan=False).encode()
        (found.trace.answer + (found.trace.question or "") + found.trace.id).encode()


storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
finite = st.floats(allow_nan=False, allow_infinity=False)
proper_record = st.fixed_dictionaries(
    {"trace_id": storable.filter(bool), "answer": storable},
    optional={
        "question": storable,
        "context": storable,
        "model": storable.filter(bool),
        "sources": st.dictionaries(
            storable,
            st.fixed_dictionaries({"text": storable}, optional={"title": storable, "retrieval_score": finite}),
            max_size=3,
        ),
        "tokens": st.lists(
            st.fixed_dictionaries(
                {"token": storable, "logprob": finite},
                optional={"top_logprobs": st.lists(st.fixed_dictionaries({"token": storable, "logprob": finite}))},
            ),
            min_size=1,
            max_size=3,
        ),
        "alternatives": st.lists(storable, max_size=3),
        "schema": st.booleans() | st.dictionaries(storable, storable, max_size=3),
    },
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=proper_record, ascii_only=st.booleans())
def test_a_proper_record_comes_back_as_it_went_in(tmp_path, record, ascii_only):
    path = tmp_path / "proper.jsonl"
    path.write_text(json.dumps(record, ensure_ascii=ascii_only) + "\n", encoding="utf-8", newline="")
    (found,) = read(path)
    assert isinstance(found, Record)
    trace = found.trace
    assert found.repaired == 0
    assert (trace.id, trace.answer, trace.question) == (record["trace_id"], record["answer"], record.get("question"))
    assert (trace.context, trace.model, trace.schema) == (
        record.get("context"),
        record.get("model"),
        record.get("schema"),
    )
    assert list(trace.alternatives) == record.get("alternatives", [])
    assert {source.number: source.text for source in trace.sources} == {
        number: source["text"] for number, source in record.get("sources", {}).items()
    }
    assert [(token.text, token.logprob) for token in trace.tokens or ()] == [
        (token["token"], token["logprob"]) for token in record.get("tokens", [])
    ]
