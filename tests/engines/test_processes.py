"""Real worker processes: the scores of one process, and nothing lost when a worker or the parent is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from calibrate.engines.background import is_starting, start_worker
from calibrate.engines.choice import EngineChoice
from calibrate.engines.parallel import FIRST_TASK
from calibrate.engines.run import SAVE_EVERY
from calibrate.ingest import Record
from calibrate.types import Source, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.detect import free_dead
from db import Store, open_store
from db.runs import Run
from tests.engines.conftest import PAUSE, TRACES, Asked, wait_for

TWO = {"engine": "processes", "workers": 2}
LEXICAL = ["token_overlap", "citation_validity", "rouge_l", "schema"]


def many(n: int) -> list[Record]:
    """Traces of which some share their content, some lack sources and some decline."""
    answers = ("Parcels take {} days [1].", "I cannot answer that.", "", "The warehouse sends it on day {}.")
    return [
        Record(i, Trace(f"t{i}", answers[i % 4].format(i % 60), question="How long?",
                        sources=(Source("1", f"Parcels take {i % 50} days from the warehouse."),) if i % 3 else ()))
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.both_databases
def test_two_processes_score_what_one_scores(store: Store, tmp_path: Path) -> None:
    one = open_store(f"sqlite:///{tmp_path}/one.db")
    tallies = {}
    for place, engine in ((one, EngineChoice("local")), (store, EngineChoice("processes", 2))):
        place.traces.add(many(700), labels_as=None, now=detect.utc_now())
        queued = detect.queue(place, LEXICAL, {"all": True}, engine=engine)
        run = detect.work(place, run_id=queued.id)
        assert run is not None
        assert (run.status, run.done, run.total) == ("done", 700 * len(LEXICAL), 700 * len(LEXICAL))
        tallies[engine.name] = {
            name: {key: tally[key] for key in ("scored", "abstained", "failed", "refusals", "reused", "why")}
            for name, tally in run.counts.items()
        }
    assert tallies["local"] == tallies["processes"]
    assert scores_of(store) == scores_of(one)
    assert len(scores_of(one)) > 100
    one.close()


def scores_of(store: Store) -> list[tuple[str, str, object]]:
    """Trace, detector and score of everything that was scored; the time that it took is nobody's."""
    pks = [pk for chunk in store.traces.keys(TraceFilter()) for pk, _ in chunk]
    return sorted(
        (str(pk), config.name, str(replace(score, seconds=0.0, usage=None)))
        for pk in pks for config, score in store.scores.of_trace(pk)
    )  # fmt: skip


@pytest.mark.both_databases
def test_a_killed_worker_is_replaced(store: Store, queue_slow: Callable[..., Run], asked: Asked) -> None:
    queued = queue_slow(**TWO)
    parent = start_worker(store.url, queued.id)
    wait_for(lambda: len(set(asked.pids)) == 2, store, queued)
    assert parent not in asked.pids
    os.kill(asked.pids[-1], signal.SIGKILL)
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    counts = store.runs.get(queued.id).counts["slow"]
    assert (counts["scored"] + counts["reused"], counts["failed"]) == (TRACES, 0)
    assert len(set(asked.traces)) == TRACES
    # Both workers end when one is killed: each loses what it had not saved.
    assert len(asked.traces) - TRACES <= 2 * (SAVE_EVERY / PAUSE + FIRST_TASK)


def test_workers_end_with_a_killed_parent(store: Store, queue_slow: Callable[..., Run], asked: Asked) -> None:
    queued = queue_slow(**TWO)
    parent = start_worker(store.url, queued.id)
    wait_for(lambda: len(set(asked.pids)) == 2, store, queued)
    os.kill(parent, signal.SIGKILL)
    wait_for(lambda: not any(is_there(pid) for pid in set(asked.pids)), store, queued)
    assert free_dead(store) == [queued.id]
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    assert len(set(asked.traces)) == TRACES
    assert len(asked.traces) - TRACES <= 2 * (SAVE_EVERY / PAUSE + FIRST_TASK)


@pytest.mark.both_databases
def test_workers_stop_when_asked(store: Store, queue_slow: Callable[..., Run], asked: Asked) -> None:
    queued = queue_slow(**TWO)
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    store.runs.stop(queued.id, now=datetime.now(UTC))
    wait_for(lambda: store.runs.get(queued.id).status == "stopped", store, queued)
    wait_for(lambda: not is_starting(store.url, queued.id), store, queued)
    assert not any(is_there(pid) for pid in set(asked.pids))
    assert len(scores_of(store)) == len(asked.traces) < TRACES  # what was scored is kept, to the last score


def test_a_trace_that_kills_its_workers_fails_the_run(
    store: Store, queue_slow: Callable[..., Run], asked: Asked
) -> None:
    queued = queue_slow(lambda n: "kill" if n == 40 else f"Answer number {n}.", **TWO)
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).status == "failed", store, queued)
    assert "3 workers in turn died over the same" in str(store.runs.get(queued.id).error)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_workers_do_not_run_the_program_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType("__main__")
    program.__file__ = str(tmp_path / "program.py")
    Path(program.__file__).write_text("raise SystemExit('a script without a guard')")
    monkeypatch.setitem(sys.modules, "__main__", program)
    store.traces.add(many(300), labels_as=None, now=detect.utc_now())
    queued = detect.queue(store, LEXICAL[:1], {"all": True}, engine=EngineChoice("processes", 2))
    run = detect.work(store, run_id=queued.id)
    assert run is not None
    assert (run.status, run.done) == ("done", 300)
