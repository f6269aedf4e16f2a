"""The bounded, counted queue between the program and the worker. It never blocks the program.

The program's threads only append spans. Many are examined at once: that takes 3 µs each in a loop, but 40 µs in a
thread that returns from waiting for a model with cold caches. None of the program's code runs under the lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class EndedSpan(NamedTuple):
    """An ended span that has an answer or sources, or is the root of its trace."""

    span: ReadableSpan
    answer: bool


Examine = Callable[["ReadableSpan", bool], EndedSpan | None]

SIFT_AT = 64  # unexamined spans at which the program's thread examines them itself: the worker has fallen behind


@dataclass(frozen=True, slots=True)
class Counts:
    """LLM spans by outcome: offered = scored + unscored + nested + dropped + failed + empty + waiting.

    Attributes
    ----------
    offered : int
        LLM spans that ended.
    scored : int
        Answers that were decided on by at least one score, or that were not to be scored.
    dropped : int
        Arrived at a full queue, or were waiting when the process ended.
    failed : int
        Could not be read or scored as a whole; the log says why.
    empty : int
        Have no answer text: a tool call, an error, or content that is not captured.
    waiting : int
        In the queue, being gathered, or being scored.
    unscored : int
        Answers that no detector could score: `on_missing` decided on them.
    nested : int
        Spans around, or within, another that has the same answer: scored together as one.
    """

    offered: int
    scored: int
    dropped: int
    failed: int
    empty: int
    waiting: int
    unscored: int = 0
    nested: int = 0


class Intake:
    """At most `most` spans wait here for one worker; further ones are dropped.

    `examine` classifies a span (None if it is irrelevant) and never raises; `start` makes sure that a worker runs. The
    lock is re-entrant, because a signal handler or a finaliser may end a span, or shut everything down, in the middle
    of any method here. Waiting uses a condition, which releases the lock however often it is held.
    """

    def __init__(self, most: int, *, examine: Examine, start: Callable[[], None]) -> None:
        self._most, self._examine, self._start = most, examine, start
        self._arrived: deque[tuple[ReadableSpan, bool]] = deque()  # not looked at yet
        self._idle = True  # the worker must be woken
        self._queue: deque[EndedSpan] = deque()
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # the worker waits for it
        self._settled = threading.Condition(self._lock)  # who flushes waits for it
        self._counts = dict.fromkeys(("offered", "scored", "unscored", "nested", "dropped", "failed", "empty"), 0)
        self._in_worker = 0  # answers the worker holds
        self._flushes_requested = self._flushes_done = 0  # flushes
        self.closed = self.abandoned = self._ended = False

    def offer(self, span: ReadableSpan, picked: bool = False) -> None:
        """Append a span; `picked` if the program says that it holds an answer.

        Takes the lock only to wake the worker, or to examine spans when many have gathered. Waits for nothing else.
        """
        self._arrived.append((span, picked))
        if self._idle or len(self._arrived) >= SIFT_AT:
            with self._lock:
                if len(self._arrived) >= SIFT_AT:
                    self._sift()
                self._start()
                self._idle = False
                self._work.notify()

    def _sift(self) -> None:
        """Examine the spans that arrived. Relevant ones join the queue, or count as dropped if it is full."""
        while True:
            try:
                arrived = self._arrived.popleft()
            except IndexError:
                return
            ended = self._examine(*arrived)
            if ended is None:
                continue
            self._counts["offered"] += ended.answer
            if self.closed or len(self._queue) >= self._most:
                self._counts["dropped"] += ended.answer
            else:
                self._queue.append(ended)

    def wait(self, seconds: float | None) -> None:
        """Wait for a span, a flush, or the end of the time (None: forever)."""
        with self._lock:
            self._work.wait_for(self._has_work, seconds)
            self._idle = False

    def _has_work(self) -> bool:
        self._idle = True  # first: a span that arrives after the check below must wake the worker
        return bool(self._arrived or self._queue or self._flushes_requested > self._flushes_done or self.abandoned)

    def linger(self, seconds: float) -> None:
        """Wait for more spans, so that the worker wakes once for many. Returns at once during a flush."""
        with self._lock:
            self._work.wait_for(
                lambda: self._flushes_requested > self._flushes_done or self.abandoned, min(seconds, TIMEOUT_MAX)
            )

    def take(self) -> tuple[list[EndedSpan], int]:
        """Take all spans from the queue. Also returns the number of the flush to pass to `finish_flush`, 0 for none."""
        with self._lock:
            self._sift()
            spans = list(self._queue)
            self._queue.clear()
            self._in_worker += sum(ended.answer for ended in spans)
            return spans, self._flushes_requested if self._flushes_requested > self._flushes_done else 0

    def settle(self, outcome: str, answers: int = 1) -> None:
        """Count the outcome of answers that the worker took. After `abandon` they count as dropped already."""
        with self._lock:
            settled = min(answers, self._in_worker)
            self._in_worker -= settled
            self._counts[outcome] += settled

    def finish_flush(self, number: int) -> None:
        with self._lock:
            if not self.abandoned:
                self._flushes_done = max(self._flushes_done, number)
            self._settled.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything offered before is settled. False if time ran out first, or on `abandon`."""
        with self._lock:
            self._sift()
            if not self._queue and not self._in_worker:
                return True
            self._flushes_requested += 1
            number = self._flushes_requested
            self._work.notify()
            self._settled.wait_for(lambda: self._flushes_done >= number or self.abandoned, min(seconds, TIMEOUT_MAX))
            return self._flushes_done >= number

    def abandon(self) -> int:
        """Accept nothing more and drop what is left. Returns the number of answers dropped."""
        with self._lock:
            self._sift()
            self.closed = self.abandoned = True
            unscored = self._waiting()
            self._queue.clear()
            self._in_worker = 0
            self._counts["dropped"] += unscored
            self._work.notify()
            self._settled.notify_all()
            return unscored

    def end(self) -> None:
        """Record that the worker has ended."""
        with self._lock:
            self._ended = True
            self._settled.notify_all()

    def wait_for_end(self, seconds: float) -> None:
        with self._lock:
            self._settled.wait_for(lambda: self._ended, min(seconds, TIMEOUT_MAX))

    def close(self) -> None:
        """Accept nothing more. The worker still processes what is in the queue."""
        with self._lock:
            self._sift()
            self.closed = True

    @property
    def depth(self) -> int:
        """Spans in the queue."""
        with self._lock:
            self._sift()
            return len(self._queue)

    def counts(self) -> Counts:
        with self._lock:
            self._sift()
            return Counts(**self._counts, waiting=self._waiting())

    def _waiting(self) -> int:
        # A copy: a finaliser that ends a span may run in the middle of this, in this very thread.
        return sum(ended.answer for ended in tuple(self._queue)) + self._in_worker
