"""The queue between the program and the worker: bounded, counted, and never in the program's way."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from calibrate.runtime.otel.gather import Ended


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the LLM spans: offered = scored + dropped + failed + empty + waiting.

    offered  LLM spans that ended
    scored   answers that the detectors saw and that were decided on
    dropped  found the queue full, or were left when the process ended
    failed   could not be read or scored as a whole; the log says why
    empty    have no answer text (a tool call, an error, or content that is not captured)
    waiting  in the queue, being gathered, or being scored
    """

    offered: int
    scored: int
    dropped: int
    failed: int
    empty: int
    waiting: int


class Intake:
    """Spans wait here, at most `most`; one that finds it full is dropped. One worker takes them.

    The lock is re-entrant: a signal handler or a finaliser may end a span in the middle of `offer`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._queue: deque[Ended] = deque()
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # the worker waits for it
        self._settled = threading.Condition(self._lock)  # who flushes waits for it
        self._counts = dict.fromkeys(("offered", "scored", "dropped", "failed", "empty"), 0)
        self._taken = 0  # answers the worker holds
        self._asked = self._done = 0  # flushes
        self.closed = self.abandoned = False

    def offer(self, ended: Ended) -> None:
        """Adds the span, or counts it as dropped. Holds the lock for a microsecond and waits for nothing else."""
        with self._lock:
            if ended.answer:
                self._counts["offered"] += 1
            if self.closed or len(self._queue) >= self._most:
                self._counts["dropped"] += ended.answer
                return
            self._queue.append(ended)
            if len(self._queue) == 1:
                self._work.notify()

    def wait(self, seconds: float | None) -> None:
        """Until there is a span, a flush is asked for, or the time is up (None: never)."""
        with self._lock:
            self._work.wait_for(lambda: self._queue or self._asked > self._done or self.abandoned, seconds)

    def linger(self, seconds: float) -> None:
        """A moment for more spans to come, so that the worker wakes once for many; none while someone flushes."""
        with self._lock:
            self._work.wait_for(lambda: self._asked > self._done or self.abandoned, seconds)

    def take(self) -> tuple[list[Ended], int]:
        """All that waits; and the number of the flush that it answers, to be given to `flushed`, or 0 for none."""
        with self._lock:
            taken = list(self._queue)
            self._queue.clear()
            self._taken += sum(ended.answer for ended in taken)
            return taken, self._asked if self._asked > self._done else 0

    def settle(self, outcome: str, answers: int = 1) -> None:
        """Counts what the worker did with answers it took. After `abandon` they are counted as dropped already."""
        with self._lock:
            settled = min(answers, self._taken)
            self._taken -= settled
            self._counts[outcome] += settled

    def flushed(self, number: int) -> None:
        with self._lock:
            self._done = max(self._done, number)
            self._settled.notify_all()

    def flush(self, seconds: float) -> bool:
        """Waits until all that was offered before is settled. False when the time was up first."""
        with self._lock:
            if not self._queue and not self._taken:
                return True
            self._asked += 1
            wanted = self._asked
            self._work.notify()
            return self._settled.wait_for(lambda: self._done >= wanted, seconds)

    def abandon(self) -> int:
        """Takes nothing more and gives up what is left; how many answers that were."""
        with self._lock:
            self.closed = self.abandoned = True
            left = self._waiting()
            self._queue.clear()
            self._taken = 0
            self._counts["dropped"] += left
            self._work.notify()
            return left

    def close(self) -> None:
        """Takes nothing more; what is there is still for the worker."""
        self.closed = True

    @property
    def depth(self) -> int:
        """Spans in the queue."""
        return len(self._queue)

    def counts(self) -> Counts:
        with self._lock:
            return Counts(**self._counts, waiting=self._waiting())

    def _waiting(self) -> int:
        # Of a copy: a finaliser that ends a span may run in the middle, in this very thread.
        return sum(ended.answer for ended in tuple(self._queue)) + self._taken
