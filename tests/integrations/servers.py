"""Real servers of other systems, each from the package index in an environment of its own that is made once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ENVIRONMENTS = Path(os.environ.get("TOUCHSTONE_TEST_ENVIRONMENTS", Path.home() / ".cache" / "touchstone-tests"))
APPS = Path(__file__).parent / "apps"
PATIENCE = 240.0  # seconds that a server may take to start on a busy machine


@dataclass(frozen=True)
class Server:
    """A running server, and the Python of its environment, in which a team's program would run."""

    url: str
    python: Path

    def run(self, app: str, *arguments: str) -> str:
        """Run one of the programs in `apps`."""
        environment = {**os.environ, "SERVER": self.url, "MLFLOW_DISABLE_TELEMETRY": "true"}
        command = [str(self.python), str(APPS / app), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout


def environment(name: str, requirement: str) -> Path:
    """The Python of an environment with this package: made when it is not there yet."""
    folder, wanted = ENVIRONMENTS / name, f"{requirement}\n"
    ready = folder / "ready"
    python = folder / "bin" / "python"
    if not (ready.exists() and ready.read_text() == wanted):
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", requirement]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{requirement} cannot be installed: {done.stderr[-300:]}")
        ready.write_text(wanted)
    return python


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], url: str, health: str, variables: Mapping[str, str], log: Path) -> Iterator[None]:
    """Run a server until the block ends; it is healthy when the block begins."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **variables}, cwd=log.parent, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            end = time.monotonic() + PATIENCE
            while not _is_healthy(url + health):
                assert process.poll() is None, log.read_text()[-2000:]
                assert time.monotonic() < end, log.read_text()[-2000:]
                time.sleep(0.5)
            yield
        finally:
            os.killpg(process.pid, 15)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
