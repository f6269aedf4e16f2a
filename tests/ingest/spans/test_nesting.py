"""Which spans of one trace are one call of a model: by descent and ids before time."""

from __future__ import annotations

from itertools import permutations

import pytest

from calibrate.ingest.spans.answers import Answer, answers_of
from calibrate.ingest.spans.record import SpanRecord
from tests.ingest.spans.making import BEGINNING, chat, span

SECOND = 1_000_000_000


def call(
    scope: str, began: float, ended: float, question: str, *, within: str | None = None, **more: str
) -> SpanRecord:
    times = {"started": BEGINNING + int(began * SECOND), "ended": BEGINNING + int(ended * SECOND)}
    return span(chat("Yes.", question, **more), parent=within or "f" * 16, scope=scope, **times)


def read(*spans: SpanRecord) -> list[tuple[str | None, int]]:
    answers: list[Answer] = list(answers_of(spans))
    return [(answer.trace.question, answer.nested) for answer in answers]


def test_a_child_joins_its_parent_and_no_other_call_of_the_same_time() -> None:
    outer = [call("genai", 1.0, 4.0, "one"), call("genai", 1.1, 3.1, "two")]
    inner = [
        call("oi", 1.2, 2.7, "one", within=outer[0].span_id),
        call("oi", 1.3, 2.7, "two", within=outer[1].span_id),
    ]
    for spans in permutations([*outer, *inner]):
        assert read(*spans) == [("one", 1), ("two", 1)]


def test_calls_at_once_of_instrumentors_that_do_not_know_of_each_other_are_paired_one_by_one() -> None:
    outer = [call("genai", 1.0, 4.0, "one"), call("genai", 1.1, 3.9, "two")]
    inner = [call("oi", 1.2, 2.7, "two"), call("oi", 1.3, 2.7, "one")]
    assert sorted(read(*outer, *inner)) == [("one", 1), ("two", 1)]


@pytest.mark.parametrize("by_descent", [True, False])
def test_two_calls_with_ids_of_their_own_are_never_joined_by_way_of_a_third_span(by_descent: bool) -> None:
    outer = call("agent", 1.0, 5.0, "all")
    within = outer.span_id if by_descent else None
    ids = [{"gen_ai.response.id": "r-1"}, {"gen_ai.response.id": "r-2"}]
    inner = [
        call("genai", 1.5, 2.5, "one", within=within, **ids[0]),
        call("other", 3.0, 4.0, "two", within=within, **ids[1]),
    ]
    assert read(outer, *inner) == [("one", 1), ("two", 0)]


def test_the_same_id_is_one_call_whoever_made_the_spans() -> None:
    same = {"gen_ai.response.id": "r-1"}
    assert read(call("genai", 1.0, 2.0, "one", **same), call("oi", 1.5, 3.0, "two", **same)) == [("two", 1)]
