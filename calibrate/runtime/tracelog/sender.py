"""A bounded queue, and the thread that empties it to somewhere that may be away.

Who queues never waits. While the other side is away the queue keeps what fits, the thread tries again, later and later,
and what does not fit is dropped and counted.
"""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

log = logging.getLogger("touchstone")

AT_EXIT = 2.0
"""Seconds that the program's exit may wait for what is queued."""

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # seconds between two tries while the other side is away

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a batch.

    Attributes
    ----------
    outcomes : mapping of str to int
        How many by outcome.
    problem : str or None
        Why the other side did not take it: the batch is tried again, and counts only if there is no time for that.
    wait : float
        Seconds until then, at least.
    """

    outcomes: Mapping[str, int]
    problem: str | None = None
    wait: float = 0.0


class Sender(ABC, Generic[T]):
    """Queues items and delivers them in batches, in order.

    Parameters
    ----------
    max_queue, max_bytes : int
        Most items that may wait, and the memory that they may take. Further ones are dropped and counted.
    batch : int
        Most items delivered at once.
    every : float
        Seconds that an item may wait for others to go with it.
    """

    noun: ClassVar[str]  # in what is logged
    thread_name: ClassVar[str]
    outcomes: ClassVar[tuple[str, ...]]
    batch_bytes: ClassVar[int] = 4 * 1024 * 1024

    def __init__(self, *, max_queue: int, max_bytes: int, batch: int, every: float) -> None:
        self._max_queue, self._max_bytes = max_queue, max_bytes
        self._batch, self._every = batch, every
        self._closed = False
        self._reset()
        _alive.add(self)

    def _reset(self) -> None:
        """Start with an empty queue. The first item starts the thread.

        A forked child calls this again: the parent delivers what was queued before the fork.
        """
        self._changed = threading.Condition()
        self._queue: deque[tuple[T, int]] = deque()
        self._bytes = 0  # of the queue and of what is being delivered
        self._writing = 0
        self._since = 0.0  # when the first item of the queue came
        self._hurried = self._away = False
        self._counts = dict.fromkeys(self.outcomes, 0)
        self._thread: threading.Thread | None = None

    # --- what the other side is

    @property
    @abstractmethod
    def target(self) -> str:
        """Where it goes, for the log."""

    @abstractmethod
    def deliver(self, batch: Sequence[T]) -> Delivery:
        """Deliver a batch. Called from the thread; never raises."""

    def disconnect(self) -> None:
        """Called by the thread when it ends."""

    # --- what programs call

    def put(self, item: T, size: int) -> bool:
        """Queue an item of about so many bytes. False if it is dropped. Never waits for the other side."""
        with self._changed:
            full = len(self._queue) + self._writing >= self._max_queue or self._bytes + size > self._max_bytes
            if full or self._closed:
                self._counts["dropped"] += 1
                return False
            self._queue.append((item, size))
            self._bytes += size
            if len(self._queue) == 1:
                self._since = time.monotonic()
                self._wake()
            elif len(self._queue) == self._batch:
                self._changed.notify_all()
        return True

    def settle(self, outcome: str) -> bool:
        """Count an item that is not queued. Returns False."""
        with self._changed:
            self._counts[outcome] += 1
        return False

    def flush(self, timeout: float = 10, *, give_up: bool = False) -> bool:
        """Deliver everything in the queue now.

        Parameters
        ----------
        timeout : float
            Seconds to wait for it.
        give_up : bool
            Wait no longer once a try has failed.

        Returns
        -------
        bool
            True if nothing waits any more. False where the other side did not take it in time.
        """
        with self._changed:
            self._hurried = bool(self._queue)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_empty() or (give_up and self._away), timeout)
            self._hurried = False
            return self._is_empty()

    def _is_empty(self) -> bool:
        return not self._queue and not self._writing

    def close(self, timeout: float = 10) -> None:
        """Flush, then stop. What still waits after `timeout` seconds, or comes later, counts as dropped.

        Parameters
        ----------
        timeout : float
            Seconds to wait.
        """
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._counts["dropped"] += len(self._queue)
            self._bytes -= sum(size for _, size in self._queue)
            self._queue.clear()
            self._changed.notify_all()
        _alive.discard(self)

    def counts_with_waiting(self) -> dict[str, Any]:
        """How many items by outcome, and `waiting`."""
        with self._changed:
            return {**self._counts, "waiting": len(self._queue) + self._writing}

    # --- the thread's

    def _wake(self) -> None:
        """Start the thread if there is none. The caller holds the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no more threads, or the interpreter is ending; the next item tries again
                self._thread = None
        self._changed.notify_all()

    def _run(self) -> None:
        away: float | None = None  # since when the other side is away
        wait = FIRST_WAIT
        while (batch := self._next()) is not None:
            delivery = self._write(batch)
            if delivery.problem is None:
                if away is not None:
                    log.warning("%s goes on, after %.0f s", self.noun, time.monotonic() - away)
                away, wait = None, FIRST_WAIT
                continue
            if away is None:
                away = time.monotonic()
                log.warning(
                    "%s cannot write to %s: %s. Up to %d answers wait, and it tries again",
                    self.noun, self.target, delivery.problem, self._max_queue,
                )  # fmt: skip
            with self._changed:
                self._changed.wait_for(lambda: self._closed, max(delivery.wait, wait * random.uniform(0.8, 1.2)))
                wait = FIRST_WAIT if self._hurried else min(2 * wait, LONGEST_WAIT)
        self.disconnect()

    def _next(self) -> list[tuple[T, int]] | None:
        """Wait for items, and for others to go with them; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(
                lambda: self._hurried or self._closed or len(self._queue) >= self._batch,
                max(0.0, self._since + self._every - time.monotonic()),
            )
            if not self._queue:
                return None
            batch, size = [self._queue.popleft()], 0
            while self._queue and len(batch) < self._batch and size < self.batch_bytes:
                size += batch[-1][1]
                batch.append(self._queue.popleft())
            self._writing = len(batch)
            return batch

    def _write(self, batch: list[tuple[T, int]]) -> Delivery:
        """Deliver a batch, or put it back."""
        delivery = self.deliver([item for item, _ in batch])
        problem = delivery.problem
        with self._changed:
            self._away = problem is not None
            if problem is not None and not self._closed:
                self._queue.extendleft(reversed(batch))
            else:
                for name, n in delivery.outcomes.items():
                    self._counts[name] += n
                self._bytes -= sum(size for _, size in batch)
            self._writing = 0
            self._since = time.monotonic() - (self._every if problem else 0.0)
            self._changed.notify_all()
        return delivery

    def _begin_in_child(self) -> None:
        """Begin anew in a process that was forked."""
        self._reset()


_alive: weakref.WeakSet[Sender[Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for sender in list(_alive):
        sender._begin_in_child()


def _at_exit() -> None:
    until = time.monotonic() + AT_EXIT
    for sender in list(_alive):
        sender.close(max(0.0, until - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
