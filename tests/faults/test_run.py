"""The harness of `make faults`: it finds what is wrong where something is, and a few kills of each kind."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.killing import Say, forked
from tests.faults.run import WORKS
from tests.faults.subjects.base import STORE, Found, Row, Work, ask
from tests.faults.subjects.bringing_in import Migration
from tests.faults.subjects.killed import kill_at_random
from tests.faults.subjects.receiving import receiving

STEPS = 30


class Counting(Work):
    """Counts to 30, a row at a time: the way it should be, or with a fault of its own."""

    name = "counting"

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def prepare(self, folder: Path) -> None:
        with closing(sqlite3.connect(folder / STORE)) as connection:
            connection.execute("CREATE TABLE numbers (number INTEGER)")
            connection.execute("CREATE TABLE halves (number INTEGER)")

    def work(self, folder: Path, say: Say) -> None:
        with closing(sqlite3.connect(folder / STORE, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")  # what is killed is the process, not the machine
            ((done,),) = connection.execute("SELECT count(*) FROM numbers").fetchall()
            if self.fault == "doubles" and done:
                done -= 1  # to be on the safe side
            for number in range(done, STEPS):
                if self.fault == "says too early":
                    say(str(number))
                    time.sleep(0.005)
                if self.fault != "half steps":
                    connection.execute("BEGIN")
                connection.execute("INSERT INTO numbers VALUES (?)", (number,))
                time.sleep(0.005)
                connection.execute("INSERT INTO halves VALUES (?)", (number,))
                if self.fault != "half steps":
                    connection.execute("COMMIT")
                if self.fault != "says too early":
                    say(str(number))

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        kept = {str(number) for (number,) in ask(folder / STORE, "SELECT number FROM numbers")}
        return Found(lost=len(set(said) - kept))


@pytest.mark.parametrize("fault", ["", "says too early", "doubles", "half steps"])
def test_what_is_wrong_is_found(tmp_path: Path, fault: str) -> None:
    row = kill_at_random(Counting(fault), tmp_path / "x", kills=8, seed=1)
    assert row.tries == 8
    if not fault:
        assert (row.survived, row.lost, row.doubled, row.problems) == (8, 0, 0, [])
    else:
        assert row.survived < 8
        assert row.problems or fault == "says too early"
        assert bool(row.lost) == (fault != "doubles")
        assert bool(row.doubled) == (fault == "doubles")


def test_what_a_process_said_before_its_death_is_heard_and_its_children_die_with_it(tmp_path: Path) -> None:
    import subprocess

    def work(say: Say) -> None:
        subprocess.Popen(["sh", "-c", f"sleep 1; touch {tmp_path}/late"])
        for number in range(10**6):
            say(str(number))
            (tmp_path / "latest").write_text(str(number))

    killed = forked(work, 0.3)
    assert not killed.ended
    assert killed.said == [str(number) for number in range(len(killed.said))]
    latest = (tmp_path / "latest").read_text()
    assert not latest or int(latest) <= len(killed.said) - 1
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


@pytest.fixture(scope="module")
def webhook() -> Iterator[None]:
    with receiving():
        yield


# A worker process takes seconds to start: tests/engines kills one.
@pytest.mark.parametrize("kind", [kind for kind in WORKS if not kind.slow_start], ids=lambda kind: kind.name)
def test_a_few_kills_lose_nothing(kind: type[Work], tmp_path: Path, webhook: None) -> None:
    work = kind()
    work.size = max(3, work.size // 4)
    if isinstance(work, Migration):
        work.step = 5
    row: Row = kill_at_random(work, tmp_path / "x", kills=2, seed=int(time.time()))
    assert (row.lost, row.doubled, row.problems) == (0, 0, [])
    assert row.tries == row.survived == 2
