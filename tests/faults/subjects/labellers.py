"""Many labellers at once, each with a second between two labels: how long a label takes, and whether all are kept."""

from __future__ import annotations

import os
import random
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from db import open_store
from tests.faults.killing import forked
from tests.faults.subjects.base import STORE, Found, Row, ask, url_of
from tests.faults.subjects.bringing_in import compare_labels, fill, keep_sample
from tests.faults.subjects.labelling import Labeller
from tests.faults.subjects.postgres import kept_by, postgres

LIMIT = 0.5  # seconds that 95 of 100 labels may take
POOL = 2_000


def on_sqlite(folder: Path, seed: int, labels: int) -> Row:
    folder.mkdir(parents=True, exist_ok=True)
    return together(url_of(folder), folder, 20, labels, "SQLite")


def on_postgres(folder: Path, seed: int, labels: int) -> Row:
    folder.mkdir(parents=True, exist_ok=True)
    with postgres(folder / "server") as server:
        if server is None:
            return Row("50 labellers on PostgreSQL", note="not run: no PostgreSQL here")
        return together(server.database(), folder, 50, labels, "PostgreSQL")


def together(url: str, folder: Path, labellers: int, labels: int, kind: str) -> Row:
    """A process each. Their first labels are spread over a second; a pause is a second from the end of a label on."""
    row = Row(f"{labellers} labellers on {kind}")
    started = time.monotonic()
    prepared = forked(lambda say: _prepare(url), log=folder / "log")
    assert prepared.ended, prepared
    begin = time.monotonic() + labellers * 0.1 + 1
    files = [folder / f"{number}.txt" for number in range(labellers)]
    processes = [_start(url, number, begin, labels, files[number]) for number in range(labellers)]
    loads = [os.getloadavg()[0]]
    for process in processes:
        os.waitpid(process, 0)
        loads.append(os.getloadavg()[0])
    seconds: list[float] = []
    found = Found()
    for number, file in enumerate(files):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("!")]
        found.problems += [line for line in file.read_text().splitlines() if line.startswith("!")]
        seconds += [float(line.rsplit(" ", 1)[1]) for line in lines]
        said = [line.rsplit(" ", 1)[0] for line in lines]
        found += compare_labels(_kept(url, folder, f"labeller {number}"), said)
    seconds.sort()
    late = seconds[int(0.95 * len(seconds))] if seconds else float("inf")
    row.tries, row.lost, row.doubled, row.problems = labellers * labels, found.lost, found.doubled, found.problems
    row.survived = len(seconds)
    if late > LIMIT:
        row.problems.append(f"95 of 100 labels took up to {late * 1000:.0f} ms; the aim is {LIMIT * 1000:.0f} ms")
    row.note = (
        f"a label takes {seconds[len(seconds) // 2] * 1000:.0f} ms, 95% at most {late * 1000:.0f} ms, "
        f"the slowest {seconds[-1] * 1000:.0f} ms; load {max(loads):.1f}"
    )
    row.seconds = time.monotonic() - started
    return row


def _prepare(url: str) -> None:
    with closing(open_store(url)) as store:
        fill(store, POOL)
        keep_sample(store, POOL, POOL)


def _start(url: str, number: int, begin: float, labels: int, file: Path) -> int:
    process = os.fork()
    if process == 0:
        with file.open("w", buffering=1) as output:
            try:
                _label(url, number, begin, labels, output)
            except BaseException as error:
                output.write(f"!{type(error).__name__}: {' '.join(str(error).split())[:300]}\n")
            finally:
                output.flush()
                os._exit(0)
    return process


def _label(url: str, number: int, begin: float, labels: int, output: Any) -> None:
    with closing(open_store(url)) as store:
        at_work = Labeller(store, f"labeller {number}")
        time.sleep(max(0.0, begin - time.monotonic()) + random.Random(number).random())
        for _ in range(labels):
            pk = at_work.next()
            assert pk is not None
            time.sleep(1.0)
            started = time.monotonic()
            verdict = at_work.answer(pk)
            output.write(f"{pk} {verdict} {time.monotonic() - started}\n")


def _kept(url: str, folder: Path, labeller: str) -> list[str]:
    if not url.startswith("sqlite"):
        return kept_by(url, labeller)
    query = f"SELECT trace_pk || ' ' || verdict FROM labels WHERE labeller = '{labeller}' ORDER BY id"
    return [str(kept) for (kept,) in ask(folder / STORE, query)]


assert sys.platform != "win32"
