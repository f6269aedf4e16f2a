"""What the program puts down is looked at later, in bulk: nothing is lost by it, held by it, or left lying."""

from __future__ import annotations

import contextvars
import gc
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan

from calibrate import registry
from calibrate.detectors.base import scored
from calibrate.detectors.word_overlap import WordOverlap
from calibrate.runtime.otel.intake import SIFT_AT, EndedSpan, Intake
from calibrate.types import Score, Trace
from tests.runtime.otel_making import FALSE, TRUE, Program, chat, file_of, scores

ANSWER, ROOT, OTHER = ReadableSpan("answer"), ReadableSpan("root"), ReadableSpan("other")


def look(span: ReadableSpan, picked: bool) -> EndedSpan | None:
    return None if span is OTHER else EndedSpan(span, span is ANSWER or picked)


def intake(most: int) -> Intake:
    return Intake(most, examine=look, start=lambda: None)


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
            for _ in range(2 * SIFT_AT):
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
    for _ in range(10 * SIFT_AT):
        one.offer(OTHER)
        assert len(one._arrived) < SIFT_AT
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


@pytest.fixture
def answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers without sources are scored."""
    monkeypatch.setattr(WordOverlap, "needs", frozenset({"answer"}))


def test_a_rule_is_asked_where_the_span_ends(answers_alone: None) -> None:
    """There it sees the program's own context, and what it waits for keeps nobody else waiting."""
    tenant, lock = contextvars.ContextVar("tenant", default="none"), threading.Lock()

    def rule(span: ReadableSpan) -> bool:
        with lock:
            return tenant.get() == "paying"

    program = Program(is_llm=rule)
    tenant.set("paying")
    with ThreadPoolExecutor(4) as pool:
        with lock:
            stuck = [pool.submit(program.span, **{"touchstone.answer": FALSE}) for _ in range(4)]
            assert program.processor.counts().offered == 0  # nobody else waits for the lock
            assert program.processor.force_flush(5_000)
        for one in stuck:
            one.result(20)
    for _ in range(3 * SIFT_AT):
        program.span(**{"touchstone.answer": FALSE})
    assert program.processor.force_flush(20_000)
    assert program.processor.counts().unscored == 3 * SIFT_AT  # the pool's threads have a context of their own


def test_a_rule_that_raises_keeps_sources_and_the_end_of_the_trace(caplog: pytest.LogCaptureFixture) -> None:
    program = Program(is_llm=lambda span: (span.attributes or {})["gen_ai.output.messages"] is not None)
    for _ in range(3):
        program.ask(FALSE)
    assert [list(scores(span)) for span in program.results()] == [["word_overlap"]] * 3  # it needs the sources
    assert len([one for one in caplog.messages if "is_llm" in one]) == 1


def test_a_rule_that_traces_what_it_does_goes_on_as_it_always_would(answers_alone: None) -> None:
    def rule(span: ReadableSpan) -> bool:
        if span.name == "one":
            program.tracer.start_span("look").end()
        return span.name == "one"

    program = Program(is_llm=rule)
    for _ in range(2 * SIFT_AT):
        program.span(**{"touchstone.answer": FALSE})
    assert program.processor.force_flush(20_000)
    assert program.processor.counts().unscored == 2 * SIFT_AT


class Collects(WordOverlap):
    """Frees what nobody refers to while it scores the true answer: whatever ends then ends in the scoring thread. Once,
    as it takes seconds where many tests have run before."""

    name: ClassVar[str] = "collects"
    needs: ClassVar[frozenset[str]] = frozenset({"answer"})

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        if any(trace.answer == TRUE for trace in traces):
            gc.collect()
        return iter([scored(trace, 0.1) for trace in traces])


def test_an_answer_that_ends_with_its_last_reference_in_our_thread_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._load_classes(), "collects", Collects)
    program = Program(file_of(collects=(0.5, "below", "signal")), deadline=None)

    def stream() -> Iterator[int]:
        span = program.tracer.start_span("chat", attributes=chat(FALSE))
        try:
            yield from range(100)
        finally:
            span.end()

    gc.disable()
    try:
        for _ in range(20):
            half: list[Any] = [stream()]
            half.append(half)  # a cycle: it goes when the collector comes by
            next(half[0])
        del half
        program.span(**chat(TRUE))
        assert program.processor.force_flush(20_000)
    finally:
        gc.enable()
    assert program.processor.force_flush(20_000)
    assert program.processor.counts().scored == program.processor.counts().offered == 21
    assert not program.processor._ours


def test_a_flush_that_a_shutdown_overtakes_says_so_at_once() -> None:
    one, said = intake(10), []
    one.offer(ANSWER)
    flush = threading.Thread(target=lambda: said.append(one.flush(60)), daemon=True)
    flush.start()
    while not one._flushes_requested:
        time.sleep(0.001)
    one.abandon()
    one.finish_flush(1)  # by a worker that had seen it before
    flush.join(20)
    assert said == [False]


def test_who_shuts_down_in_the_middle_of_anything_lets_the_worker_end(answers_alone: None) -> None:
    """A signal handler runs in the thread that it interrupts, which may hold the lock."""
    program = Program(shutdown_seconds=60)
    program.span(**chat(FALSE))
    began = time.monotonic()
    with program.processor._worker.intake._lock:
        program.processor.shutdown()
    assert time.monotonic() - began < 30
    assert program.processor.counts().unscored == 1
    assert program.processor._worker.intake._ended
