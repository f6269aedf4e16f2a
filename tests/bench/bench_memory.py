"""Memory of a run, in a process of its own: 100,000 traces through the lexical detectors, and 4,000 through those on
the embedding model. The peak must stay below 2.5 GB and, once what is remembered of texts has reached its bounds, not
grow with the number of traces (less than 100 MB in the second half).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

os.environ["TOUCHSTONE_CACHE_MB"] = "0"
sys.path.insert(0, str(Path(__file__).parents[2]))

RUNS = {
    "token_overlap,rouge_l,bleu,word_overlap,citation_validity": 100_000,
    "semantic_similarity,citation_grounding": 4_000,
}
STOCK = ("the", "cat", "of", "a", "river", "town", "keeps", "its", "old", "copper", "bell", "near", "warm", "stone")
LIMIT_MB, GROWTH_MB = 2_500, 100


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(names: str, count: int) -> None:
    """Prints the peak and the growth, in MB."""
    from calibrate.engines.run import Tally
    from calibrate.ingest import Record
    from calibrate.types import Source, Trace
    from calibrate.workflow.detection import detect
    from db import open_store
    from db.runs import Runs

    seen: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/traces.db")
        for start in range(0, count, 2000):
            records = []
            for i in range(start, start + 2000):  # six answers share a source
                answer = " ".join(STOCK[(i * 7 + j * 3) % len(STOCK)] for j in range(12))
                source = " ".join(STOCK[(i // 6 + j) % len(STOCK)] for j in range(30))
                trace = Trace(f"t{i}", f"{answer} {i} [1].", sources=(Source("1", f"{source} {i // 6}."),))
                records.append(Record(i + 1, trace))
            store.traces.add(records, labels_as=None, now=detect.utc_now())
        progress = Runs.progress

        def watched(self: Runs, *args: object, done: int, counts: Mapping[str, Tally], **rest: object) -> bool:
            seen.append((done, resident_mb()))
            return progress(self, *args, done=done, counts=counts, **rest)  # type: ignore[arg-type]

        Runs.progress = watched  # type: ignore[method-assign, assignment]
        queued = detect.queue(store, names.split(","), detect.scope_of(everything=True))
        assert detect.work(store, run_id=queued.id) is not None
        store.close()
    total = seen[-1][0]
    early = max(mb for done, mb in seen if done <= total / 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"{names}: {count:,} traces, peak {peak:.0f} MB, {max(mb for _, mb in seen) - early:+.0f} MB after half of them"
    )
    if peak > LIMIT_MB or max(mb for _, mb in seen) - early > GROWTH_MB:
        raise SystemExit("too much memory")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        for names, count in RUNS.items():
            subprocess.run([sys.executable, __file__, names, str(count)], check=True)
