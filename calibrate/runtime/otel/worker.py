"""The thread beside the program: reads the spans that wait, puts traces together, has them judged."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from opentelemetry import context as otel
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY  # there is no public name for it yet

from calibrate.runtime.otel.emit import SCOPE
from calibrate.runtime.otel.gather import Answer, Ended, Gather
from calibrate.runtime.otel.intake import Counts, Intake
from calibrate.runtime.otel.spans import Reader

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

log = logging.getLogger("touchstone")

OURS: ContextVar[bool] = ContextVar("touchstone-scoring", default=False)
"""Set in the context of the worker: spans that a detector makes there, by a judge's model for one, are not answers."""

LINGER = 0.05  # seconds between two wakings: the program is interrupted 20 times a second, not once a span
BURST = 0.001  # seconds of computing in one go, where a single answer takes no longer
BATCH = 16  # answers that the detectors see at once, at most: many where they wait for a judge, one where they compute
MOST_SAID = 100  # kinds of trouble that are logged


class Worker:
    """Made without a thread; the first span starts it. `judge` may do anything but is not called twice at a time. It
    raises before the first result is sent or not at all: it is then asked again, answer by answer."""

    def __init__(
        self,
        reader: Reader,
        judge: Callable[[Sequence[Answer]], None],
        *,
        gather_seconds: float,
        most: int,
        cpu_share: float,
    ) -> None:
        self.intake = Intake(most, look=self._look, start=self._start)
        self._gather = Gather(seconds=gather_seconds, most=most)
        self._reader, self._judge, self._share = reader, judge, cpu_share
        self._thread: threading.Thread | None = None
        self._batch, self._rested = 1, 0.0
        self._starting = threading.RLock()
        self._said: set[str] = set()

    def flush(self, seconds: float) -> bool:
        """True when everything offered before has been judged."""
        with self._starting:
            idle = self._thread is None  # no span came yet, or no thread could be had for it
        return not self.counts().waiting if idle else self.intake.flush(seconds)

    def stop(self, seconds: float) -> int:
        """Judges what is there for so long at most, then gives up; how many answers were given up."""
        deadline = time.monotonic() + seconds
        self.intake.close()
        self.flush(seconds)
        left = self.intake.abandon()
        if self._thread is not None and self._thread is not threading.current_thread():
            self.intake.wait_for_end(max(0.0, deadline - time.monotonic()))
        if left:
            log.warning("%d answers were not scored: the program ended first. %s", left, self.intake.counts())
        return left

    def counts(self) -> Counts:
        return self.intake.counts()

    def say_once(self, what: str, why: object) -> None:
        """One line for each kind of trouble: a fault that every answer meets must not fill the log."""
        kind = f"{what}: {type(why).__name__}"
        if kind not in self._said and len(self._said) < MOST_SAID:
            self._said.add(kind)
            because = why if isinstance(why, str) else f"{type(why).__name__}: {str(why)[:200]}"
            log.warning("%s: %s. This is said once", what, because)

    def _look(self, span: ReadableSpan, picked: bool) -> Ended | None:
        """Whether a span matters. Runs in the program's threads too, where spans come faster than we take them."""
        try:
            scope = span.instrumentation_scope
            if scope is not None and scope.name == SCOPE:
                return None  # a result, ours or another processor's
            holds = "answer" if picked else self._reader.holds(span)
            root = span.parent is None or span.parent.is_remote
            return Ended(span, holds == "answer", root) if holds or root else None
        except Exception as error:
            self.say_once("taking a span in", error)
            return None

    def _start(self) -> None:
        if self._thread is not None:
            return
        with self._starting:
            if self._thread is None and not self.intake.closed:
                made = threading.Thread(target=self._run, name="touchstone-scoring", daemon=True)
                made.start()
                self._thread = made

    def _run(self) -> None:
        OURS.set(True)
        otel.attach(otel.set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        while not self.intake.abandoned:
            try:
                self._turn()
            except BaseException as error:  # even a detector that calls sys.exit must not end the scoring
                self.say_once("scoring", error)
                time.sleep(LINGER)  # should it never get better, it must not take a whole core either
        self.intake.end()

    def _turn(self) -> None:
        self.intake.wait(self._gather.wait(now=time.monotonic()))
        self.intake.linger(LINGER)
        taken, flush = self.intake.take()
        ready: list[Answer] = []
        for ended in taken:
            ready += self._read(ended)
            self._breathe()
        ready += self._gather.all() if flush else self._gather.overdue(now=time.monotonic())
        while ready and not self.intake.abandoned:
            began = time.thread_time()
            self._judge_safely(ready[: self._batch])
            del ready[: self._batch]
            self._batch = (
                max(1, self._batch // 2) if time.thread_time() - began > BURST else min(BATCH, self._batch * 2)
            )
            self._breathe()
        if flush:
            self.intake.flushed(flush)

    def _breathe(self) -> None:
        """Rests after every burst, as long as its share of a core asks for: threads of one interpreter run one at a
        time, and the program waits for its turn until ours ends. Whoever flushes does not wait for rests."""
        spent = time.thread_time() - self._rested
        if spent > BURST:
            self.intake.linger(spent * (1 / self._share - 1))
            self._rested = time.thread_time()

    def _read(self, ended: Ended) -> list[Answer]:
        try:
            said = self._reader.read(ended.span)
            if ended.answer and not said.answers:
                self.intake.settle("empty")
                ended = ended._replace(answer=False)
            return self._gather.add(ended, said, now=time.monotonic())
        except Exception as error:
            self.say_once("reading a span", error)
            if ended.answer:
                self.intake.settle("failed")
            return []

    def _judge_safely(self, answers: Sequence[Answer]) -> None:
        """Where that raises, answer by answer, so that only the culprit fails."""
        try:
            self._judge(answers)
        except BaseException as error:
            if len(answers) > 1:
                for answer in answers:
                    self._judge_safely([answer])
                return
            self.say_once("scoring", error)
            self.intake.settle("failed", len(answers))
        else:
            self.intake.settle("scored", len(answers))
