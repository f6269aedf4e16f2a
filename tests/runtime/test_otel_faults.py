"""Whatever goes wrong, the program is not slowed, stopped or crashed, and the counters tell."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from calibrate import registry
from calibrate.detectors.base import scored
from calibrate.detectors.word_overlap import WordOverlap
from calibrate.errors import BadInput
from calibrate.runtime import Guard
from calibrate.runtime.alerts import Alerts
from calibrate.runtime.otel import Answer, Counts, TouchstoneSpanProcessor
from calibrate.thresholds import write
from calibrate.types import Score, Source, Trace
from tests.runtime.otel_making import FALSE, FILE, RESULT, TRUE, Program, chat, events, file_of, scores

ROOT = Path(__file__).parents[2]
SOON = 5.0  # seconds; a generous "at once" on a busy machine


class Raises(WordOverlap):
    name: ClassVar[str] = "raises"

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        raise RuntimeError("out of cheese")


class Quits(WordOverlap):
    name: ClassVar[str] = "quits"

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        sys.exit(3)


class Picky(WordOverlap):
    """Ends the program at one answer of several."""

    name: ClassVar[str] = "picky"

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        if any("quit" in trace.answer for trace in traces):
            sys.exit(3)
        return super().score(traces)


class Missing(WordOverlap):
    name: ClassVar[str] = "missing"

    def unavailable(self) -> str | None:
        return "the model is not here: pip install it"

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        raise OSError("no such file: model.onnx")


class Gated(WordOverlap):
    """Scores nothing until its gate is open."""

    name: ClassVar[str] = "gated"
    needs: ClassVar[frozenset[str]] = frozenset({"answer"})
    gate: ClassVar[threading.Event]
    reached: ClassVar[threading.Event]

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        self.reached.set()
        self.gate.wait(60)
        return iter([scored(trace, 0.1) for trace in traces])


@pytest.fixture(autouse=True)
def detectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for one in (Raises, Quits, Picky, Missing, Gated):
        monkeypatch.setitem(registry._load_classes(), one.name, one)
    Gated.gate, Gated.reached = threading.Event(), threading.Event()
    yield
    Gated.gate.set()


def both(name: str) -> Any:
    return file_of(**{name: (0.5, "below", "signal"), "word_overlap": (0.5, "below", "page")})


@pytest.mark.parametrize(
    ("name", "label", "why"),
    [
        ("raises", "failed", "RuntimeError: out of cheese"),
        ("missing", "abstained", "the model is not here: pip install it"),
    ],
)
def test_a_detector_that_cannot_score_costs_its_own_score_only(name: str, label: str, why: str) -> None:
    program = Program(both(name))
    program.ask(FALSE)
    span = program.result()
    assert list(scores(span)) == ["word_overlap"]
    assert (span.attributes or {})["touchstone.flags"] == ("word_overlap",)
    assert (span.attributes or {})["touchstone.missing"] == (name,)
    (said,) = [one for one in events(span) if one["gen_ai.evaluation.name"] == name]
    assert (said["gen_ai.evaluation.score.label"], said["gen_ai.evaluation.explanation"]) == (label, why)
    assert said.get("error.type") == ("RuntimeError" if name == "raises" else None)
    assert program.processor.counts().scored == 1


def test_a_detector_that_is_not_installed_costs_its_own_score_only() -> None:
    program = Program(both("never_heard_of"))
    program.ask(FALSE)
    assert list(scores(program.result())) == ["word_overlap"]


def test_a_detector_that_ends_the_thread_does_not(caplog: pytest.LogCaptureFixture) -> None:
    program = Program(both("quits"))
    with caplog.at_level(logging.WARNING, "touchstone"):
        for _ in range(3):
            program.ask(FALSE)
            program.results()
    counts = program.processor.counts()
    assert counts.scored + counts.failed == counts.offered == 3
    assert len([one for one in caplog.messages if "SystemExit" in one]) <= 1
    program.ask(TRUE)  # still alive
    assert program.processor.force_flush()


@pytest.fixture
def batched() -> Program:
    """A program whose next answers are judged together: the worker is held up by the one before them."""
    program = Program(file_of(gated=(0.5, "below", "signal"), picky=(0.5, "below", "page")), deadline=60.0)
    program.ask(TRUE)
    assert not program.processor.force_flush(1)
    assert Gated.reached.wait(SOON)
    program.processor._worker._batch = 16
    return program


def test_a_detector_that_ends_the_thread_costs_only_its_own_score(
    batched: Program, caplog: pytest.LogCaptureFixture
) -> None:
    for answer in (FALSE, "quit now", FALSE, FALSE):
        batched.ask(answer)
    Gated.gate.set()
    assert sorted(len(scores(result)) for result in batched.results()) == [1, 2, 2, 2, 2]
    counts = batched.processor.counts()
    assert (counts.scored, counts.failed, counts.waiting) == (5, 0, 0)
    assert len([one for one in caplog.messages if "SystemExit" in one]) == 1


def test_a_detector_that_never_ends_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    program = Program(both("gated"), deadline=0.2)
    began = time.monotonic()
    for _ in range(3):
        program.ask(FALSE)
        (result,) = program.results()[-1:]
        assert list(scores(result)) == ["word_overlap"]
        assert (result.attributes or {})["touchstone.missing"] == ("gated",)
    assert time.monotonic() - began < 3 * SOON
    (told,) = [one for one in events(result) if one["gen_ai.evaluation.name"] == "gated"]
    assert told["gen_ai.evaluation.explanation"] == "not scored within the deadline of 0.2 s"
    assert program.processor.counts().scored == 3


def test_the_deadline_is_that_of_a_guard_unless_it_is_given() -> None:
    defaults = {kind: signature(kind).parameters["deadline"].default for kind in (Guard, TouchstoneSpanProcessor)}
    assert set(defaults.values()) == {2.0}


def test_an_answer_of_wrong_types_costs_no_other() -> None:
    """No convention gives one; a program's own reader of spans might."""
    program = Program()
    worker = program.processor._worker
    ids = "0" * 32, "0" * 16
    good = Answer(Trace("g", FALSE, sources=(Source("1", "Oxygen."),)), *ids)
    worker._judge_safely([good, Answer(Trace("b", None), *ids), good])  # type: ignore[arg-type]
    reasons = [(span.attributes or {})["touchstone.reasons"] for span in program.results()]
    assert [len(one) for one in reasons] == [1, 1, 1]
    assert "word_overlap" in reasons[0][0]
    assert reasons[1] == ("nothing was scored: answer is None; give a text",)
    assert reasons[0] == reasons[2]


def test_a_span_of_a_time_that_no_calendar_has_is_scored_and_costs_no_other() -> None:
    program = Program()
    for _ in range(2):
        program.span(**chat(FALSE))
    for when in (10**23, -(10**23)):
        program.tracer.start_span("chat", attributes=chat(FALSE), start_time=when).end()
    assert len(program.results()) == 4
    assert program.processor.counts().waiting == 0


def test_what_cannot_score_here_is_said_when_the_processor_is_made(caplog: pytest.LogCaptureFixture) -> None:
    Program(both("missing"))
    assert caplog.messages == ["missing gives no score: the model is not here: pip install it"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"cpu_share": "x"}, "cpu_share cannot be 'x'; it is a number above 0 and up to 1"),
        ({"cpu_share": 1.5}, "cpu_share cannot be 1.5"),
        ({"deadline": 0}, "deadline cannot be 0"),
        ({"max_queue": 2.5}, "max_queue cannot be 2.5; it is a whole number, 1 or more"),
        ({"gather_seconds": -1}, "gather_seconds cannot be -1; it is a number of seconds, 0 or more"),
        ({"gather_seconds": float("inf")}, "gather_seconds cannot be inf"),
        ({"shutdown_seconds": None}, "shutdown_seconds cannot be None"),
        ({"attributes": 5}, "attributes: it cannot be 5"),
        ({"attributes": {"answer": 5}}, "attributes: it cannot be"),
        ({"is_llm": "chat"}, "is_llm is a text; give a function"),
        ({"alerts": "https://host/secret"}, "alerts is a text; give Alerts"),
        ({"detectors": 5}, "detectors cannot be 5"),
    ],
)
def test_a_setting_that_cannot_be_is_named_alone(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        TouchstoneSpanProcessor(FILE, **setting)
    assert str(caught.value).startswith(said)
    others = {"cpu_share", "max_queue", "gather_seconds", "shutdown_seconds"} - setting.keys()
    assert not any(name in str(caught.value) for name in others)


@pytest.mark.parametrize("thresholds", [None, 5, ""])
def test_a_place_that_cannot_be_is_bad_input(thresholds: Any) -> None:
    with pytest.raises(BadInput, match="give its path or its URL"):
        TouchstoneSpanProcessor(thresholds)


def test_garbage_in_place_of_the_file_leaves_the_last_good_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "thresholds.json"
    write(FILE, path)
    program = Program(path, reload_every=3600)
    program.ask(FALSE)
    path.write_text('{"touchstone_thresholds": 1, "version": 99')
    with caplog.at_level(logging.WARNING, "touchstone"):
        for _ in range(2):
            program.processor._thresholds.refresh()
            program.ask(FALSE)
    said = [dict(span.attributes or {}) for span in program.results()]
    assert {one["touchstone.thresholds.version"] for one in said} == {FILE.version}
    assert [one["touchstone.verdict"] for one in said] == ["REVIEW"] * 3
    assert len([one for one in caplog.messages if "stays in use" in one]) == 1


def test_a_webhook_that_hangs_holds_up_nobody() -> None:
    with socket.socket() as server:  # takes connections and never answers
        server.bind(("127.0.0.1", 0))
        server.listen()
        alerts = Alerts(f"http://127.0.0.1:{server.getsockname()[1]}/hook", timeout=30, group_seconds=0.01)
        program = Program(alerts=alerts)
        for _ in range(20):
            program.ask(FALSE)
        began = time.monotonic()
        assert len(program.results()) == 20
        program.processor.shutdown()
        assert time.monotonic() - began < SOON
        assert program.processor.counts().scored == 20


def test_a_full_queue_drops_and_counts_and_says_so_and_the_program_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    program = Program(file_of(gated=(0.5, "below", "page")), max_queue=50, deadline=60.0)
    program.span(**chat())
    assert not program.processor.force_flush(1)  # the first is being scored
    assert Gated.reached.wait(SOON)
    began = time.monotonic()
    for _ in range(2000):
        program.span(**chat())
    assert time.monotonic() - began < SOON
    counts = program.processor.counts()
    assert counts == Counts(offered=2001, scored=0, dropped=1950, failed=0, empty=0, waiting=51)
    assert [point.value for _, point in program.metrics()["touchstone.queue.depth"]] == [50]
    Gated.gate.set()
    assert len(program.results()) == 51
    counts = program.processor.counts()
    assert counts == Counts(offered=2001, scored=51, dropped=1950, failed=0, empty=0, waiting=0)
    (line,) = [line for line in caplog.messages if line.startswith("an answer was dropped")]
    assert "the queue (max_queue=50) is full" in line


def test_many_threads_lose_nothing() -> None:
    program = Program(max_queue=100)

    def ask_often(_: int) -> None:
        for _ in range(100):
            program.ask(FALSE)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask_often, range(8)))
    sent = len(program.results())
    counts = program.processor.counts()
    assert counts.offered == 800
    assert counts.scored + counts.unscored + counts.dropped == 800  # unscored where the sources' span was dropped
    assert (counts.waiting, counts.failed, counts.scored + counts.unscored) == (0, 0, sent)


def test_a_flush_says_whether_it_was_done_in_time() -> None:
    program = Program(file_of(gated=(0.5, "below", "page")))
    assert program.processor.force_flush(0)  # nothing to do is done
    program.ask(FALSE)
    began = time.monotonic()
    assert not program.processor.force_flush(50)
    assert time.monotonic() - began < SOON
    Gated.gate.set()
    assert program.processor.force_flush(20_000)
    assert program.processor.counts().scored == 1


def test_the_share_of_a_core_holds_up_no_flush() -> None:
    program = Program(cpu_share=1e-6)  # a millisecond of scoring is a quarter of an hour of rest
    for _ in range(50):
        program.ask(FALSE)
    began = time.monotonic()
    assert len(program.results()) == 50
    assert time.monotonic() - began < SOON


def test_a_shutdown_scores_what_it_can_and_counts_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    quick = Program()
    for _ in range(30):
        quick.ask(FALSE)
    quick.processor.shutdown()
    assert quick.processor.counts().scored == 30
    quick.ask(FALSE)
    quick.processor.shutdown()  # a second time is nothing
    assert quick.processor.counts() == Counts(offered=31, scored=30, dropped=1, failed=0, empty=0, waiting=0)

    stuck = Program(file_of(gated=(0.5, "below", "page")), shutdown_seconds=0.05, deadline=60.0)
    for _ in range(30):
        stuck.ask(FALSE)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "touchstone"):
        stuck.processor.shutdown()
    assert time.monotonic() - began < SOON
    assert stuck.processor.counts() == Counts(offered=30, scored=0, dropped=30, failed=0, empty=0, waiting=0)
    assert any(one.startswith("30 answers were not scored") for one in caplog.messages)


def test_a_rule_that_raises_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    program = Program(is_llm=lambda span: 1 / 0 > 0)
    with caplog.at_level(logging.WARNING, "touchstone"):
        for _ in range(3):
            program.ask(FALSE)
    assert program.results() == []
    assert len([one for one in caplog.messages if "ZeroDivisionError" in one]) == 1


class Explodes(SpanProcessor):
    """An exporter of the program's that breaks on our results."""

    def on_end(self, span: ReadableSpan) -> None:
        if span.name == RESULT:
            raise ConnectionError("collector is gone")


def test_an_exporter_that_raises_does_not_stop_the_scoring() -> None:
    program = Program()
    program.provider.add_span_processor(Explodes())
    for _ in range(20):
        program.ask(FALSE)
    assert program.processor.force_flush(20_000)
    assert program.processor.counts().scored == 20


def test_a_span_that_ends_while_another_is_taken_in_does_not_deadlock() -> None:
    """A signal handler or a finaliser may run in the middle of `offer`, in the same thread."""
    program = Program()
    with program.processor._worker.intake._lock:
        program.ask(FALSE)
    assert len(program.results()) == 1


def test_no_thread_to_be_had_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    program = Program(shutdown_seconds=0.05)
    monkeypatch.setattr(threading.Thread, "start", start)
    program.ask(FALSE)
    program.processor.shutdown()
    assert program.processor.counts() == Counts(offered=1, scored=0, dropped=1, failed=0, empty=0, waiting=0)


def script(code: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


FORK = """
import os, sys, threading
from calibrate import registry
from tests.runtime.otel_making import FALSE, Program, file_of
from tests.runtime.test_otel_faults import Gated

registry._load_classes()["gated"] = Gated
Gated.gate, Gated.reached = threading.Event(), threading.Event()
program = Program(file_of(gated=(0.5, "below", "page")))
for _ in range(3):
    program.ask(FALSE)
program.processor.force_flush(1)
Gated.reached.wait(30)  # the parent's thread is in the middle of scoring: it holds what it holds

def serve(asked):
    Gated.gate.set()
    program.exporter.clear()
    for _ in range(asked):
        program.ask(FALSE)
    flushed = program.processor.force_flush(20_000)
    return flushed, program.processor.counts()

for asked in (5, 7):
    read, written = os.pipe()
    if os.fork() == 0:
        os.write(written, repr(serve(asked)).encode())
        os._exit(0)
    os.wait()
    print(os.read(read, 1000).decode())
print(program.processor.counts())
print(serve(2))
"""


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no fork here")
def test_a_forked_child_has_its_own_queue_and_thread_and_the_parent_goes_on() -> None:
    done = script(FORK)
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    counts = "Counts(offered={0}, scored={0}, dropped=0, failed=0, empty=0, waiting=0, unscored=0, nested=0)"
    before = "Counts(offered=3, scored=0, dropped=0, failed=0, empty=0, waiting=3, unscored=0, nested=0)"
    expected = [f"(True, {counts.format(5)})", f"(True, {counts.format(7)})", before, f"(True, {counts.format(5)})"]
    assert out.splitlines() == expected


SIGTERM = """
import signal, sys, threading
from calibrate import registry
from tests.runtime.otel_making import FALSE, Program, chat, file_of
from tests.runtime.test_otel_faults import Gated

registry._load_classes()["gated"] = Gated
Gated.gate, Gated.reached = threading.Event(), threading.Event()
program = Program(file_of(gated=(0.5, "below", "page")), max_queue=100, shutdown_seconds=0.5)
import atexit
atexit.register(program.provider.shutdown)  # as the SDK's provider does by itself
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # as servers do
for _ in range(300):
    program.span(**chat())
print("ready", flush=True)
signal.pause()
"""


def test_a_signal_to_end_with_a_full_queue_ends_the_program_in_time_and_says_what_was_not_scored() -> None:
    process = script(SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < SOON
    assert process.returncode == 0
    assert "answers were not scored: the program ended first" in err
    assert "offered=300, scored=0, dropped=300" in err
