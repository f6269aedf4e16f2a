"""The command `receive`, running."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.receiving.making import Address

ROOT = Path(__file__).parents[2]
Process = subprocess.Popen[str]


@contextmanager
def running(url: str, *options: str, verb: str = "receive", token: str = "") -> Iterator[tuple[Process, Address]]:
    """`python -m calibrate receive`, ready; killed at the end, and its joiner ends with it."""
    command = [sys.executable, "-m", "calibrate", verb, "--port", "0", *options]
    environment = {**os.environ, "TOUCHSTONE_STORE": url, "TOUCHSTONE_RECEIVE_TOKEN": token}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        try:
            line = ""
            while not (match := re.search(r"http://[\d.]+:(\d+)/v1/traces", line)):
                line = process.stderr.readline()
                assert line, "it ended"
            yield process, Address(int(match[1]))
        finally:
            process.kill()


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.25)
