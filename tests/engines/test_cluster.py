"""A real Ray cluster of two nodes: the scores of one process, and nothing lost when parts of it are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.engines.background import start_worker
from calibrate.engines.choice import EngineChoice
from calibrate.engines.parallel import FIRST_TASK
from calibrate.engines.run import SAVE_EVERY
from calibrate.errors import BadInput, TouchstoneError
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.detect import free_dead
from db import Store, open_store
from db.runs import Run
from tests.engines.conftest import PAUSE, TRACES, Asked, install_slow, wait_for
from tests.engines.test_processes import LEXICAL, is_there, many, scores_of

pytest.importorskip("ray")
AGAIN = 2 * (SAVE_EVERY / PAUSE + FIRST_TASK)  # scores that two killed workers had not saved


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Asked]]:
    """A cluster whose workers find the slow detector, and what that was asked."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as monkeypatch:
        asked = install_slow(tmp_path_factory.mktemp("cluster"), monkeypatch)
        monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        yield cluster, asked
        cluster.shutdown()


@pytest.fixture
def cluster(nodes: tuple[Any, Asked]) -> Any:
    """Two nodes of one processor each."""
    if len(nodes[0].list_all_nodes()) < 2:
        nodes[0].add_node(num_cpus=1)
    return nodes[0]


@pytest.fixture
def asked(nodes: tuple[Any, Asked]) -> Asked:
    nodes[1].path.unlink(missing_ok=True)
    return nodes[1]


def on(cluster: Any) -> dict[str, str]:
    return {"engine": "ray", "address": cluster.address}


@pytest.mark.both_databases
def test_two_nodes_score_what_one_process_scores(store: Store, cluster: Any, tmp_path: Path) -> None:
    one = open_store(f"sqlite:///{tmp_path}/one.db")
    for place, engine in ((one, EngineChoice("local")), (store, EngineChoice("ray", None, cluster.address))):
        place.traces.add(many(700), labels_as=None, now=detect.utc_now())
        queued = detect.queue(place, LEXICAL, {"all": True}, engine=engine)
        run = detect.work(place, run_id=queued.id)
        assert run is not None
        assert (run.status, run.done, run.error) == ("done", 700 * len(LEXICAL), None)
    assert scores_of(store) == scores_of(one)
    one.close()


def test_a_killed_node_is_done_without(
    store: Store, queue_slow: Callable[..., Run], cluster: Any, asked: Asked
) -> None:
    queued = queue_slow(**on(cluster))
    start_worker(store.url, queued.id)
    wait_for(lambda: len(set(asked.pids)) == 2, store, queued)
    cluster.remove_node(cluster.list_all_nodes()[1], allow_graceful=False)
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    counts = store.runs.get(queued.id).counts["slow"]
    assert (counts["scored"] + counts["reused"], counts["failed"]) == (TRACES, 0)
    assert len(set(asked.traces)) == TRACES
    assert len(asked.traces) - TRACES <= AGAIN


def test_a_killed_worker_is_replaced_and_a_killed_driver_resumed(
    store: Store, queue_slow: Callable[..., Run], cluster: Any, asked: Asked
) -> None:
    queued = queue_slow(traces=5 * TRACES, **on(cluster))  # long enough to start another worker
    driver = start_worker(store.url, queued.id)
    wait_for(lambda: len(set(asked.pids)) == 2, store, queued)
    os.kill(asked.pids[-1], signal.SIGKILL)
    wait_for(lambda: len(set(asked.pids)) == 3, store, queued)
    os.kill(driver, signal.SIGKILL)
    wait_for(lambda: not any(is_there(pid) for pid in set(asked.pids)), store, queued)
    assert free_dead(store) == [queued.id]
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).status == "done", store, queued)
    assert len(set(asked.traces)) == 5 * TRACES
    assert len(asked.traces) - 5 * TRACES <= 2 * AGAIN


def test_stop_reaches_the_nodes(store: Store, queue_slow: Callable[..., Run], cluster: Any, asked: Asked) -> None:
    queued = queue_slow(**on(cluster))
    start_worker(store.url, queued.id)
    wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
    store.runs.stop(queued.id, now=datetime.now(UTC))
    wait_for(lambda: store.runs.get(queued.id).status == "stopped", store, queued)
    assert len(scores_of(store)) == len(asked.traces) < TRACES


def test_a_driver_that_is_told_to_end_stops_its_run(
    store: Store, queue_slow: Callable[..., Run], cluster: Any, asked: Asked
) -> None:
    """Ray has a handler of SIGTERM of its own, which ends a process at once."""
    queued = queue_slow(traces=5 * TRACES, **on(cluster))
    command = [sys.executable, "-m", "calibrate", "worker", "--run", str(queued.id), "--store", store.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
        wait_for(lambda: store.runs.get(queued.id).done > 0, store, queued)
        driver.send_signal(signal.SIGTERM)
        _, said = driver.communicate(timeout=60)
    assert driver.returncode == 128 + signal.SIGTERM
    assert f"run {queued.id}: " in said
    assert store.runs.get(queued.id).status == "stopped"


def test_what_the_cluster_cannot_do_is_said(
    store: Store, queue_slow: Callable[..., Run], cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrate.engines.cluster import RayPool
    from calibrate.engines.parallel import Resources

    options = {"address": cluster.address, "workers": None}
    with pytest.raises(BadInput, match="a detector needs a GPU"):
        RayPool(lambda: dict, resources=Resources(needs_gpu=True), needs_one_machine=False, **options)
    other = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.2")
    with pytest.raises(BadInput, match="an SQLite file on one machine, and the Ray cluster has 2 machines"):
        RayPool(lambda: dict, resources=Resources(), needs_one_machine=True, **options)
    cluster.remove_node(other)
    monkeypatch.setattr("calibrate.engines.cluster.PATIENCE", 1.0)
    pool = RayPool(lambda: dict, resources=Resources(memory=10**14), needs_one_machine=False, **options)
    time.sleep(1.1)
    with pytest.raises(TouchstoneError, match=r"no worker could be started .* each asks for 1 CPU, 100000 GB"):
        pool.wait(0.1)
    pool.close()


def test_no_cluster_there_is_a_sentence() -> None:
    from calibrate.engines.cluster import RayPool
    from calibrate.engines.parallel import Resources

    with pytest.raises(TouchstoneError, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
        RayPool(lambda: dict, address="127.0.0.1:9", workers=1, resources=Resources(), needs_one_machine=False)
