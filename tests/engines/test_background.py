"""A real worker process: it scores, can be stopped, can be killed, and goes on where it was."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calibrate.engines.background import absolute, is_starting, start_worker
from calibrate.engines.run import BATCH, SAVE_EVERY
from calibrate.workflow.detection.detect import free_dead, worker_name
from db import Store
from db.runs import Run
from tests.engines.conftest import PAUSE, TRACES, Asked, wait_for


@pytest.mark.both_databases
def test_a_killed_run_goes_on_with_what_is_missing(store: Store, queued: Run, asked: Asked) -> None:
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
    lines = asked.traces
    assert len(set(lines)) == TRACES
    # What was asked twice is at most what the kill lost: scores of the last moment, and a batch begun.
    assert len(lines) - TRACES <= SAVE_EVERY / PAUSE + 2 * BATCH


@pytest.mark.both_databases
def test_a_worker_stops_when_asked(store: Store, queued: Run, asked: Asked) -> None:
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    store.runs.stop(queued.id, now=datetime.now(UTC))
    wait_for(lambda: store.runs.get(queued.id).status == "stopped", store, queued)
    wait_for(lambda: not is_starting(store.url, queued.id), store, queued)
    stopped = store.runs.get(queued.id)
    assert 0 < stopped.done < TRACES
    assert stopped.finished_at is not None


def test_a_second_worker_leaves_a_claimed_run_alone(store: Store, queued: Run, asked: Asked) -> None:
    store.runs.claim(worker_name(), now=datetime.now(UTC), run_id=queued.id)
    start_worker(store.url, queued.id)
    wait_for(lambda: not is_starting(store.url, queued.id), store, queued)
    assert store.runs.get(queued.id).worker == worker_name()
    assert not asked.traces


def test_the_path_of_a_store_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("sqlite:///some.db") == f"sqlite:///{tmp_path}/some.db"
    assert absolute("sqlite:////tmp/some.db") == "sqlite:////tmp/some.db"
    assert absolute("postgresql://u:p@h/d") == "postgresql://u:p@h/d"
