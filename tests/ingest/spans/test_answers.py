"""Answers of whole traces, and the records that they become."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from calibrate.ingest.record import build
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.types import Record, Source
from tests.ingest.spans.making import chat, message, retrieval, span


def test_spans_of_several_traces_in_any_order_give_each_its_answers() -> None:
    first = [span(retrieval("one"), trace_id="a" * 32), span(chat("1"), trace_id="a" * 32)]
    second = [span(chat("2"), trace_id="b" * 32, parent=None), span(chat("3"), trace_id="b" * 32)]
    answers = list(answers_of([second[1], *reversed(first), second[0]]))
    assert [answer.trace.answer for answer in answers] == ["2", "3", "1"]
    assert [(answer.trace_id, answer.span_id) for answer in answers] == [
        ("b" * 32, second[0].span_id),
        ("b" * 32, second[1].span_id),
        ("a" * 32, first[1].span_id),
    ]
    assert [len(answer.trace.sources) for answer in answers] == [0, 0, 1]


def test_a_span_of_a_model_that_wrote_no_text_is_no_answer() -> None:
    silent = span({"gen_ai.operation.name": "chat", "gen_ai.input.messages": message("user", "Who?")})
    (answer,) = answers_of([silent, span(chat(**{"gen_ai.input.messages": None}))])
    assert answer.trace.question == "Who?"


def test_the_record_of_an_answer_has_what_the_answer_has() -> None:
    tokens = '[{"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "No", "logprob": -2.5}]}]'
    llm = span(
        chat("Yes", **{"touchstone.tokens": tokens, "touchstone.schema": '{"type": "string"}', "tenant": "a"}),
        started=1_769_000_000_123_456_789,
    )
    (answer,) = answers_of([span(retrieval("one", "two"), started=1_769_000_000_000_000_000), llm])
    record = build(row_of(answer, 7), format_name="otlp")
    assert isinstance(record, Record)
    assert record.line == 7
    assert record.trace == answer.trace
    assert record.trace.timestamp == datetime(2026, 1, 21, 12, 53, 20, 123456, tzinfo=UTC)
    assert record.trace.sources[0] == Source("1", "one", "d0", 0.9)


def test_what_no_database_can_store_is_replaced() -> None:
    (answer,) = answers_of([span(chat("Yes\x00"))])
    record = build(row_of(answer, 1), format_name="otlp")
    assert isinstance(record, Record)
    assert (record.trace.answer, record.repaired) == ("Yes\ufffd", 1)


def test_the_first_of_two_scores_counts_and_what_is_left_out_is_said() -> None:
    def event(name: str, **score: Any) -> tuple[str, dict[str, Any]]:
        values = {f"gen_ai.evaluation.score.{key}": value for key, value in score.items()}
        return "gen_ai.evaluation.result", {"gen_ai.evaluation.name": name} | values

    events = [
        event("judge", value=0.2), event("judge", value=0.9), event("judge", value=0.2),
        event("same", value=1.0), event("same", value=1.0, label="good"), event("tone", label="rude"),
    ]  # fmt: skip
    [answer] = answers_of([span(chat("1"), events)])
    record = build(row_of(answer, 1), format_name="otlp")
    assert isinstance(record, Record)
    assert [(name, score.value) for name, score in record.scores] == [("judge", 0.2), ("same", 1.0)]
    assert record.left_out == ("scores.judge (a second value)", "scores.tone (text, no number)")
