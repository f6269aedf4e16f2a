"""Verbs that run until they are stopped end alike on Ctrl-C and on the SIGTERM of a service manager."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def as_interrupt() -> Iterator[None]:
    """For a while, SIGTERM raises KeyboardInterrupt as Ctrl-C does. Only in the main thread, as signals are."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
