"""Give a run's traces to workers, a task at a time, and give them again when a worker dies.

A worker opens the store by itself, and saves what it scores there. A task that is given again is computed only as far
as it was not saved: nothing is lost, and at most what a worker had not saved is computed twice.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from calibrate.engines.run import BATCH, Pairs, Tally, count_finished
from calibrate.errors import TouchstoneError

Worker = Callable[[Pairs], Mapping[str, Tally]]
"""Scores the traces, saves the scores, and returns a tally per detector. It lives in a process of its own."""

TICK = 0.5  # seconds between two looks at the run: its progress is stored, and Stop is seen
TASK_SECONDS = 1.0  # what a task should take: long against the cost of giving it, short for who waits for its end
FIRST_TASK, LARGEST_TASK = 2 * BATCH, 4096  # traces
TRIES = 3  # of a task; more deaths than that are its own doing
STOP_WITHIN = 20.0  # seconds in which workers save what they have once the run is stopped


@dataclass(frozen=True, slots=True)
class Resources:
    """What a worker asks of a cluster. `uses_gpu`: it takes a share of one where there are any; `needs_gpu`: it cannot
    do without; `memory` in bytes, 0 for no claim."""

    uses_gpu: bool = False
    needs_gpu: bool = False
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task: a tally per detector, or None if its worker died."""

    pairs: Pairs
    tallies: Mapping[str, Tally] | None
    seconds: float = 0.0


class Pool(Protocol):
    """Workers that wait for tasks. `workers` is how many there are, or shall be."""

    workers: int

    @property
    def room(self) -> int:
        """The most tasks that may be outstanding: more than there are workers, so that none waits for its next."""
        ...

    def submit(self, pairs: Pairs) -> None: ...

    def wait(self, seconds: float) -> list[Outcome]:
        """Wait for an outcome, but no longer than this. Raises what a worker raised."""
        ...

    def close(self) -> None:
        """End the workers, whatever they do."""
        ...


def run_parallel(
    pool: Pool,
    names: Collection[str],
    chunks: Iterable[Pairs],
    tallies: dict[str, Tally],
    *,
    on_progress: Callable[[int, dict[str, Tally]], bool],
) -> None:
    """Have the pool score every trace of `chunks` with the detectors of these names, and count in `tallies`.

    `on_progress` is called about twice a second, as by `run`. Once it returns False, the workers are waited for (they
    look at the run themselves) and the run ends. The pool is closed in every case.
    """
    tasks = _Tasks(chunks)
    shown = time.monotonic()
    repeats = 0
    try:
        while not tasks.is_done:
            while len(tasks.outstanding) < pool.room and (pairs := tasks.take()):
                pool.submit(pairs)
            for name in names:
                tallies[name].reused += tasks.repeats - repeats
            repeats = tasks.repeats
            for outcome in pool.wait(TICK):
                tasks.settle(outcome)
                _add(tallies, outcome)
            if time.monotonic() - shown >= TICK:
                shown = time.monotonic()
                if not on_progress(count_finished(tallies), tallies):
                    _wait_for_saving(pool, tasks, tallies)
                    return
    finally:
        pool.close()
    on_progress(count_finished(tallies), tallies)


def _add(tallies: Mapping[str, Tally], outcome: Outcome) -> None:
    for name, tally in (outcome.tallies or {}).items():
        tallies[name].add(tally)


def _wait_for_saving(pool: Pool, tasks: _Tasks, tallies: Mapping[str, Tally]) -> None:
    until = time.monotonic() + STOP_WITHIN
    while tasks.outstanding and time.monotonic() < until:
        for outcome in pool.wait(TICK):
            del tasks.outstanding[outcome.pairs[0][1]]
            _add(tallies, outcome)


class _Tasks:
    """Cuts chunks into tasks of about TASK_SECONDS, and keeps those that are outstanding or to be given again.

    A content that is outstanding is left out: its score will be there for every trace that shares it. `repeats` counts
    these.
    """

    def __init__(self, chunks: Iterable[Pairs]) -> None:
        self.outstanding: dict[str, Pairs] = {}  # by the first content of each
        self.repeats = 0
        self._pairs = _flatten(chunks)
        self._contents: set[str] = set()
        self._again: deque[Pairs] = deque()
        self._deaths: dict[str, int] = {}
        self._size = FIRST_TASK
        self._exhausted = False

    @property
    def is_done(self) -> bool:
        return self._exhausted and not self._again and not self.outstanding

    def take(self) -> Pairs:
        """The next task; empty when none is left."""
        pairs = self._again.popleft() if self._again else self._cut()
        if pairs:
            self.outstanding[pairs[0][1]] = pairs
            self._contents.update(content for _, content in pairs)
        return pairs

    def settle(self, outcome: Outcome) -> None:
        """Take a task off the list, or put it on it again. Raises TouchstoneError when it keeps killing workers."""
        first = outcome.pairs[0][1]
        del self.outstanding[first]
        self._contents.difference_update(content for _, content in outcome.pairs)
        if outcome.tallies is not None:
            self._size = _next_size(self._size, len(outcome.pairs), outcome.seconds)
            return
        self._deaths[first] = self._deaths.get(first, 0) + 1
        if self._deaths[first] >= TRIES:
            raise TouchstoneError(
                f"{TRIES} workers in turn died over the same {len(outcome.pairs)} traces; they may want more memory "
                "than there is: take fewer workers (--workers 1), or fewer detectors at once"
            )
        self._again.append(outcome.pairs)

    def _cut(self) -> Pairs:
        pairs: list[tuple[int, str]] = []
        contents: set[str] = set()
        for pair in self._pairs:
            if pair[1] in self._contents or pair[1] in contents:
                self.repeats += 1
                continue
            contents.add(pair[1])
            pairs.append(pair)
            if len(pairs) >= self._size:
                return pairs
        self._exhausted = True
        return pairs


def _flatten(chunks: Iterable[Pairs]) -> Iterator[tuple[int, str]]:
    for chunk in chunks:
        yield from chunk


def _next_size(size: int, n: int, seconds: float) -> int:
    """The size for tasks of TASK_SECONDS, by one that took this long; at most four times the size before."""
    wanted = n * TASK_SECONDS / max(seconds, 1e-3)
    batches = round(min(wanted, 4.0 * size) / BATCH)
    return min(max(BATCH, batches * BATCH), LARGEST_TASK)
