"""One run by one process, by two worker processes, and on a Ray cluster of two nodes on this machine.

Lexical detectors score generated traces: worker processes must be 1.7 times as fast as one, and Ray at most 15% slower
than worker processes for the same run. The embedder scores a part of ragtruth_qa; one process computes embeddings on
every processor already, so it is also measured on one thread. In one run, each from a copy of the same store.
Run: python tests/bench/bench_engines.py [traces]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # nothing is remembered from another run
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.engines.choice import EngineChoice
from calibrate.ingest import Record, import_file
from calibrate.workflow.detection import detect
from db import Store, open_store
from tests.bench.bench_import import write
from tests.shared_data import load

LEXICAL, EMBEDDING = ["token_overlap", "rouge_l"], ["semantic_similarity"]
PART = 120  # traces for the embedder
SPEEDUP, EMBEDDING_SPEEDUP, RAY_OVERHEAD = 1.7, 1.5, 0.15


def seconds(url: str, names: list[str], engine: EngineChoice) -> float:
    """The wall time of a run over everything, its preparation included."""
    store = open_store(url)
    started = time.perf_counter()
    queued = detect.queue(store, names, {"all": True}, engine=engine)
    finished = detect.work(store, run_id=queued.id)
    took = time.perf_counter() - started
    assert finished is not None
    assert finished.status == "done", finished
    store.close()
    return took


def copy_of(folder: str, name: str) -> str:
    path = Path(folder) / "copy.db"
    path.write_bytes((Path(folder) / f"{name}.db").read_bytes())
    return f"sqlite:///{path}"


def fill(folder: str, traces: int) -> None:
    path = Path(folder) / "traces.jsonl"
    write(path, traces)
    lexical = open_store(f"sqlite:///{folder}/lexical.db")
    import_file(lexical.traces, path)
    embedding = open_store(f"sqlite:///{folder}/embedding.db")
    records = [Record(line, trace) for line, trace in enumerate(list(load("ragtruth_qa").traces)[:PART], 1)]
    embedding.traces.add(records, labels_as=None, now=detect.utc_now())
    for store in (lexical, embedding):
        settle(store)


def settle(store: Store) -> None:
    """Everything into the one file that is copied."""
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def two_nodes() -> Any:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    return cluster


def main(traces: int) -> int:
    cluster = two_nodes()
    engines = {
        "one process": EngineChoice("local"),
        "processes": EngineChoice("processes", 2),
        "ray": EngineChoice("ray", None, cluster.address),
    }
    took: dict[tuple[str, str], float] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            fill(folder, traces)
            for name, engine in engines.items():
                took["lexical", name] = seconds(copy_of(folder, "lexical"), LEXICAL, engine)
            os.environ["TOUCHSTONE_THREADS"] = "1"
            took["embedding", "one thread"] = in_new_process(copy_of(folder, "embedding"))
            del os.environ["TOUCHSTONE_THREADS"]
            took["embedding", "one process"] = in_new_process(copy_of(folder, "embedding"))
            for name in ("processes", "ray"):
                took["embedding", name] = seconds(copy_of(folder, "embedding"), EMBEDDING, engines[name])
    finally:
        cluster.shutdown()
    print(f"{traces:,} traces, {', '.join(LEXICAL)}; {PART} traces, {', '.join(EMBEDDING)}")
    for (kind, name), spent in took.items():
        baseline = took[kind, "one process" if kind == "lexical" else "one thread"]
        print(f"{kind:10s} {name:12s} {spent:7.1f} s  {baseline / spent:5.2f} x")
    overhead = took["lexical", "ray"] / took["lexical", "processes"] - 1
    print(f"ray over processes, lexical: {overhead:+.0%} (target at most {RAY_OVERHEAD:+.0%})")
    speedups = (
        took["lexical", "one process"] / took["lexical", "processes"] - SPEEDUP,
        took["embedding", "one thread"] / took["embedding", "processes"] - EMBEDDING_SPEEDUP,
    )
    return 0 if min(speedups) >= 0 and overhead <= RAY_OVERHEAD else 1


def in_new_process(url: str) -> float:
    """One process that has not loaded the model yet, as the workers have not."""
    import subprocess

    command = f"from tests.bench.bench_engines import *; print(seconds({url!r}, EMBEDDING, EngineChoice('local')))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
