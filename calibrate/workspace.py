"""What a team brings to a run besides traces: its own prompts and prices, baselines, cached replies, a budget.

A detector is constructed from its parameters alone. `calibrate.workflow` puts the team's workspace in place first;
detectors and backends read it here. One process works for one store.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from calibrate.types import Baseline, ExternalDetector, LearnedHead


class ReplyCache(Protocol):
    """A store of chat replies by the digest of their request."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, model: str, reply: Mapping[str, Any], *, about: str = "") -> None:
        """Keep a reply. `about` is the id of the trace that the request was about, "" where none is known."""
        ...


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
        """Reserve a request's cost before it is sent. False if it would exceed the limit."""
        with self._lock:
            if self._spent + cost > self.limit:
                return False
            self._spent += cost
            return True

    def settle(self, reserved: float, cost: float) -> None:
        """Replace a reserved cost with what the request did cost."""
        with self._lock:
            self._spent += cost - reserved


@dataclass(frozen=True, slots=True)
class Workspace:
    """A team's settings for a run.

    `files` are the team's versions of the files in `calibrate/backends/files`, by name; `baselines` are by (statistic,
    model), `external` detectors by name, `head` is that of `learned`. Without a `budget` a run may spend what it needs.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[tuple[str, str], Baseline] = field(default_factory=dict)
    replies: ReplyCache | None = None
    budget: Budget | None = None
    external: Mapping[str, ExternalDetector] = field(default_factory=dict)
    head: LearnedHead | None = None


_current = Workspace()


def current() -> Workspace:
    return _current


def use(workspace: Workspace) -> None:
    """Use this workspace from now on, in every thread of the process."""
    global _current
    _current = workspace


@contextmanager
def using(workspace: Workspace) -> Iterator[Workspace]:
    """Use this workspace within a block; restore the previous one afterwards.

    External detectors that another thread put in place meanwhile stay.
    """
    before = current()
    use(workspace)
    try:
        yield workspace
    finally:
        external = current().external
        use(before if external is workspace.external else replace(before, external=external))
