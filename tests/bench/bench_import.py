"""Import of 100,000 traces (5 sources each, six answers a source set) against a bare SQLAlchemy Core executemany.

Both write the same rows into an empty store on SQLite, in one run. Also prints how much the importing process grew.
Run: python tests/bench/bench_import.py [traces]
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from sqlalchemy import insert, select

from calibrate.ingest import import_file
from db import open_store
from db.engine import writing
from db.tables import SourceRow, TextRow, TraceRow, table

TARGET, GROWTH_MB = 0.4, 150
TEXT = "the delivery of a parcel may take up to three days when ordered before noon from our main warehouse"
WORDS = TEXT.split(" ")


def prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def write(path: Path, count: int) -> None:
    rng = random.Random(1)
    with path.open("w") as file:
        for number in range(count):
            if number % 6 == 0:
                sources = {str(i): prose(rng, 80) + f" {number}-{i}" for i in range(1, 6)}
            record = {
                "trace_id": f"trace-{number}",
                "timestamp": f"2026-11-{1 + number % 20:02d}T10:{number % 60:02d}:00Z",
                "model": f"model-{number % 3}",
                "operation": "rag_qa",
                "question": prose(rng, 15),
                "answer": prose(rng, 60),
                "sources": sources,
                "source_id": f"set-{number // 6}",
            }
            file.write(json.dumps(record) + "\n")


def main(count: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        write(path, count)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ours = open_store(f"sqlite:///{folder}/ours.db")
        began = time.perf_counter()
        report = import_file(ours.traces, path)
        our_seconds = time.perf_counter() - began
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert report.imported == count

        rows: dict[Any, list[dict[str, Any]]] = {}
        with ours.engine.connect() as connection:
            for row in (TextRow, TraceRow, SourceRow):
                rows[row] = [dict(one) for one in connection.execute(select(table(row))).mappings()]
        bare = open_store(f"sqlite:///{folder}/bare.db")
        began = time.perf_counter()
        with writing(bare.engine) as connection:
            for row, given in rows.items():
                connection.execute(insert(table(row)), given)
        bare_seconds = time.perf_counter() - began
    ratio = bare_seconds / our_seconds
    print(f"{count:,} traces, {path.name}: import {our_seconds:.1f} s, bare executemany {bare_seconds:.1f} s")
    print(f"rate against the baseline: {ratio:.2f} x (target {TARGET} x)  memory grew {growth:.0f} MB (< {GROWTH_MB})")
    return 0 if ratio >= TARGET and growth < GROWTH_MB else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
