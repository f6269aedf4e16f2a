"""What the program puts down is looked at later, in bulk: nothing is lost by it, held by it, or left lying."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan

from calibrate.detectors.word_overlap import WordOverlap
from calibrate.runtime.otel.gather import Ended
from calibrate.runtime.otel.intake import TOGETHER, Intake
from tests.runtime.otel_making import FALSE, Program

ANSWER, ROOT, OTHER = ReadableSpan("answer"), ReadableSpan("root"), ReadableSpan("other")


def look(span: ReadableSpan) -> Ended | None:
    return None if span is OTHER else Ended(span, span is ANSWER, True)


def intake(most: int) -> Intake:
    return Intake(most, look=look, start=lambda: None)


@given(
    st.integers(1, 5),
    st.lists(st.sampled_from(["answer", "root", "other", "many others", "take", "scored", "close", "counts"])),
)
def test_every_answer_is_counted_once_and_no_more_wait_than_there_is_room(most: int, does: list[str]) -> None:
    one, offered, held = intake(most), 0, 0
    for what in does:
        if what == "take":
            held += sum(ended.answer for ended in one.take()[0])
        elif what == "scored":
            one.settle("scored", held)
            held = 0
        elif what == "close":
            one.close()
        elif what == "many others":
            for _ in range(2 * TOGETHER):
                one.offer(OTHER)
        elif what == "counts":
            assert one.depth <= most
        else:
            one.offer({"answer": ANSWER, "root": ROOT, "other": OTHER}[what])
            offered += what == "answer"
    counts = one.counts()
    assert counts.offered == offered == counts.scored + counts.dropped + counts.waiting
    assert held <= counts.waiting <= held + most


def test_spans_of_no_interest_take_no_room() -> None:
    one = intake(2)
    for _ in range(10 * TOGETHER):
        one.offer(OTHER)
        assert len(one._arrived) < TOGETHER
    one.offer(ANSWER)
    assert (one.counts().waiting, one.counts().dropped) == (1, 0)


def test_nobody_waits_for_a_span_that_is_there() -> None:
    """Handed over one by one, each after the last was taken: a wake-up that is lost leaves both sides waiting."""
    one, taken = intake(10), threading.Semaphore(0)

    def take() -> None:
        while not one.abandoned:
            one.wait(None)
            for _ in one.take()[0]:
                taken.release()

    worker = threading.Thread(target=take, daemon=True)
    worker.start()
    for number in range(3000):
        one.offer(OTHER) if number % 3 == 0 else None
        one.offer(ANSWER)
        assert taken.acquire(timeout=20)
    one.abandon()
    worker.join(20)
    assert not worker.is_alive()


def test_a_rule_that_traces_what_it_does_looks_at_no_span_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WordOverlap, "needs", frozenset({"answer"}))
    made: list[Any] = []

    def rule(span: ReadableSpan) -> bool:
        made.append(span)
        if len(made) < 10_000:
            program.tracer.start_span("look").end()
        return span.name == "one"

    program = Program(is_llm=rule, max_queue=20_000)
    for _ in range(3 * TOGETHER):
        program.span(**{"touchstone.answer": FALSE})
    assert program.processor.force_flush(20_000)
    assert program.processor.counts().scored == 3 * TOGETHER
    assert len(made) < 10_000
