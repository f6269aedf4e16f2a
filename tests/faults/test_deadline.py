"""`Guard` answers in time whatever a detector does, keeps few threads for what never ends, and recovers after it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from calibrate import registry
from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.detectors.word_overlap import WordOverlap
from calibrate.errors import BadInput
from calibrate.runtime import Guard
from calibrate.runtime.crew import MOST_STUCK, MOST_THREADS, crew
from calibrate.runtime.planning import revision_of
from calibrate.types import Score, Source, Trace
from tests.backends.chat_stub import Asked, Say, stubbed
from tests.runtime.conftest import nothing_logged_yet
from tests.thresholds.make import entry, release

__all__ = ["nothing_logged_yet"]

ROOT = Path(__file__).parents[2]
FILE = release({
    "token_overlap": entry(0.5, tier="page", params={}, version=TokenOverlap.version),
    "word_overlap": entry(0.5, params={}),
})  # fmt: skip
BAD = Trace(
    "bad",
    "Cows graze under seven purple moons.",
    question="When?",
    sources=(Source("1", "The bridge over the river was built in 1931."),),
)
DEADLINE = 0.5
SLACK = 1.0  # seconds that two busy cores may add


@pytest.fixture
def release_all() -> Iterator[threading.Event]:
    """Set at the end, so that no thread of a test outlives it."""
    event = threading.Event()
    yield event
    event.set()
    deadline = time.monotonic() + 20
    while crew.stuck:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def misbehave(monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]) -> None:
    def score(self: TokenOverlap, traces: Any) -> Iterator[Score]:
        for trace in traces:
            deed()
            yield Score(trace.id, 0.9)

    monkeypatch.setattr(TokenOverlap, "score", score)


def timed(guard: Guard) -> tuple[Any, float]:
    began = time.monotonic()
    return guard.check(BAD), time.monotonic() - began


def sleeping(event: threading.Event) -> None:
    event.wait(60)


def computing(event: threading.Event) -> None:
    while not event.is_set():
        sum(range(100))


@pytest.mark.parametrize("deed", [sleeping, computing])
def test_a_detector_that_does_not_end_is_missing_and_the_others_count(
    deed: Callable[[threading.Event], None], release_all: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    misbehave(monkeypatch, lambda: deed(release_all))
    decision, seconds = timed(Guard(FILE, deadline=DEADLINE))
    assert seconds < DEADLINE + SLACK
    assert (decision.flags, decision.missing) == (("word_overlap",), ("token_overlap",))


def overflow() -> None:
    overflow()


def throw(error: type[BaseException]) -> Callable[[], None]:
    def deed() -> None:
        raise error("its own")

    return deed


@pytest.mark.parametrize(
    "deed", [throw(SystemExit), throw(KeyboardInterrupt), throw(MemoryError), throw(GeneratorExit), overflow]
)
def test_a_detector_that_raises_anything_is_missing(deed: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    misbehave(monkeypatch, deed)
    decision, seconds = timed(Guard(FILE, deadline=5))
    assert seconds < 5
    assert (decision.flags, decision.missing) == (("word_overlap",), ("token_overlap",))


def test_where_nothing_was_scored_in_time_on_missing_decides(
    release_all: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    misbehave(monkeypatch, release_all.wait)
    guard = Guard(FILE, detectors=["token_overlap"], on_missing="reject", deadline=0.1)
    decision = guard.check(BAD)
    assert (decision.verdict, decision.unscored) == ("REJECT", True)
    assert "not scored within the deadline of 0.1 s (token_overlap)" in decision.reasons[0]


def test_what_never_ends_does_not_pile_up_and_is_begun_again_once_it_ends(
    release_all: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[int] = []
    misbehave(monkeypatch, lambda: (begun.append(1), release_all.wait(60)))
    guard = Guard(FILE, deadline=0.1)
    with caplog.at_level(logging.WARNING, "touchstone"):
        for _ in range(MOST_STUCK):
            guard.check(BAD)
        patient = Guard(FILE, deadline=5)
        waits = [timed(patient) for _ in range(20)]
    assert len(begun) == MOST_STUCK
    assert max(seconds for _, seconds in waits) < 3, "what is stuck is not waited for again"
    assert all(decision.flags == ("word_overlap",) for decision, _ in waits)
    lines = [record.getMessage() for record in caplog.records if "token_overlap" in record.getMessage()]
    assert len(lines) == 2, lines
    assert "was late" in lines[0]
    assert "is not begun" in lines[1]

    release_all.set()
    deadline = time.monotonic() + 10
    while crew.stuck:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    decision = Guard(FILE, deadline=5).check(BAD)
    assert decision.missing == ()


def test_many_programs_threads_at_once_get_few_of_ours(
    release_all: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    misbehave(monkeypatch, lambda: release_all.wait(60))
    guard = Guard(FILE, deadline=DEADLINE)
    slowest: list[float] = []
    callers = [threading.Thread(target=lambda: slowest.append(timed(guard)[1])) for _ in range(3 * MOST_THREADS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    ours = [thread for thread in threading.enumerate() if thread.name == "touchstone-check"]
    assert len(ours) <= MOST_THREADS
    assert len(slowest) == len(callers)
    assert max(slowest) < DEADLINE + 2 * SLACK


def test_the_plan_is_bounded_too(release_all: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """A detector's `revision` or `unavailable` may hang as well as its `score`."""
    guard = Guard(FILE, deadline=0.2)
    monkeypatch.setattr(TokenOverlap, "unavailable", lambda self: release_all.wait(60))
    decision, seconds = timed(guard)
    assert seconds < 0.2 + SLACK
    assert decision.unscored


def test_slow_detectors_run_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def score(self: object, traces: Any) -> Iterator[Score]:
        for trace in traces:
            time.sleep(1)
            yield Score(trace.id, 0.1)

    monkeypatch.setattr(TokenOverlap, "score", score)
    monkeypatch.setattr(WordOverlap, "score", score)
    assert Guard(FILE, deadline=1.9).check(BAD).missing == ()


def test_several_answers_keep_what_was_scored_before_the_deadline(
    release_all: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(100))
    misbehave(monkeypatch, lambda: next(calls) == 1 and release_all.wait(60))
    first, second = Guard(FILE, detectors=["token_overlap"], deadline=SLACK).check_many([BAD, BAD])
    assert (first.scored, second.scored) == (("token_overlap",), ())
    assert second.unscored


def test_a_judge_that_never_answers_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    import openai  # noqa: F401  takes longer than this deadline

    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "silent")

    def silent(asked: Asked) -> Say:
        return Say(after=30)

    with stubbed(silent) as stub:
        monkeypatch.setenv("TOUCHSTONE_CHAT_URL", stub.url)
        judge = registry.make("judge_score", {})
        judged = entry(0.5, "above", params={}, version=judge.version, revision=revision_of(judge))
        file = release({"judge_score": judged})
        guard = Guard(file, deadline=DEADLINE)
        decision, seconds = timed(guard)
        assert seconds < DEADLINE + SLACK
        assert decision.missing == ("judge_score",)
        assert stub.asked, "the judge was not asked"
        deadline = time.monotonic() + 3
        while stub.gone < len(stub.asked) or crew.stuck:
            assert time.monotonic() < deadline, "the request outlives the check"
            time.sleep(0.01)


def test_a_stuck_thread_does_not_hold_up_the_end_of_the_program() -> None:
    code = """
import time
from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.runtime import Guard
from tests.faults.test_deadline import BAD, FILE
TokenOverlap.score = lambda self, traces: time.sleep(300)
print(Guard(FILE, deadline=.2).check(BAD).verdict)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "REVIEW\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_checks_with_threads_of_its_own() -> None:
    code = """
import os
from calibrate.runtime import Guard
from tests.faults.test_deadline import BAD, FILE
guard = Guard(FILE, deadline=5)
guard.check(BAD)
pid = os.fork()
missing = guard.check(BAD).missing
if not pid:
    os._exit(len(missing))
print(missing, os.waitpid(pid, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "() 0\n"), done.stderr


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), True, "2"])
def test_an_impossible_deadline_is_refused(wrong: Any) -> None:
    with pytest.raises(BadInput, match="deadline cannot be"):
        Guard(FILE, deadline=wrong)
