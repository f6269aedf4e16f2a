"""A real worker process: it scores, can be stopped, can be killed, and goes on where it was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.engines.local import absolute, is_starting, log_path, start_worker
from calibrate.engines.run import BATCH, SAVE_EVERY
from calibrate.ingest import Record
from calibrate.types import Trace
from calibrate.workflow.detection.detect import free_dead, worker_name
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
    '''Takes its time, and writes down what it was asked.'''
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
            time.sleep({PAUSE})
            with open(os.environ["SLOW_ASKED"], "a") as file:
                file.write(trace.id + "\\n")
            yield scored(trace, 0.25)
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Workers find the slow detector as another package's; the file tells which traces it was asked for."""
    package = tmp_path / "packages"
    about = package / "slow_detector-1.dist-info"
    about.mkdir(parents=True)
    (package / "slow_detector.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-detector\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[touchstone.detectors]\nslow = slow_detector:Slow\n")
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.setenv("SLOW_ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "asked"


@pytest.fixture
def queued(store: Store) -> Run:
    now = datetime.now(UTC)
    records = [Record(n, Trace(f"t{n}", f"Answer number {n}.")) for n in range(TRACES)]
    store.traces.add(records, labels_as=None, now=now)
    return store.runs.queue([{"name": "slow", "params": {}}], {"all": True}, now=now)


@pytest.mark.both_databases
def test_a_killed_run_goes_on_with_what_is_missing(store: Store, queued: Run, asked: Path) -> None:
    pid = start_worker(store.url, queued.id)
    assert is_starting(store.url, queued.id)
    command_line = Path(f"/proc/{pid}/cmdline")
    if command_line.exists():
        assert store.url not in command_line.read_text()
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_starting(store.url, queued.id), store, queued)
    assert store.runs.get(queued.id).status == "running"

    assert free_dead(store) == [queued.id]
    interrupted = store.runs.get(queued.id)
    assert (interrupted.status, interrupted.worker) == ("queued", None)
    assert 0 < interrupted.done < TRACES

    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    counts = store.runs.get(queued.id).counts["slow"]
    assert counts["reused"] >= interrupted.done
    assert counts["scored"] + counts["reused"] == TRACES
    lines = asked.read_text().split()
    assert len(set(lines)) == TRACES
    # What was asked twice is at most what the kill lost: scores of the last moment, and a batch begun.
    assert len(lines) - TRACES <= SAVE_EVERY / PAUSE + 2 * BATCH


@pytest.mark.both_databases
def test_a_worker_stops_when_asked(store: Store, queued: Run, asked: Path) -> None:
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    store.runs.stop(queued.id, now=datetime.now(UTC))
    wait_for(lambda: store.runs.get(queued.id).status == "stopped", store, queued)
    wait_for(lambda: not is_starting(store.url, queued.id), store, queued)
    stopped = store.runs.get(queued.id)
    assert 0 < stopped.done < TRACES
    assert stopped.finished_at is not None


def test_a_second_worker_leaves_a_claimed_run_alone(store: Store, queued: Run, asked: Path) -> None:
    store.runs.claim(worker_name(), now=datetime.now(UTC), run_id=queued.id)
    start_worker(store.url, queued.id)
    wait_for(lambda: not is_starting(store.url, queued.id), store, queued)
    assert store.runs.get(queued.id).worker == worker_name()
    assert not asked.exists()


def test_the_path_of_a_store_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("sqlite:///some.db") == f"sqlite:///{tmp_path}/some.db"
    assert absolute("sqlite:////tmp/some.db") == "sqlite:////tmp/some.db"
    assert absolute("postgresql://u:p@h/d") == "postgresql://u:p@h/d"


def wait_for(true: Callable[[], Any], store: Store, run: Run, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            log = log_path(store.url, run.id)
            said = log.read_text() if log.exists() else "nothing"
            pytest.fail(f"{store.runs.get(run.id)}\nthe worker said: {said}")
        time.sleep(0.05)
