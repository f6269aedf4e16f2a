"""The queue between the program and the worker: bounded, counted, and never in the program's way.

The program's threads only put spans down here. Which of them matter is looked up for many at once: what takes 3 µs
where it is done over and over takes 40 where a thread comes back from waiting for a model, with nothing in its caches.
Nothing of the program's runs under the lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING

from calibrate.runtime.otel.gather import Ended

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

Look = Callable[["ReadableSpan", bool], Ended | None]

TOGETHER = 64  # spans that are put down before the program looks at them itself, where the worker has not come by


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

    `look` says what a span is, None for one that does not matter, and raises nothing; `start` sees to it that there is
    a worker. The lock is re-entrant: a signal handler or a finaliser may end a span, or shut everything down, in the
    middle of anything here. So who waits does it on a condition, which lets go of the lock however often it is held.
    """

    def __init__(self, most: int, *, look: Look, start: Callable[[], None]) -> None:
        self._most, self._look, self._start = most, look, start
        self._arrived: deque[tuple[ReadableSpan, bool]] = deque()  # not looked at yet
        self._idle = True  # the worker has to be woken
        self._queue: deque[Ended] = deque()
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # the worker waits for it
        self._settled = threading.Condition(self._lock)  # who flushes waits for it
        self._counts = dict.fromkeys(("offered", "scored", "dropped", "failed", "empty"), 0)
        self._taken = 0  # answers the worker holds
        self._asked = self._done = 0  # flushes
        self.closed = self.abandoned = self._ended = False

    def offer(self, span: ReadableSpan, picked: bool = False) -> None:
        """Puts the span down; `picked`: the program says that it holds an answer. Takes the lock only to wake the
        worker, and to look at what is there when that is much; waits for nothing else."""
        self._arrived.append((span, picked))
        if self._idle or len(self._arrived) >= TOGETHER:
            with self._lock:
                if len(self._arrived) >= TOGETHER:
                    self._sift()
                self._start()
                self._idle = False
                self._work.notify()

    def _sift(self) -> None:
        """Looks at what arrived: what matters goes to the queue, or is counted as dropped where that is full."""
        while True:
            try:
                arrived = self._arrived.popleft()
            except IndexError:
                return
            ended = self._look(*arrived)
            if ended is None:
                continue
            self._counts["offered"] += ended.answer
            if self.closed or len(self._queue) >= self._most:
                self._counts["dropped"] += ended.answer
            else:
                self._queue.append(ended)

    def wait(self, seconds: float | None) -> None:
        """Until there is a span, a flush is asked for, or the time is up (None: never)."""
        with self._lock:
            self._work.wait_for(self._has_work, seconds)
            self._idle = False

    def _has_work(self) -> bool:
        self._idle = True  # first: a span that is put down after the look must wake us
        return bool(self._arrived or self._queue or self._asked > self._done or self.abandoned)

    def linger(self, seconds: float) -> None:
        """A moment for more spans to come, so that the worker wakes once for many; none while someone flushes."""
        with self._lock:
            self._work.wait_for(lambda: self._asked > self._done or self.abandoned, min(seconds, TIMEOUT_MAX))

    def take(self) -> tuple[list[Ended], int]:
        """All that waits; and the number of the flush that it answers, to be given to `flushed`, or 0 for none."""
        with self._lock:
            self._sift()
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
            if not self.abandoned:
                self._done = max(self._done, number)
            self._settled.notify_all()

    def flush(self, seconds: float) -> bool:
        """Waits until all that was offered before is settled. False when the time was up first, or it was given up."""
        with self._lock:
            self._sift()
            if not self._queue and not self._taken:
                return True
            self._asked += 1
            wanted = self._asked
            self._work.notify()
            self._settled.wait_for(lambda: self._done >= wanted or self.abandoned, min(seconds, TIMEOUT_MAX))
            return self._done >= wanted

    def abandon(self) -> int:
        """Takes nothing more and gives up what is left; how many answers that were."""
        with self._lock:
            self._sift()
            self.closed = self.abandoned = True
            left = self._waiting()
            self._queue.clear()
            self._taken = 0
            self._counts["dropped"] += left
            self._work.notify()
            self._settled.notify_all()
            return left

    def end(self) -> None:
        """The worker's last word."""
        with self._lock:
            self._ended = True
            self._settled.notify_all()

    def wait_for_end(self, seconds: float) -> None:
        with self._lock:
            self._settled.wait_for(lambda: self._ended, min(seconds, TIMEOUT_MAX))

    def close(self) -> None:
        """Takes nothing more; what is there is still for the worker."""
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
        # Of a copy: a finaliser that ends a span may run in the middle, in this very thread.
        return sum(ended.answer for ended in tuple(self._queue)) + self._taken
