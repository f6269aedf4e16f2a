"""Do the steps of a check in threads beside the caller, who leaves at the deadline whatever a step does.

Python cannot end a thread, so a step that never ends keeps its own. That is bounded twice: by the threads of a process,
and by how many of them the steps of one name may keep beyond their deadlines before no further one is begun. Both are
free again when such steps end. The threads are daemons: a stuck one does not hold up the end of the program.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Literal

from calibrate import deadlines

MOST_THREADS = 64
MOST_STUCK = 4  # steps of one name that may run beyond their deadline; further ones are not begun
PATIENCE = 0.05  # seconds that a step may take before the next one is begun beside it

Fate = Literal["running", "waiting", "refused", "raised"]
"""Why a step was not done: it had not ended, it had not begun, too many before it never ended, or it raised."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a check. `last` ones begin when all others have ended."""

    name: str
    run: Callable[[], None]
    last: bool = False


@dataclass(slots=True)
class Check:
    """The steps of one check, and what became of those that were not done."""

    plan: Callable[[], Sequence[Step]]
    until: float
    todo: deque[Step] = field(default_factory=deque)
    running: list[Step] = field(default_factory=list)
    undone: dict[str, Fate] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    is_over: bool = False
    finished: threading.Event = field(default_factory=threading.Event)


class Crew:
    """At most `most` threads, begun when they are needed."""

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self.reset()

    def reset(self) -> None:
        """Begin without threads: a forked child has none of its parent's."""
        self._lock = threading.Condition()
        self._jobs: deque[tuple[Check, Context]] = deque()
        self._threads = self._idle = 0
        self._stuck: Counter[str] = Counter()

    @property
    def stuck(self) -> int:
        """Threads that are busy with a step beyond its deadline."""
        with self._lock:
            return self._stuck.total()

    def do(self, plan: Callable[[], Sequence[Step]], *, until: float) -> Check:
        """Do the steps that `plan` returns, itself included, until a time.monotonic().

        Returns at that time at the latest. `undone` then says what was not done, with "" for `plan`.
        """
        check = Check(plan, until)
        check.todo.append(Step("", lambda: self._extend(check)))
        is_accepted = self._send(check)
        try:
            while is_accepted and not check.finished.wait(max(0.0, min(PATIENCE, until - time.monotonic()))):
                if time.monotonic() >= until:
                    break
                if self._has_waiting(check):
                    self._send(check)
        finally:
            self._end(check, refused=not is_accepted)
        return check

    def _has_waiting(self, check: Check) -> bool:
        with self._lock:
            return any(not step.last for step in check.todo)

    def _extend(self, check: Check) -> None:
        steps = check.plan()
        with self._lock:
            check.todo.extend(() if check.is_over else steps)

    def _send(self, check: Check) -> bool:
        """Have one more thread work on the check, as soon as one is free. False if none will be."""
        with self._lock:
            if self._idle <= len(self._jobs) and self._threads < self._most:
                try:
                    threading.Thread(target=self._work, name="touchstone-check", daemon=True).start()
                    self._threads += 1
                except RuntimeError:  # the machine has no more threads, or the program is ending
                    pass
            if self._stuck.total() >= self._threads:
                return False
            self._jobs.append((check, copy_context()))
            self._lock.notify()
            return True

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                self._lock.wait_for(lambda: self._jobs)
                self._idle -= 1
                check, context = self._jobs.popleft()
            with suppress(BaseException):  # out of memory, at worst: the thread stays
                context.run(self._do_steps, check)
            del check, context  # an idle thread keeps no trace alive

    def _do_steps(self, check: Check) -> None:
        with deadlines.ending(check.until):
            while (step := self._next(check)) is not None:
                try:
                    step.run()
                except BaseException as error:  # the crew's threads get no signals: even SystemExit is the step's own
                    check.undone.setdefault(step.name, "raised")
                    check.errors[step.name] = error
                finally:
                    self._give_back(check, step)

    def _next(self, check: Check) -> Step | None:
        with self._lock:
            for step in sorted(check.todo, key=lambda step: step.last):
                if step.last and any(not other.last for other in check.running):
                    break
                check.todo.remove(step)
                if self._stuck[step.name] >= MOST_STUCK:
                    check.undone[step.name] = "refused"
                    continue
                check.running.append(step)
                return step
            self._finish_if_done(check)
            return None

    def _give_back(self, check: Check, step: Step) -> None:
        with self._lock:
            check.running.remove(step)
            if check.is_over:
                self._stuck[step.name] -= 1
            else:
                self._finish_if_done(check)

    @staticmethod
    def _finish_if_done(check: Check) -> None:
        if not check.running and not check.todo:
            check.finished.set()

    def _end(self, check: Check, *, refused: bool) -> None:
        """Leave the check as it is: what runs is stuck from now on, what waits is not begun."""
        with self._lock:
            check.is_over = True
            for step in check.todo:
                check.undone[step.name] = "refused" if refused else "waiting"
            for step in check.running:
                check.undone[step.name] = "running"
                self._stuck[step.name] += 1
            check.todo.clear()


crew = Crew()
"""The threads of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=crew.reset)
