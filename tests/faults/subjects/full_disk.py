"""Let the disk run full at a random moment of a work, give it room again, and take the work up."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.killing import Forked, Say, forked
from tests.faults.subjects.base import STORE, Found, Row, Work
from tests.faults.subjects.killed import MOST_MISSES, Bench

ROOM = 64 * 2**20  # what the disk has once there is room again


def run_full(work: Work, folder: Path, tries: int, seed: int) -> Row:
    """A small file system of its own for each try; without the right to mount one, a limit on the size of files."""
    row = Row(f"{work.name}, full disk")
    started = time.monotonic()
    bench = Bench(work, folder)
    rng = random.Random(f"{seed} {work.name}")
    disk = folder / "disk"
    disk.mkdir()
    mounts = may_mount(disk)
    misses = 0
    while row.tries < tries and misses < MOST_MISSES:
        room = int(rng.uniform(0.0, 0.9) * bench.size)
        if mounts:
            with mounted(disk, ROOM):
                place = disk / "place"
                shutil.copytree(bench.template, place, symlinks=True)
                mount("remount", disk, shutil.disk_usage(disk).used + room)
                full = bench.run(place)
                mount("remount", disk, ROOM)
                stopped = count(row, bench, place, full)
        else:
            place = bench.fresh(f"try-{row.tries}")
            limit = (place / STORE).stat().st_size + room
            full = forked(lambda say, place=place, limit=limit: limited(work, place, limit, say), log=folder / "log")
            stopped = count(row, bench, place, full)
            shutil.rmtree(place)
        misses = 0 if stopped else misses + 1
    row.seconds = time.monotonic() - started
    row.note = "a tmpfs of its own" if mounts else "a limit on the size of a file: no right to mount"
    if row.tries < tries:
        row.problems.append(f"the disk was full in time only {row.tries} times")
    return row


def count(row: Row, bench: Bench, place: Path, full: Forked) -> bool:
    """Count a try, unless the disk had room enough."""
    if full.raw:
        row.count(Found(problems=[f"no sentence, but {full.raw}"]))
    elif full.error is None:
        return False
    else:
        found = bench.settle(place, full.said)
        found.problems = [f"{problem} (after: {full.error})" for problem in found.problems]
        row.count(found)
    return True


def limited(work: Work, place: Path, limit: int, say: Say) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    work.work(place, say)


def may_mount(folder: Path) -> bool:
    try:
        with mounted(folder, 2**20):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    mount("", folder, size)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def mount(again: str, folder: Path, size: int) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    options = ",".join(filter(None, (again, f"size={size // page * page + page}")))
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True, capture_output=True)
