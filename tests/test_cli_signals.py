"""A signal ends a verb even where Python drops what its handler raised."""

from __future__ import annotations

import os
import signal

import pytest

from calibrate.cli.signals import Terminated, exit_code, raise_if_stopped, signals_as_interrupts


class Finalized:
    """Gets a signal while it is being finalized: Python prints what is raised there, and goes on."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)
        for _ in range(1000):  # the handler runs between two instructions
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_lost_in_a_finalizer_is_raised_later(number: int, kind: type[KeyboardInterrupt]) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with signals_as_interrupts():
            raise_if_stopped()
            lost = Finalized(number)
            del lost
            with pytest.raises(kind):
                raise_if_stopped()
        with signals_as_interrupts():
            raise_if_stopped()  # of another command before
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_exit_code_is_the_signals_whoever_raises_for_it(number: int, code: int) -> None:
    """Ray puts an interrupt of its own in place of what the handler raised."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted() -> None:
        with signals_as_interrupts():
            try:
                os.kill(os.getpid(), number)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:
                raise KeyboardInterrupt from None

    try:
        with pytest.raises(KeyboardInterrupt) as stop:
            interrupted()
        assert exit_code(stop.value) == code
    finally:
        signal.signal(signal.SIGINT, before)
