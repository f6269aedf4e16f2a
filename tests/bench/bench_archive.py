"""Memory and time of `export --all`, `import --all`, `check` and `backup` at 200,000 traces: bounded, not growing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
TRACES = int(os.environ.get("TRACES", "200000"))
MOST_GROWTH = 250  # MB more than at a hundredth of the traces
# Runs one verb and says the most memory that the process had.
RUN = """
import json, resource, sys, time
from calibrate.cli import main
began = time.perf_counter()
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print("\\n" + json.dumps([code, peak, time.perf_counter() - began]))
"""


def fill(url: str, count: int) -> None:
    """Traces of about 2 kB with six shared sources, a score each, and labels of every twentieth."""
    from calibrate.types import Label, Record, Score, Source, Trace
    from db import open_store

    store, now = open_store(url), datetime.now(UTC)
    config = store.scores.config("token_overlap", "1", {}, "", now=now)
    for start in range(0, count, 5000):
        records, scores = [], []
        for n in range(start, min(start + 5000, count)):
            sources = tuple(Source(str(i), f"source {(n // 9) * 6 + i} " * 40) for i in range(6))
            answer = f"answer {n} " * 100
            trace = Trace(f"t{n}", answer, f"question {n}", sources=sources, timestamp=now - timedelta(seconds=n))
            label = (Label(trace.id, "", "clean"),) if n % 20 == 0 else ()
            records.append(Record(n, trace, label))
            scores.append((trace.content_hash(), Score(trace.id, n / 7)))
        store.traces.add(records, labels_as="gold", now=now)
        store.scores.save(config.id, scores, now=now)
    store.close()


def run(*words: str) -> tuple[float, float]:
    done = subprocess.run([sys.executable, "-c", RUN, *words], cwd=ROOT, capture_output=True, text=True)
    code, peak, seconds = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return peak, seconds


def main() -> int:
    peaks: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (TRACES // 100, TRACES):
            place = f"{folder}/{count}"
            fill(f"sqlite:///{place}.db", count)
            here, other = ("--store", f"sqlite:///{place}.db"), ("--store", f"sqlite:///{place}-again.db")
            for verb in (
                ("backup", f"{place}-backup.db", *here), ("check", *here), ("export", "--all", f"{place}.zip", *here),
                ("import", "--all", f"{place}.zip", *other),
            ):  # fmt: skip
                peak, seconds = run(*verb)
                peaks.setdefault(verb[0], []).append(peak)
                print(f"{verb[0]:7} {count:8,} traces: {seconds:6.1f} s, at most {peak:5.0f} MB", flush=True)
            sizes = [Path(f"{place}{ending}").stat().st_size / 1e6 for ending in (".db", ".zip")]
            print(f"store {sizes[0]:,.0f} MB, archive {sizes[1]:,.0f} MB", flush=True)
    growth = {verb: large - small for verb, (small, large) in peaks.items()}
    print("growth: " + ", ".join(f"{verb} {mb:.0f} MB" for verb, mb in growth.items()) + f" (aim: {MOST_GROWTH})")
    return int(max(growth.values()) > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
