"""Received spans become traces, on both databases: joined across requests, once, updated by what comes late."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from calibrate.errors import StoreError
from calibrate.receiving.open_traces import OpenTraces
from calibrate.redaction import redactor_of
from calibrate.types import Arrival, Label, Source
from calibrate.workflow.detection.external import undefined_of
from calibrate.workflow.traces.joining import Joiner
from db import Store
from tests.receiving.making import chat, request, retriever, root, span, stored, trace_id

pytestmark = pytest.mark.both_databases
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ONE, TWO = trace_id(1), trace_id(2)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def joiner(store: Store, clock: Clock, **options: Any) -> Joiner:
    return Joiner(store, partial(OpenTraces, wait=5, silence=30), clock=clock, **options)


def receive(store: Store, clock: Clock, *spans: Any, packed: bool = False) -> None:
    body = request(*spans)
    kind = "json+gzip" if packed else "json"
    sent = gzip.compress(body) if packed else body
    store.received.append([Arrival(kind, sent, len(spans), len(body), clock.now)])


def pass_time(joining: Joiner, clock: Clock, seconds: float = 6) -> None:
    joining.step()
    clock.now += timedelta(seconds=seconds)
    while joining.step():
        pass


def test_spans_of_one_trace_meet_across_requests(store: Store, clock: Clock) -> None:
    joining = joiner(store, clock)
    receive(store, clock, retriever(ONE), chat(TWO, "Elsewhere."))
    receive(store, clock, root(ONE), packed=True)
    joining.step()
    assert stored(store) == []
    clock.now += timedelta(seconds=4)
    receive(store, clock, chat(ONE))
    pass_time(joining, clock)
    [trace] = stored(store)
    assert (trace.question, trace.answer, trace.model) == ("Where is Paris?", "In France.", "m")
    assert trace.sources == (Source("1", "Paris is in France.", "a", 0.5),)
    assert trace.id == f"{ONE}-{chat(ONE)['spanId']}"
    assert trace.attributes["session.id"] == "s1"
    assert store.received.backlog(clock.now).requests == 3  # the first request has a trace without a root
    pass_time(joining, clock, 31)
    assert sorted(trace.answer for trace in stored(store)) == ["Elsewhere.", "In France."]
    assert store.received.backlog(clock.now).requests == 0
    clock.now += timedelta(minutes=11)
    joining.step()
    assert store.received.after(0, most_bytes=10**9) == []
    assert (joining.joined.imported, joining.joined.spans) == (2, 4)


def test_a_late_source_updates_a_trace_until_somebody_uses_it(store: Store, clock: Clock) -> None:
    joining = joiner(store, clock)
    receive(store, clock, root(ONE), chat(ONE), root(TWO), chat(TWO))
    pass_time(joining, clock)
    ids = {trace.id.partition("-")[0]: trace for trace in stored(store)}
    store.labels.add_many([Label(ids[TWO].id, "ann", "clean")], now=NOW)
    receive(store, clock, retriever(ONE), retriever(TWO))
    pass_time(joining, clock)
    assert (joining.joined.updated, joining.joined.too_late) == (1, 1)
    now = {trace.id.partition("-")[0]: trace for trace in stored(store)}
    assert now[TWO] == ids[TWO]
    assert [source.text for source in now[ONE].sources] == ["Paris is in France."]
    assert replace(now[ONE], sources=(), attributes={}) == replace(ids[ONE], attributes={})
    receive(store, clock, retriever(ONE), chat(ONE))  # sent again
    pass_time(joining, clock)
    assert (joining.joined.updated, joining.joined.too_late, joining.joined.duplicates) == (1, 1, 1)


def test_a_late_answer_finds_the_sources_that_came_before(store: Store, clock: Clock) -> None:
    joining = joiner(store, clock)
    receive(store, clock, root(ONE), retriever(ONE))
    pass_time(joining, clock)
    assert (stored(store), joining.joined.unanswered) == ([], 1)
    joining.leave()
    again = joiner(store, clock)  # another process remembers as much
    receive(store, clock, chat(ONE))
    pass_time(again, clock)
    [trace] = stored(store)
    assert [source.text for source in trace.sources] == ["Paris is in France."]


def test_what_comes_much_later_takes_nothing_away(store: Store, clock: Clock) -> None:
    joining = joiner(store, clock)
    receive(store, clock, root(ONE), retriever(ONE), chat(ONE))
    pass_time(joining, clock)
    before = stored(store)
    clock.now += timedelta(minutes=11)
    joining.step()
    again = joiner(store, clock)
    joining.leave()
    receive(store, clock, chat(ONE))  # its retriever's span is forgotten
    pass_time(again, clock, 31)
    assert stored(store) == before
    assert again.joined.too_late == 1


def test_a_joiner_that_died_loses_nothing_and_imports_nothing_twice(store: Store, clock: Clock) -> None:
    dead = joiner(store, clock)
    receive(store, clock, root(ONE), retriever(ONE), chat(ONE))
    receive(store, clock, retriever(TWO), chat(TWO))
    pass_time(dead, clock)
    assert len(stored(store)) == 1
    other = joiner(store, clock)
    receive(store, clock, root(TWO))
    other.step()
    assert other.joined.spans == 0  # its lease lasts
    clock.now += timedelta(seconds=31)
    pass_time(other, clock)
    assert sorted(len(trace.sources) for trace in stored(store)) == [1, 1]
    assert other.joined.imported == 1
    dead.step()  # it was only slow, and finds that it is the joiner no longer
    receive(store, clock, root(trace_id(3)), chat(trace_id(3)))
    pass_time(other, clock)
    assert not dead.step()
    assert len(stored(store)) == 3
    assert store.received.backlog(clock.now).requests == 0


def test_a_store_that_fails_is_tried_again(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    joining = joiner(store, clock)
    receive(store, clock, root(ONE), chat(ONE))
    joining.step()
    clock.now += timedelta(seconds=6)
    add = store.traces.add
    problems = [StoreError("full"), StoreError("full")]

    def failing(records: Sequence[Any], **options: Any) -> Any:
        if problems:
            raise problems.pop()
        return add(records, **options)

    monkeypatch.setattr(store.traces, "add", failing)
    for _ in range(2):
        with pytest.raises(StoreError):
            joining.step()
    pass_time(joining, clock)
    assert len(stored(store)) == 1
    assert store.received.backlog(clock.now).requests == 0


def test_texts_are_redacted_before_they_become_a_trace(store: Store, clock: Clock) -> None:
    joining = joiner(store, clock, redactor=redactor_of("email"))
    receive(store, clock, root(ONE), chat(ONE, "Write to ann@example.com."))
    pass_time(joining, clock)
    assert "ann@example.com" not in stored(store)[0].answer


def test_calls_without_content_are_counted_and_the_log_says_so_once_a_minute(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    joining = joiner(store, clock)
    silent = [span(ONE, name, "app", gen_ai__operation__name="chat") for name in ("aaa", "bbb")]
    calls_a_tool = span(TWO, "ask", "app", gen_ai__operation__name="chat")
    receive(store, clock, *silent, root(ONE), calls_a_tool, chat(TWO), root(TWO))
    pass_time(joining, clock)
    pass_time(joining, clock, 61)
    assert (joining.joined.silent, joining.joined.imported) == (2, 1)
    assert "2 calls of a model came without the text of an answer" in caplog.text
    assert "CAPTURE_MESSAGE_CONTENT" in caplog.text
    caplog.clear()
    pass_time(joining, clock, 61)
    assert caplog.text == ""


def test_bad_answers_do_not_stop_good_ones(store: Store, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    joining = joiner(store, clock)
    long = retriever(ONE)
    documents = json.dumps([{"content": "x", "id": str(number)} for number in range(6000)])
    long["attributes"][1]["value"]["stringValue"] = documents
    store.received.append([Arrival("json", b"no JSON", 1, 7, clock.now)])
    receive(store, clock, root(ONE), long, chat(ONE), root(TWO), chat(TWO, "a\x00b\ud800"))
    pass_time(joining, clock)
    assert [trace.answer for trace in stored(store)] == ["a\ufffdb\ufffd"]
    assert joining.joined.rejected == 1
    joining.leave()  # at once, not after a minute
    assert f"answers rejected: 1 (like {ONE}:" in caplog.text
    assert "sources: 6,000 of them" in caplog.text
    assert "passed over" in caplog.text


def evaluated(span: dict[str, Any], name: str, value: float | None, **more: Any) -> dict[str, Any]:
    """The span with an evaluator's event on it."""
    given = {"gen_ai.evaluation.name": {"stringValue": name}, **more}
    if value is not None:
        given["gen_ai.evaluation.score.value"] = {"doubleValue": value}
    event = {
        "name": "gen_ai.evaluation.result",
        "attributes": [{"key": key, "value": value} for key, value in given.items()],
    }
    return {**span, "events": [*span.get("events", ()), event]}


def test_what_evaluators_say_becomes_scores_that_wait_for_their_direction(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    joining = joiner(store, clock)
    why = {"gen_ai.evaluation.explanation": {"stringValue": "1 of 4 claims"}}
    said = evaluated(chat(ONE), "faithfulness", 0.25, **why)
    said = evaluated(evaluated(said, "Correctness [GEval]", 1), "tone", None)
    said = evaluated(evaluated(said, "touchstone.rouge_l", 0.5), "rouge_l", 0.5)
    said = evaluated(said, "ours", 0.5, **{"touchstone.thresholds.version": {"intValue": "3"}})
    receive(store, clock, root(ONE), said, root(TWO), chat(TWO, "Elsewhere."))
    pass_time(joining, clock)
    receive(store, clock, said)  # sent again
    pass_time(joining, clock)
    judged = evaluated(span(TWO, "sez", "say"), "faithfulness", 0.75)  # by a span of its own, later
    receive(store, clock, judged)
    pass_time(joining, clock)
    contents = {trace.id.partition("-")[0]: trace.content_hash() for trace in stored(store)}
    assert {each.name: each.flag_when for each in store.external.all()} == {
        "faithfulness": None,
        "Correctness_GEval_": None,
    }
    waiting = {each.detector.name: (each.scored, each.low, each.high) for each in undefined_of(store)}
    assert waiting == {"faithfulness": (2, 0.25, 0.75), "Correctness_GEval_": (1, 1.0, 1.0)}
    assert store.external.values("faithfulness", "1", list(contents.values())) == {
        contents[ONE]: 0.25,
        contents[TWO]: 0.75,
    }
    assert (joining.joined.scores, joining.joined.scores_left_out) == (3, 2)  # rouge_l is not theirs, twice
    clock.now += timedelta(minutes=2)
    joining.step()
    assert "rouge_l is a detector of Touchstone" in caplog.text
    receive(store, clock, evaluated(chat(ONE), "faithfulness", 0.9))
    receive(store, clock, retriever(TWO))  # the trace's content changes, and the score goes along
    pass_time(joining, clock)
    contents = {trace.id.partition("-")[0]: trace.content_hash() for trace in stored(store)}
    assert joining.joined.updated == 1
    assert store.external.values("faithfulness", "1", list(contents.values())) == {
        contents[ONE]: 0.25,
        contents[TWO]: 0.75,
    }
    assert store.external.revisions("faithfulness") == ["1"]
