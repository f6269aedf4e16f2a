"""The thread beside the program that reads spans, joins them into traces and has these judged."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from opentelemetry import context as otel
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY  # there is no public name for it yet

from calibrate.ingest.spans.answers import Answer
from calibrate.ingest.spans.gather import Gather
from calibrate.ingest.spans.reader import Reader
from calibrate.runtime import notices
from calibrate.runtime.otel.conversion import record_of
from calibrate.runtime.otel.emit import SCOPE
from calibrate.runtime.otel.intake import Counts, EndedSpan, Intake

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

log = logging.getLogger("touchstone")

OURS: ContextVar[bool] = ContextVar("touchstone-scoring", default=False)
"""Set in the worker's context: spans that start there, as a judge's model makes them, hold no answers to score."""

LINGER_SECONDS = 0.05  # between two wakings: the program is interrupted 20 times a second, not once a span
BURST_SECONDS = 0.001  # of computing without a pause, unless a single answer takes longer
MAX_BATCH = 16  # answers judged at once: many where detectors wait for a judge's model, one where they compute
MAX_LOGGED = 100  # kinds of problems that are logged

EMPTY = (
    "the LLM span has no answer text. It called a tool, it failed, or the instrumentation does not capture content: "
    "docs/how-to/opentelemetry.md says how to switch that on"
)
DROPPED = "answers come faster than they can be scored, and the queue (max_queue={most}) is full"


class Worker:
    """Runs `judge` on answers in a thread that the first span starts.

    `judge` returns how many of the answers could not be scored. It is never called twice at a time. It must raise
    before it sends the first result or not at all: after an error it is called again, answer by answer. `cpu_share` is
    the share of one core that the thread may use, above 0 and up to 1, with what `judge` has other threads compute:
    `seconds_beside` says how much that was.
    """

    def __init__(
        self,
        reader: Reader,
        judge: Callable[[Sequence[Answer]], int],
        *,
        gather_seconds: float,
        most: int,
        cpu_share: float,
        seconds_beside: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.intake = Intake(most, examine=self._examine, start=self._start)
        self._gather = Gather(seconds=gather_seconds, most=most)
        self._reader, self._judge, self._most, self._share = reader, judge, most, cpu_share
        self._thread: threading.Thread | None = None
        self._batch, self._rested = 1, 0.0
        self._seconds_beside = seconds_beside
        self._starting = threading.RLock()
        self._reported: set[str] = set()

    def flush(self, seconds: float) -> bool:
        """Judge everything offered so far. True if that was done in time."""
        with self._starting:
            idle = self._thread is None  # no span has come yet, or the thread could not start
        return not self.counts().waiting if idle else self.intake.flush(seconds)

    def stop(self, seconds: float) -> int:
        """Judge what waits for at most so many seconds. Returns the number of answers given up."""
        deadline = time.monotonic() + seconds
        self.intake.close()
        self.flush(seconds)
        unscored = self.intake.abandon()
        if self._thread is not None and self._thread is not threading.current_thread():
            self.intake.wait_for_end(max(0.0, deadline - time.monotonic()))
        if unscored:
            log.warning("%d answers were not scored: the program ended first. %s", unscored, self.intake.counts())
        return unscored

    def counts(self) -> Counts:
        return self.intake.counts()

    def report_once(self, activity: str, problem: object) -> None:
        """Log each kind of problem once: one that every answer meets must not fill the log."""
        kind = f"{activity}: {type(problem).__name__}"
        if kind not in self._reported and len(self._reported) < MAX_LOGGED:
            self._reported.add(kind)
            text = problem if isinstance(problem, str) else f"{type(problem).__name__}: {str(problem)[:200]}"
            log.warning("%s: %s. This is logged once", activity, text)

    def _examine(self, span: ReadableSpan, picked: bool) -> EndedSpan | None:
        """Classify a span; None if it is irrelevant. Runs in the program's threads too if the worker falls behind."""
        try:
            scope = span.instrumentation_scope
            if scope is not None and scope.name == SCOPE:
                return None  # a result, ours or another processor's
            holds = "answer" if picked else self._classify(span)
            root = span.parent is None or span.parent.is_remote
            return EndedSpan(span, holds == "answer") if holds or root else None
        except Exception as error:
            self.report_once("taking a span in", error)
            return None

    def _classify(self, span: ReadableSpan) -> str | None:
        if self._reader.hook is not None:
            return self._reader.holds(record_of(span))
        return self._reader.classify(span.attributes or {})

    def _start(self) -> None:
        if self._thread is not None:
            return
        with self._starting:
            if self._thread is None and not self.intake.closed:
                thread = threading.Thread(target=self._run, name="touchstone-scoring", daemon=True)
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        OURS.set(True)
        otel.attach(otel.set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        while not self.intake.abandoned:
            try:
                self._process_queue()
            except BaseException as error:  # even a detector that calls sys.exit must not end the scoring
                self.report_once("scoring", error)
                time.sleep(LINGER_SECONDS)  # an error that never ends must not take a whole core
        self.intake.end()

    def _process_queue(self) -> None:
        self.intake.wait(self._gather.wait(now=time.monotonic()))
        self.intake.linger(LINGER_SECONDS)
        spans, flush = self.intake.take()
        if notices.is_new("dropped") and self.counts().dropped:
            notices.log_once("dropped", DROPPED.format(most=self._most))
        ready: list[Answer] = []
        for ended in spans:
            ready += self._read_span(ended)
            self._rest()
        ready += self._gather.all() if flush else self._gather.overdue(now=time.monotonic())
        self.intake.settle("nested", sum(answer.nested for answer in ready))
        while ready and not self.intake.abandoned:
            began = self._computed()
            self._judge_safely(ready[: self._batch])
            del ready[: self._batch]
            self._batch = (
                max(1, self._batch // 2)
                if self._computed() - began > BURST_SECONDS
                else min(MAX_BATCH, self._batch * 2)
            )
            self._rest()
        if flush:
            self.intake.finish_flush(flush)

    def _rest(self) -> None:
        """Pause after every burst of computing for as long as `cpu_share` demands.

        Threads of an interpreter run one at a time, so the program waits while this one computes. A flush skips pauses.
        """
        spent = self._computed() - self._rested
        if spent > BURST_SECONDS:
            self.intake.linger(spent * (1 / self._share - 1))
            self._rested = self._computed()

    def _computed(self) -> float:
        return time.thread_time() + self._seconds_beside()

    def _read_span(self, ended: EndedSpan) -> list[Answer]:
        try:
            span = record_of(ended.span)
            content = self._reader.read(span)
            if ended.answer and not content.answers:
                self.intake.settle("empty")
                notices.log_once("empty", EMPTY)
            answer = ended.answer and bool(content.answers)
            origin = ended.span.get_span_context()  # its flags and state say whether the result is sampled too
            return self._gather.add(span, content, answer=answer, now=time.monotonic(), origin=origin)
        except Exception as error:
            self.report_once("reading a span", error)
            if ended.answer:
                self.intake.settle("failed")
            return []

    def _judge_safely(self, answers: Sequence[Answer]) -> None:
        """Judge the answers; if that raises, one by one, so that only the culprit fails."""
        try:
            unscored = self._judge(answers)
        except BaseException as error:
            if len(answers) > 1:
                for answer in answers:
                    self._judge_safely([answer])
                return
            self.report_once("scoring", error)
            self.intake.settle("failed", len(answers))
        else:
            self.intake.settle("scored", len(answers) - unscored)
            self.intake.settle("unscored", unscored)
