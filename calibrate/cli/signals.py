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
    # What the signal raised may have become another interrupt: Ray raises its own in place of it.
    terminated = isinstance(stop, Terminated) or _received is Terminated
    return 128 + (signal.SIGTERM if terminated else signal.SIGINT)


@contextmanager
def when_stopped(say: Callable[[], str]) -> Iterator[None]:
    """Let a verb say what is kept, and how to go on, where a signal ends the block."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise type(stop)(say()) from None


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Let SIGTERM raise Terminated while the block runs, and note Ctrl-C. Does nothing outside of the main thread."""
    global _received
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received = None
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, _interrupt)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # in the background it is ignored, and stays so
        before[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_if_stopped() -> None:
    """Raise for a signal that came before. Python drops what a signal raises in a finalizer or a callback of C code, so
    what runs until it is stopped asks here now and then."""
    if _received is not None:
        raise _received


_received: type[KeyboardInterrupt] | None = None


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = Terminated if number == signal.SIGTERM else KeyboardInterrupt
    raise _received
