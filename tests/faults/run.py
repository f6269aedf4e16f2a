"""Break things while they work, and count what is lost: kills, full disks, damaged stores, servers that go away.

    make faults                                     all of it, about half an hour on two cores
    python -m tests.faults.run --kills 40           fewer kills
    python -m tests.faults.run --only "label"       the subjects whose name begins so
    python -m tests.faults.run --list

What a work acknowledged (printed and flushed before the fault) must be there afterwards, once; the store must be sound;
and when the work is taken up again, the store must equal that of a work that was not interrupted.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from calibrate.report.numbers import count
from tests.faults.subjects import labellers, postgres, stores
from tests.faults.subjects.base import Row, Work
from tests.faults.subjects.bringing_in import Import, Labelling, Migration
from tests.faults.subjects.deciding import Detect, Releasing, Watching, Worker
from tests.faults.subjects.full_disk import run_full
from tests.faults.subjects.keeping import ArchiveIn, ArchiveOut, Backup, Purge, Restore
from tests.faults.subjects.killed import kill_at_random
from tests.faults.subjects.receiving import receiving

WORKS: tuple[type[Work], ...] = (
    Import, Labelling, Detect, Worker, Releasing, Migration, Watching, ArchiveOut, ArchiveIn, Backup,
    Restore, Purge,
)  # fmt: skip
ON_A_FULL_DISK: tuple[type[Work], ...] = (Import, Labelling, Detect, Releasing, Watching, ArchiveIn, Backup)
KILLS, FULL = 240, 6
Subject = Callable[[Path], Row]


def subjects(kills: int, seed: int) -> dict[str, Subject]:
    """Every subject by its name: what runs it in a folder of its own."""
    found: dict[str, Subject] = {}
    shares = sum(work.share for work in WORKS)
    for kind in WORKS:
        tries = max(1, round(kills * kind.share / shares))
        found[f"{kind.name}, killed"] = partial(kill_at_random, kind(), kills=tries, seed=seed)
    for kind in ON_A_FULL_DISK:
        found[f"{kind.name}, full disk"] = partial(run_full, kind(), tries=FULL, seed=seed)
    found["a store that may not be written"] = partial(stores.read_only, seed=seed)
    found["a locked store"] = partial(stores.locked, seed=seed, tries=8)
    found["a store deleted or replaced"] = partial(stores.replaced, seed=seed, tries=12)
    found["a damaged store"] = partial(stores.damaged, seed=seed, tries=45)
    found["PostgreSQL restarted"] = partial(postgres.restarted, seed=seed, tries=12)
    found["20 labellers on SQLite"] = partial(labellers.on_sqlite, seed=seed, labels=40)
    found["50 labellers on PostgreSQL"] = partial(labellers.on_postgres, seed=seed, labels=40)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS, help=f"in all; default {KILLS}")
    parser.add_argument("--only", action="append", metavar="SUBJECT", help="the subjects whose name begins so")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--list", action="store_true", help="the names of the subjects")
    args = parser.parse_args(argv)
    every = subjects(args.kills, args.seed)
    chosen = {name: run for name, run in every.items() if not args.only or name.startswith(tuple(args.only))}
    if args.list or not chosen:
        print("\n".join(every), file=sys.stdout if args.list else sys.stderr)
        return 0 if args.list else 2
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rows = []
    with tempfile.TemporaryDirectory(prefix="touchstone-faults-") as folder, receiving():
        for place, (name, run) in enumerate(chosen.items()):
            print(f"{name} …", end=" ", file=sys.stderr, flush=True)
            row = run(Path(folder) / str(place))
            print(f"{row.survived} of {row.tries}, {row.seconds:.0f} s", file=sys.stderr, flush=True)
            rows.append(row)
            for problem in row.problems:
                print(f"  {problem}", file=sys.stderr, flush=True)
    print(json.dumps([asdict(row) for row in rows], indent=1) if args.json else table(rows))
    return int(any(row.problems or row.survived < row.tries for row in rows))


def table(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    lines = ["| subject | tries | survived | lost | doubled | seconds | |", "|---|--:|--:|--:|--:|--:|---|"]
    for row in rows:
        figures = (row.tries, row.survived, row.lost, row.doubled, round(row.seconds))
        lines.append(f"| {row.subject} | {' | '.join(map(count, figures))} | {row.note} |")
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return "\n".join([*lines, "", f"{os.cpu_count()} cores; load average at the end {load}"])


if __name__ == "__main__":
    sys.exit(main())
