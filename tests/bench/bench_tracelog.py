"""`TraceLog.append` beside the standard library's `QueueHandler`, which a service that logs its answers would use.

One answer of 5 kB with three sources, into SQLite: while the database answers, and while somebody holds its lock. The
thread that writes has a part of the processor in both. At the median no slower than the baseline; the 95th percentile
of a database that stands still below 1 ms.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from calibrate.runtime import TraceLog
from db import open_store

ANSWERS, PAUSE, MOST_FROZEN = 6_000, 0.0005, 1e-3
FIELDS = {"question": "How long is the warranty?", "model": "m-1", "sources": ["Covered for 24 months. " * 70] * 3}
ANSWER = "It is covered for two years [1]. " * 8


class ToFile(logging.Handler):
    """What the thread of the baseline does with a record: it writes the same JSON to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("w")

    def emit(self, record: logging.LogRecord) -> None:
        self._file.write(json.dumps(record.answer) + "\n")  # type: ignore[attr-defined]


def measure(append: Callable[[int], object]) -> list[float]:
    """Seconds of each call, two thousand a second."""
    seconds = []
    for number in range(ANSWERS):
        began = time.perf_counter()
        append(number)
        seconds.append(time.perf_counter() - began)
        time.sleep(PAUSE)
    return seconds


def by_queue_handler(folder: Path) -> list[float]:
    waiting: queue.Queue[logging.LogRecord] = queue.Queue(-1)
    listener = QueueListener(waiting, ToFile(folder / "answers.jsonl"))
    logger = logging.getLogger("bench")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(QueueHandler(waiting))
    listener.start()
    seconds = measure(lambda n: logger.info("answered", extra={"answer": {"answer": ANSWER, "n": n, **FIELDS}}))
    listener.stop()
    return seconds


def line(name: str, seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=100)
    return f"{name}: p50 {median(seconds) * 1e6:.1f} µs, p95 {cuts[94] * 1e6:.1f} µs, p99 {cuts[98] * 1e6:.1f} µs"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder, url = Path(name), f"sqlite:///{name}/store.db"
        baseline = by_queue_handler(folder)
        with closing(open_store(url)) as store:
            log = TraceLog(url, every=0.2)
            running = measure(lambda n: log.append(ANSWER, trace_id=f"a{n}", **FIELDS))  # type: ignore[arg-type]
            log.flush(30)
            with store.engine.connect() as connection:
                connection.exec_driver_sql("ROLLBACK")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                frozen = measure(lambda n: log.append(ANSWER, trace_id=f"b{n}", **FIELDS))  # type: ignore[arg-type]
                connection.exec_driver_sql("ROLLBACK")
            log.flush(60)
            counters, rows = log.counters, store.logged.count()
            log.close()
    for what, seconds in (("QueueHandler", baseline), ("TraceLog", running), ("database stands still", frozen)):
        print(line(what, seconds))
    ratio = median(running) / median(baseline)
    print(f"at the median {ratio:.2f} times the baseline, target at most 1")
    print(f"{counters.written:,} written, {counters.dropped:,} dropped, {rows:,} rows of {2 * ANSWERS:,} answers")
    lost = counters.written + counters.dropped != 2 * ANSWERS or rows != counters.written
    return int(ratio > 1 or quantiles(frozen, n=100)[94] > MOST_FROZEN or lost)


if __name__ == "__main__":
    sys.exit(main())
