"""Kill a work at a random moment, look at what is left, take it up again, and compare with one that was not killed."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.faults.killing import Forked, forked
from tests.faults.subjects.base import Found, Row, Rows, Work, check_sound, compare

MOST_MISSES = 25  # a work may end before the kill so often in a row


class Bench:
    """A work, the folder that every try of it begins with, and what an uninterrupted one leaves and takes."""

    def __init__(self, work: Work, folder: Path) -> None:
        self.work, self.folder = work, folder
        self.template = folder / "template"
        self.template.mkdir(parents=True)
        self._in_child(lambda: work.prepare(self.template))
        place = self.fresh("whole")
        whole = self.run(place)
        if whole.raw or whole.error or not whole.ended:
            raise RuntimeError(f"{work.name} does not even work by itself: {whole.raw or whole.error}")
        self.truth: Rows = work.result(place)
        self.size = size_of(place) - size_of(self.template)
        shutil.rmtree(place)
        # Timed anew: by now everything is in memory that the work needs, as it will be in the tries.
        self.seconds = self.run(self.fresh("again")).seconds
        shutil.rmtree(self.folder / "again")

    def fresh(self, name: str) -> Path:
        """A copy of the template."""
        place = self.folder / name
        shutil.copytree(self.template, place, symlinks=True)
        return place

    def run(self, place: Path, after: float | None = None) -> Forked:
        work = partial(self.work.work, place)
        return forked(work, after, log=self.folder / "log", slow_start=self.work.slow_start)

    def settle(self, place: Path, said: Sequence[str]) -> Found:
        """Look at what a fault left, take the work up again, and compare what it leaves in the end."""
        found = Found()
        for path in self.work.stores(place):
            found += check_sound(path)
        if found.problems:
            return found
        found += self.work.check(place, said)
        self.work.mend(place)
        hours_later(place)
        rest = self.run(place)
        if rest.raw or rest.error or not rest.ended:
            found.problems.append(f"it could not be taken up again: {rest.raw or rest.error}")
            return found
        for path in self.work.stores(place):
            found += check_sound(path)
        found += compare(self.work.result(place), self.truth)
        if litter := [path.name for path in place.rglob("*.tmp*")]:
            found.problems.append(f"temporary files stay for good: {', '.join(litter)}")
        return found

    def _in_child(self, call: Callable[[], object]) -> None:
        """So that this process has no store open, and no thread of one, when it forks."""
        outcome = forked(lambda say: call(), None, log=self.folder / "log")
        if outcome.raw or outcome.error:
            raise RuntimeError(f"{self.work.name} cannot be prepared: {outcome.raw or outcome.error}")


def kill_at_random(work: Work, folder: Path, kills: int, seed: int) -> Row:
    """`kills` tries, each with one kill at a moment that is uniform over an uninterrupted run."""
    row = Row(f"{work.name}, killed")
    started = time.monotonic()
    bench = Bench(work, folder)
    rng = random.Random(f"{seed} {work.name}")
    misses = 0
    while row.tries < kills and misses < MOST_MISSES:
        place = bench.fresh(f"try-{row.tries}")
        killed = bench.run(place, rng.uniform(0, bench.seconds))
        if killed.raw or killed.error:
            row.count(Found(problems=[f"before the kill: {killed.raw or killed.error}"]))
        elif killed.ended:
            misses += 1
        else:
            misses = 0
            row.count(bench.settle(place, killed.said))
        shutil.rmtree(place)
    row.seconds = time.monotonic() - started
    if row.tries < kills:
        row.problems.append(f"only {row.tries} kills met it")
    return row


def hours_later(folder: Path) -> None:
    """Let the temporary files in the folder be of some hours ago, when nobody writes to them any more."""
    then = time.time() - 3 * 3600
    for path in folder.rglob("*.tmp*"):
        os.utime(path, (then, then))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
