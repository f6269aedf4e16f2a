"""What is scored is not scored again. Every detector that can run here, over a part of ragtruth_qa through the store:
a second run must be 200 times as fast as the first and call no model. Then one new trace among 10,000 scored ones,
against the same trace alone in a store: at most 1.5 times as long.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # nothing is remembered from another run
sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.backends.embedding.model import Embedder, embedder
from calibrate.ingest import Record
from calibrate.types import Trace
from calibrate.workflow.detection import detect
from db import Store, open_store
from tests.shared_data import load

PART = 120
MANY = 10_000
ROUNDS = 7
LIGHT = ["token_overlap", "rouge_l", "bleu", "citation_validity"]


def filled(folder: str, name: str, traces: list[Trace]) -> Store:
    store = open_store(f"sqlite:///{folder}/{name}.db")
    for start in range(0, len(traces), 1000):
        some = [Record(line, trace) for line, trace in enumerate(traces[start : start + 1000], 1)]
        store.traces.add(some, labels_as=None, now=detect.utc_now())
    return store


def seconds(store: Store, names: list[str]) -> float:
    start = time.perf_counter()
    queued = detect.queue(store, names, detect.scope_of(everything=True))
    finished = detect.work(store, run_id=queued.id)
    assert finished is not None
    assert finished.status == "done"
    return time.perf_counter() - start


def main() -> dict[str, float]:
    given = list(load("ragtruth_qa").traces)
    calls: list[int] = []
    forward = Embedder._batches
    Embedder._batches = lambda self, texts, *outputs: (calls.append(len(texts)), forward(self, texts, *outputs))[1]  # type: ignore[method-assign, func-returns-value, assignment]
    embedder().encode(["load the model before the clock starts"])
    with tempfile.TemporaryDirectory() as folder:
        store = filled(folder, "some", given[:PART])
        first = seconds(store, ["all"])
        embedder().forget()
        calls.clear()
        second = min(seconds(store, ["all"]) for _ in range(3))
        print(
            f"everything on {PART} traces: {first:.1f} s, again {second * 1000:.0f} ms: {first / second:.0f} x; "
            f"{len(calls)} model calls"
        )
        assert not calls
        copies = [replace(given[i % len(given)], id=f"c{i}", question=f"Question {i}?") for i in range(MANY + ROUNDS)]
        many = filled(folder, "many", copies[:MANY])
        seconds(many, LIGHT)
        took: list[tuple[float, float]] = []
        for copy in copies[MANY:]:
            alone = filled(folder, f"alone {copy.id}", [copy])
            many.traces.add([Record(1, copy)], labels_as=None, now=detect.utc_now())
            took.append((seconds(many, LIGHT), seconds(alone, LIGHT)))
        among, single = (statistics.median(column) for column in zip(*took, strict=True))
        print(
            f"one new trace: {single * 1000:.0f} ms alone, {among * 1000:.0f} ms among {MANY:,} ({', '.join(LIGHT)}): "
            f"{among / single:.2f} x"
        )
    return {"first": first, "second": second, "ratio": first / second, "alone": single, "among": among}


if __name__ == "__main__":
    found = main()
    if found["ratio"] < 200:
        raise SystemExit("less than 200 times as fast")
    if found["among"] > 1.5 * found["alone"]:
        raise SystemExit("one new trace among many costs more than 1.5 times one alone")
