"""How much of a core the worker takes, and what becomes of answers whose trace never completes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import set_span_in_context

from calibrate.ingest.spans.answers import Answer
from calibrate.ingest.spans.reader import Reader
from calibrate.runtime.otel.emit import emit
from calibrate.runtime.otel.worker import Worker
from calibrate.runtime.scoring import Scored, Scorer
from calibrate.types import Score, Source, Trace
from tests.runtime.otel_making import FILE, PASSAGE, RESULT, TRUE, Program, chat

SOON = 20.0


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_worker_rests_for_its_share_of_a_core() -> None:
    """With a share of s, computing for c seconds is followed by a rest of c (1/s - 1)."""
    began, ended, computed = [], [], []

    def judge(answers: Sequence[Answer]) -> int:
        began.append(time.monotonic())
        start = time.thread_time()
        while time.thread_time() - start < 0.01:
            pass
        computed.append(time.thread_time() - start)
        ended.append(time.monotonic())
        return 0

    worker = Worker(Reader(), judge, gather_seconds=60, most=100, cpu_share=0.1)
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("program")
    for _ in range(6):
        span = tracer.start_span("chat", attributes=chat())
        span.end()
        worker.intake.offer(span)  # type: ignore[arg-type]
    wait_until(lambda: len(ended) == 6)
    rests = [later - earlier for earlier, later in zip(ended, began[1:], strict=False)]
    assert all(rest >= 0.9 * 9 * seconds for rest, seconds in zip(rests, computed, strict=False))
    worker.stop(SOON)


def test_what_other_threads_compute_counts_into_the_share() -> None:
    beside, began, ended = [0.0], [], []

    def judge(answers: Sequence[Answer]) -> int:
        began.append(time.monotonic())
        beside[0] += 0.01
        ended.append(time.monotonic())
        return 0

    worker = Worker(Reader(), judge, gather_seconds=60, most=100, cpu_share=0.1, seconds_beside=lambda: beside[0])
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("program")
    for _ in range(4):
        span = tracer.start_span("chat", attributes=chat())
        span.end()
        worker.intake.offer(span)  # type: ignore[arg-type]
    wait_until(lambda: len(ended) == 4)
    assert all(later - earlier >= 0.9 * 9 * 0.01 for earlier, later in zip(ended, began[1:], strict=False))
    worker.stop(SOON)


def test_a_scorer_counts_what_it_computes_beside_its_caller() -> None:
    scorer = Scorer(FILE)
    trace = Trace("t", TRUE * 500, sources=(Source("1", PASSAGE),))
    scorer.score([trace])
    assert scorer.seconds_beside == 0
    scorer.score([trace], deadline=SOON)
    assert scorer.seconds_beside > 0


def open_answer(program: Program) -> None:
    """An answer below a root span that never ends."""
    root = program.tracer.start_span("answer")
    program.tracer.start_span("chat", context=set_span_in_context(root), attributes=chat(TRUE)).end()


def results(program: Program) -> int:
    return sum(span.name == RESULT for span in program.exporter.get_finished_spans())


def test_an_answer_whose_root_never_ends_is_scored_once_its_trace_is_silent() -> None:
    program = Program(gather_seconds=0.05)
    open_answer(program)
    wait_until(lambda: results(program) == 1)
    assert program.processor.counts().unscored == 1


def test_a_flush_scores_answers_whose_root_has_not_ended() -> None:
    program = Program(gather_seconds=600)
    open_answer(program)
    assert program.processor.force_flush(int(SOON * 1000))
    assert results(program) == 1
    assert program.processor.counts().waiting == 0


def test_the_span_lasts_as_long_as_the_detectors_took() -> None:
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("program")
    answered = tracer.start_span("chat")
    trace = Trace("t", TRUE)
    result = Scored(trace, FILE, {"word_overlap": Score("t", 0.9)}, {"word_overlap": 0.25, "other": 0.5})
    context = answered.get_span_context()
    ids = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    emit(tracer, Answer(trace, *ids, origin=context), result, result.decision)
    (span,) = exporter.get_finished_spans()
    assert span.end_time is not None
    assert span.start_time is not None
    assert span.end_time - span.start_time == 750_000_000
