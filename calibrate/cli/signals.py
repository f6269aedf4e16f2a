"""Every verb ends on the SIGTERM of a service manager as it does on Ctrl-C: in order, saying what is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM. What ends a verb on Ctrl-C ends it now too: a transaction is rolled back, a run is marked stopped."""


def exit_code(stop: KeyboardInterrupt) -> int:
    """What a shell reports of a program that the signal ended: 143 for SIGTERM, 130 for Ctrl-C."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


@contextmanager
def when_stopped(say: Callable[[], str]) -> Iterator[None]:
    """Let a verb say what is kept, and how to go on, where a signal ends the block."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise type(stop)(say()) from None


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise Terminated while the block runs. Does nothing outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Terminated
