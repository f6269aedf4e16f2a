"""Workers that wait on one store: each run is carried out once, and none is lost with the worker that had it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from calibrate.engines.run import SAVE_EVERY
from calibrate.errors import StoreError
from calibrate.workflow.detection import detect, heartbeat
from db import Store
from db.runs import STALE, Run
from tests.engines.conftest import PAUSE, TRACES, Asked, wait_for

ROOT = Path(__file__).parents[2]
ELSEWHERE = "machine.that.is.not.here:77"


@pytest.fixture
def wait(store: Store, asked: Asked) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts `worker --wait` in a process of its own, and returns once it waits."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "calibrate", "worker", "--wait", "--store", store.url]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        # A shell's background job ignores Ctrl-C, and so would what it starts.
        worker = subprocess.Popen(
            command, cwd=ROOT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes
        )
        started.append(worker)
        assert worker.stderr is not None
        assert "waiting for runs of" in worker.stderr.readline()
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.communicate()


@pytest.mark.both_databases
def test_a_worker_that_is_told_to_end_gives_its_run_to_another(
    store: Store, queued: Run, asked: Asked, wait: Callable[[], subprocess.Popen[str]]
) -> None:
    first = wait()
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    first.send_signal(signal.SIGTERM)
    text, _ = first.communicate(timeout=60)
    assert first.returncode == 128 + signal.SIGTERM
    given_back = store.runs.get(queued.id)
    assert (given_back.status, given_back.worker) == ("queued", None)
    assert 0 < given_back.done < TRACES
    assert f"run {queued.id} waits for another worker: {given_back.done} of {TRACES} scores" in text

    second = wait()
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    assert second.stderr is not None
    assert f"run {queued.id} done: {TRACES} of {TRACES} scores" in second.stderr.readline()
    time.sleep(0.5)  # it waits again
    second.send_signal(signal.SIGINT)
    text, _ = second.communicate(timeout=60)
    assert second.returncode == 128 + signal.SIGINT
    assert text.strip() == "1 run carried out"
    assert len(set(asked.traces)) == TRACES
    assert len(asked.traces) - TRACES <= SAVE_EVERY / PAUSE + 2, "what was saved is asked for again"


def test_a_worker_takes_the_run_of_one_that_died_on_another_machine(
    store: Store, queued: Run, asked: Asked, wait: Callable[[], subprocess.Popen[str]]
) -> None:
    left = timedelta(seconds=5)
    store.runs.claim(ELSEWHERE, now=datetime.now(UTC) - STALE + left)
    began = time.monotonic()
    wait()
    while time.monotonic() - began < left.total_seconds() / 2:
        assert store.runs.get(queued.id).worker == ELSEWHERE, "it may still be alive"
        time.sleep(0.1)
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    assert store.runs.get(queued.id).worker != ELSEWHERE
    assert sorted(asked.traces) == sorted({f"t{n}" for n in range(TRACES)})


@pytest.mark.both_databases
def test_several_workers_share_what_waits(
    store: Store, queued: Run, asked: Asked, wait: Callable[[], subprocess.Popen[str]]
) -> None:
    other = store.runs.queue([{"name": "token_overlap", "params": {}}], {"all": True}, now=datetime.now(UTC))
    wait(), wait()
    wait_for(lambda: all(store.runs.get(run.id).status == "done" for run in (queued, other)), store, queued)
    assert store.runs.get(queued.id).worker != store.runs.get(other.id).worker
    assert len(asked.traces) == TRACES


def test_a_run_that_somebody_stopped_does_not_wait_again(
    store: Store, queued: Run, asked: Asked, wait: Callable[[], subprocess.Popen[str]]
) -> None:
    worker = wait()
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    store.runs.stop(queued.id, now=datetime.now(UTC))
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert store.runs.get(queued.id).status == "stopped"


def test_a_slow_batch_is_not_taken_for_a_dead_worker(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heartbeat does not come from progress: a judge may take minutes for one reply."""
    monkeypatch.setattr(heartbeat, "EVERY", timedelta(seconds=PAUSE))
    run = store.runs.queue([{"name": "slow", "params": {}}], {"all": True}, now=datetime.now(UTC))
    long_ago = datetime.now(UTC) - 2 * STALE
    store.runs.claim(ELSEWHERE, now=long_ago)
    with heartbeat.beating(store, run.id, ELSEWHERE):
        wait_for(lambda: store.runs.get(run.id).heartbeat_at != long_ago, store, run)
        assert store.runs.claim("other", now=datetime.now(UTC)) is None


def test_a_worker_that_waits_outlives_a_database_that_is_away(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def claim(*_: object, **__: object) -> None:
        nonlocal looks
        looks += 1
        if looks == 4:
            raise KeyboardInterrupt
        if looks in (2, 3):
            raise StoreError("the database is away")

    monkeypatch.setattr(detect, "claim", claim)
    monkeypatch.setattr("calibrate.cli.worker.EVERY", 0.01)
    assert main(["worker", "--wait", "--store", store.url]) == 130
    said = capsys.readouterr().err
    assert said.count("the database is away") == 1


def test_one_run_and_all_that_come_exclude_each_other(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--wait", "--run", "1", "--store", store.url]) == 2
    assert "leave one of them out" in capsys.readouterr().err
