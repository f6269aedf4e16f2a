"""What a team brings to a run beside traces: its own wordings and prices, baselines, kept replies, a budget.

A detector is made from its parameters alone. Whoever composes store and product (`calibrate.workflow`) puts the team's
workspace in place first; detectors and backends read it here. One process works for one store.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from calibrate.types import Baseline


class ReplyCache(Protocol):
    """A store of chat replies by the digest of their request."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, model: str, reply: Mapping[str, Any]) -> None: ...


class Budget:
    """Money that a run may spend, in US dollars. Safe between threads."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._spent = 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        return self._spent

    def reserve(self, cost: float) -> bool:
        """Sets the cost aside before a request is sent; False when it would exceed the limit."""
        with self._lock:
            if self._spent + cost > self.limit:
                return False
            self._spent += cost
            return True

    def settle(self, reserved: float, cost: float) -> None:
        """Replaces what was set aside with what the request did cost."""
        with self._lock:
            self._spent += cost - reserved


@dataclass(frozen=True, slots=True)
class Workspace:
    """`files` are the team's versions of the files in `calibrate/backends/files`, by name; `baselines` by (statistic,
    model). Without a `budget` a run may spend what it needs."""

    files: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[tuple[str, str], Baseline] = field(default_factory=dict)
    replies: ReplyCache | None = None
    budget: Budget | None = None


_current = Workspace()


def current() -> Workspace:
    return _current


def use(workspace: Workspace) -> None:
    """From now on, in every thread of this process."""
    global _current
    _current = workspace


@contextmanager
def using(workspace: Workspace) -> Iterator[Workspace]:
    """For a while; then what was there before."""
    before = current()
    use(workspace)
    try:
        yield workspace
    finally:
        use(before)
