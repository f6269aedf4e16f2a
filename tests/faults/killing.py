"""Kill a process in the middle of its work."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.errors import TouchstoneError

Say = Callable[[str], None]
"""What a work calls after something is done for good: the line is out before the call returns."""
PATIENCE = 120.0  # seconds for a work that nobody kills
BEGUN = "begun"  # a work that starts slowly says so when it begins; its clock starts then
PROCESS = "process "  # … and names another process that does the work, and is to be killed with it


def kill_during(work: Callable[[], object], after: float) -> bool:
    """Run `work` in a forked process and kill it `after` seconds later. Gives whether it had ended by then.

    A fork starts in a millisecond, so that a test can kill often. The work opens its own store.
    """
    return forked(lambda say: work(), after).ended


@dataclass
class Forked:
    """What came of a forked work: whether it ended by itself, after how many seconds, and what it had said by then.

    `error` is the sentence of a TouchstoneError, `raw` any other error, which nobody should ever see.
    """

    ended: bool = False
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)
    error: str | None = None
    raw: str | None = None
    processes: list[int] = field(default_factory=list)


def forked(
    work: Callable[[Say], object], after: float | None = None, *, log: Path | None = None, slow_start: bool = False
) -> Forked:
    """Run `work` in a forked process, and kill it with SIGKILL `after` seconds later (None: let it end).

    What it prints goes to `log`. Its children die with it, as in a container that is killed.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _work(work, writer, log)
    os.close(writer)
    outcome = Forked()
    started = time.monotonic()
    deadline = started + PATIENCE if after is None or slow_start else started + after
    pending = b""
    try:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([reader], [], [], left)[0]:
                break
            data = os.read(reader, 65536)
            if not data:
                outcome.ended = True
                break
            *lines, pending = (pending + data).split(b"\n")
            _note(outcome, lines)
            if slow_start and BEGUN in outcome.said:
                outcome.said.remove(BEGUN)
                slow_start, started = False, time.monotonic()
                deadline = started + (PATIENCE if after is None else after)
        outcome.seconds = time.monotonic() - started
        for process in (child, *outcome.processes):
            _kill(process)
        _, status = os.waitpid(child, 0)
        while data := os.read(reader, 65536):  # what it said in its last moment
            *lines, pending = (pending + data).split(b"\n")
            _note(outcome, lines)
    finally:
        os.close(reader)
    outcome.ended = outcome.ended and os.waitstatus_to_exitcode(status) == 0
    if after is None and not outcome.ended and outcome.raw is None:
        outcome.raw = f"it did not end within {PATIENCE:.0f} s"
    return outcome


def _work(work: Callable[[Say], object], writer: int, log: Path | None) -> None:
    """In the child."""
    os.setsid()
    if log is not None:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)

    def say(line: str) -> None:
        os.write(writer, f"{line}\n".encode())

    try:
        work(say)
    except TouchstoneError as error:
        say(f"!error {' '.join(str(error).split())}")
    except BaseException as error:
        traceback.print_exc()
        say(f"!raw {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    finally:
        os._exit(0)


def _note(outcome: Forked, lines: list[bytes]) -> None:
    for line in map(bytes.decode, lines):
        if line.startswith("!error "):
            outcome.error = line.removeprefix("!error ")
        elif line.startswith("!raw "):
            outcome.raw = line.removeprefix("!raw ")
        elif line.startswith(PROCESS):
            outcome.processes.append(int(line.removeprefix(PROCESS)))
        else:
            outcome.said.append(line)


def _kill(process: int) -> None:
    """Kill the process and its group: a child of it may hold a lock or write on."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(process, signal.SIGKILL)
