"""A slow detector from another package, so that a run can be met in its middle, and what it was asked to score."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.engines.background import log_path
from calibrate.ingest import Record
from calibrate.types import Trace
from db import Store
from db.runs import Run

TRACES = 240
PAUSE = 0.02  # seconds a trace
PLUGIN = f"""
import os, time
from dataclasses import dataclass
from typing import ClassVar
from calibrate.detectors.base import scored

@dataclass(frozen=True)
class Slow:
    '''Takes its time, and writes down what it was asked, and in which process.'''
    name: ClassVar[str] = "slow"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Slow"
    unit: ClassVar[str] = "nothing"
    needs: ClassVar[frozenset] = frozenset({{"answer"}})
    flag_when: ClassVar[str] = "above"
    bounds: ClassVar[tuple] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    def revision(self): return ""
    def unavailable(self): return None

    def score(self, traces):
        for trace in traces:
            if trace.answer == "kill":
                os._exit(9)
            time.sleep({PAUSE})
            with open(os.environ["SLOW_ASKED"], "a") as file:
                file.write(f"{{trace.id}} {{os.getpid()}}\\n")
            yield scored(trace, 0.25)
"""


class Asked:
    """What the slow detector was asked for: a line per score."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def traces(self) -> list[str]:
        return [line[0] for line in self._lines()]

    @property
    def pids(self) -> list[int]:
        return [int(line[1]) for line in self._lines()]

    def _lines(self) -> list[list[str]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [line.split() for line in lines if len(line.split()) == 2]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return install_slow(tmp_path, monkeypatch)


def install_slow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Let processes that are started from now on find the slow detector as another package's."""
    package = folder / "packages"
    about = package / "slow_detector-1.dist-info"
    about.mkdir(parents=True)
    (package / "slow_detector.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-detector\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[touchstone.detectors]\nslow = slow_detector:Slow\n")
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.setenv("SLOW_ASKED", str(folder / "asked"))
    return Asked(folder / "asked")


@pytest.fixture
def queue_slow(store: Store) -> Callable[..., Run]:
    """Queues a run of the slow detector over so many traces, with these options."""

    def queue(
        answers: Callable[[int], str] = lambda n: f"Answer number {n}.", traces: int = TRACES, **options: Any
    ) -> Run:
        now = datetime.now(UTC)
        records = [Record(n, Trace(f"t{n}", answers(n))) for n in range(traces)]
        store.traces.add(records, labels_as=None, now=now)
        return store.runs.queue([{"name": "slow", "params": {}}], {"all": True}, options=options or None, now=now)

    return queue


@pytest.fixture
def queued(queue_slow: Callable[..., Run]) -> Run:
    return queue_slow()


def wait_for(true: Callable[[], Any], store: Store, run: Run, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            log = log_path(store.url, run.id)
            said = log.read_text() if log.exists() else "nothing"
            pytest.fail(f"{store.runs.get(run.id)}\nthe worker said: {said}")
        time.sleep(0.05)
