"""The time by which a check must be done, where somebody waits for it. What waits or computes for long ends by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("touchstone-deadline", default=None)


def current() -> float | None:
    """The deadline of the check that this code runs for, as a time.monotonic(); None without one."""
    return _deadline.get()


def left() -> float:
    """Seconds until the deadline: 0 or less once it has passed, infinite without one."""
    at = _deadline.get()
    return float("inf") if at is None else at - time.monotonic()


@contextmanager
def ending(at: float) -> Iterator[None]:
    """Set the deadline within a block."""
    token = _deadline.set(at)
    try:
        yield
    finally:
        _deadline.reset(token)
