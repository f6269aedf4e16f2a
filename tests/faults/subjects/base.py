"""A work that is interrupted, and what is found afterwards."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tests.faults.killing import Say

STORE = "touchstone.db"
# Columns that differ between two runs that did the same: times, and what is drawn at random to tell states apart.
PASSING = ("_at", "seconds", "stamp", "worker")
OF_AUDIT = {"audit.at", "audit.before", "audit.after"}
Rows = Counter[tuple[Any, ...]]


@dataclass
class Found:
    """What was wrong after a fault: how much was lost, how much is there twice, and anything else, in words."""

    lost: int = 0
    doubled: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.problems)

    def __iadd__(self, other: Found) -> Found:
        self.lost += other.lost
        self.doubled += other.doubled
        self.problems += other.problems
        return self


@dataclass
class Row:
    """A line of the table. What survived is sound, and after the work was taken up again equal to one that was not
    interrupted."""

    subject: str
    tries: int = 0
    survived: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    note: str = ""

    def count(self, found: Found, name: str = "") -> None:
        self.tries += 1
        self.survived += found.clean
        self.lost += found.lost
        self.doubled += found.doubled
        self.problems += [f"{name}{problem}" for problem in found.problems]


class Work:
    """Something that a process does in a folder, and that can be taken up again after it was interrupted."""

    name: ClassVar[str]
    share: ClassVar[float] = 1.0  # of the kills that an ordinary work gets
    slow_start: ClassVar[bool] = False
    size: int = 0  # traces, labels or releases

    def prepare(self, folder: Path) -> None:
        """Fill the folder that every try begins with."""
        raise NotImplementedError

    def work(self, folder: Path, say: Say) -> None:
        """Do what is left to do, and say of each thing that it is done, after it is."""
        raise NotImplementedError

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        """Compare what is there with what was said, before the work is taken up again."""
        raise NotImplementedError

    def mend(self, folder: Path) -> None:
        """What the documentation tells a person to do before it is taken up again."""

    def result(self, folder: Path) -> Rows:
        """What is there in the end, for the comparison with a work that was not interrupted."""
        return content(folder / STORE)

    def stores(self, folder: Path) -> list[Path]:
        return [folder / STORE]


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / STORE}"


def content(path: Path, *, ignoring: frozenset[str] = frozenset()) -> Rows:
    """Every row of every table, without times, and without the tables and columns that are to be ignored."""
    rows: Rows = Counter()
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for name in names:
            columns = [column for _, column, *_ in connection.execute(f'PRAGMA table_info("{name}")')]
            kept = [
                column
                for column in columns
                if not column.endswith(PASSING) and f"{name}.{column}" not in ignoring | OF_AUDIT
            ]
            if kept and name != "revisions" and name not in ignoring:
                query = f'SELECT {", ".join(map(_quoted, kept))} FROM "{name}"'
                rows.update((name, *row) for row in connection.execute(query))
    return rows


def ask(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query answers, read by the driver alone."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def check_sound(path: Path) -> Found:
    """SQLite's own checks of the file, and of every reference from one table to another."""
    if not path.exists():
        return Found(problems=[f"{path.name} is gone"])
    found = Found()
    try:
        if (answer := ask(path, "PRAGMA integrity_check")) != [("ok",)]:
            found.problems.append(f"{path.name} is damaged: {answer[0][0]}")
        if orphans := ask(path, "PRAGMA foreign_key_check"):
            found.problems.append(f"{path.name} has {len(orphans)} rows that refer to nothing, of {orphans[0][0]}")
    except sqlite3.DatabaseError as error:
        found.problems.append(f"{path.name} cannot be read: {error}")
    return found


def compare(rows: Rows, truth: Rows) -> Found:
    """What is missing from what an uninterrupted work leaves (lost), and what is there beyond it (doubled)."""
    missing, surplus = truth - rows, rows - truth
    found = Found(missing.total(), surplus.total())
    if missing or surplus:
        tables = sorted({str(row[0]) for row in (missing | surplus)})
        example = next(iter(missing or surplus))
        found.problems.append(
            f"not as without the fault: {missing.total()} rows missing, {surplus.total()} too many, in "
            f"{', '.join(tables)}: {str(example)[:200]}"
        )
    return found


def _quoted(name: str) -> str:
    return f'"{name}"'
