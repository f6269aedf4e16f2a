"""Stores that may not be written, are locked, are replaced, or are damaged."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from calibrate.cli import main
from db import open_store
from db.upkeep.backup import back_up
from tests.faults.killing import Say, forked
from tests.faults.subjects.base import STORE, Found, Row, ask, check_sound, content, url_of
from tests.faults.subjects.bringing_in import Labelling, fill, keep_sample, label_all
from tests.faults.subjects.killed import Bench
from tests.workflow import making

NOBODY = 65534
READS = (
    ("traces",),
    ("agreement",),
    ("sweep", making.DETECTOR),
    ("audit",),
    ("choose", making.DETECTOR, "--policy", "precision>=0.7"),
    ("scoreboard",),
    ("seen",),
    ("release", "--proposals"),
    ("check",),
)
WRITES = (
    ("import", "{file}"),
    ("labels", "import", "{file}"),
    ("detect", "token_overlap", "--all"),
    ("sample", "--size", "10", "--name", "more"),
    ("choose", making.DETECTOR, "--policy", "precision>=0.7", "--save", "--reason", "a trial"),
    ("release", "--out", "{folder}/thresholds.json", "--reason", "a trial"),
)


def make_store(folder: Path) -> None:
    """Labelled and scored traces with a saved point, of which nobody has the store open."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(open_store(url_of(folder))) as store:
        making.fill(store, *making.draw())
        making.save(store, "precision>=0.7")
    (folder / "new.jsonl").write_text('{"trace_id": "new", "answer": "yes", "label": "clean"}\n')


def run_verb(words: Sequence[str], folder: Path, say: Say, *, user: int | None = None) -> None:
    """Run a verb on the store of a folder. Says its exit code, what it printed and what it complained of."""
    os.environ["TMPDIR"] = "/tmp"
    if user is not None and os.geteuid() == 0:
        os.setgid(user)
        os.setuid(user)
    words = [word.format(file=folder / "new.jsonl", folder=folder) for word in words]
    out, complaint = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaint):
        code = main([*words, "--store", url_of(folder)])
    for text in (str(code), out.getvalue(), complaint.getvalue()):
        say(text.replace(str(folder), "…").replace("\n", "⏎"))


def judge(words: Sequence[str], said: Sequence[str], raw: str | None, *, may_work: bool) -> Found:
    """A verb answers, or fails with one sentence."""
    found, verb = Found(), " ".join(words[:2])
    if raw or len(said) != 3:
        found.problems.append(f"`{verb}` ended with {raw or said}")
        return found
    code, answer, complaint = said
    if "this should not happen" in complaint or "Traceback" in complaint:
        found.problems.append(f"`{verb}` ended with {complaint[:300]}")
    elif code == "0" and not may_work:
        found.problems.append(f"`{verb}` says that it worked")
    elif code != "0" and not complaint.startswith("touchstone: ") and not answer:
        found.problems.append(f"`{verb}` ended with {code} and no sentence")
    return found


def read_only(folder: Path, seed: int) -> Row:
    """Every reading verb answers as it does of a store that may be written; every writing one says a sentence."""
    row = Row("a store that may not be written")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:  # where another user may look
        public = Path(name)
        public.chmod(0o755)
        for part in ("mine", "locked"):
            forked(lambda say, part=part: make_store(public / part), log=folder.with_suffix(".log"))
        before = content(public / "locked" / STORE)
        for path in (public / "locked").iterdir():
            path.chmod(0o444)
        (public / "locked").chmod(0o555)
        for words in READS:
            usual = forked(partial(_verb, words, public / "mine", None))
            outcome = forked(partial(_verb, words, public / "locked", NOBODY))
            found = judge(words, outcome.said, outcome.raw or outcome.error, may_work=True)
            if found.clean and outcome.said[:2] != usual.said[:2]:
                found.problems.append(f"`{words[0]}` answers {outcome.said} and not {usual.said}"[:600])
            row.count(found)
        for words in WRITES:
            outcome = forked(partial(_verb, words, public / "locked", NOBODY))
            found = judge(words, outcome.said, outcome.raw or outcome.error, may_work=False)
            found.lost += content(public / "locked" / STORE) != before
            row.count(found)
        (public / "locked").chmod(0o755)
    row.note = f"{len(READS)} verbs that read, {len(WRITES)} that write"
    row.seconds = time.monotonic() - started
    return row


def _verb(words: Sequence[str], folder: Path, user: int | None, say: Say) -> None:
    run_verb(words, folder, say, user=user)


def damaged(folder: Path, seed: int, tries: int) -> Row:
    """Random damage: a page of zeros, a few bytes changed, or the file cut. A verb answers or says a sentence."""
    row = Row("a damaged store")
    started = time.monotonic()
    forked(lambda say: make_store(folder / "whole"), log=folder.with_suffix(".log"))
    rng = random.Random(seed)
    for number in range(tries):
        place = folder / str(number)
        shutil.copytree(folder / "whole", place)
        damage(place / STORE, rng)
        words = (READS + WRITES)[number % len(READS + WRITES)]
        outcome = forked(partial(_verb, words, place, None))
        row.count(judge(words, outcome.said, outcome.raw or outcome.error, may_work=True))
        shutil.rmtree(place)
    row.note = "a verb each"
    row.seconds = time.monotonic() - started
    return row


def damage(path: Path, rng: random.Random) -> None:
    whole = bytearray(path.read_bytes())
    pages = len(whole) // 4096
    page = rng.randrange(1, pages) * 4096
    kind = rng.choice(("zeros", "bytes", "cut", "head"))
    if kind == "zeros":
        whole[page : page + 4096] = bytes(4096)
    elif kind == "bytes":
        for _ in range(40):
            whole[page + rng.randrange(4096)] = rng.randrange(256)
    elif kind == "cut":
        del whole[page:]
    else:
        for _ in range(20):
            whole[rng.randrange(100, 4096)] = rng.randrange(256)
    path.write_bytes(whole)


def locked(folder: Path, seed: int, tries: int) -> Row:
    """Another process holds the write lock for 0.2 to 2 s at a random moment, and once longer than anybody waits."""
    row = Row("a locked store")
    started = time.monotonic()
    work = Labelling()
    work.size = 30
    bench = Bench(work, folder)
    rng = random.Random(seed)
    for number in range(tries + 1):
        place = bench.fresh(str(number))
        hold = rng.uniform(0.2, 2.0) if number < tries else 60.0
        wait = rng.uniform(0, bench.seconds / 2) if number < tries else 0.0
        holder = os.fork()
        if holder == 0:
            _hold(place / STORE, wait, hold)
        time.sleep(0.1)
        outcome = bench.run(place)
        if number == tries:  # until the holder dies
            _end(holder)
            found = bench.settle(place, outcome.said)
            if not outcome.error:
                found.problems.append(f"no sentence about a lock that stays, but {outcome.raw or outcome.said}")
        else:
            found = bench.settle(place, outcome.said)
            _end(holder)
            if outcome.error or outcome.raw:
                found.problems.append(f"a lock of {hold:.1f} s: {outcome.error or outcome.raw}")
        row.count(found)
        shutil.rmtree(place)
    row.note = "the last for longer than the 30 s that anybody waits"
    row.seconds = time.monotonic() - started
    return row


def _hold(path: Path, wait: float, hold: float) -> None:
    try:
        time.sleep(wait)
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(hold)
        connection.execute("ROLLBACK")
    finally:
        os._exit(0)


def _end(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 9)
    os.waitpid(process, 0)


def replaced(folder: Path, seed: int, tries: int) -> Row:
    """The store is deleted or replaced under a labeller. What begins after that is acknowledged only where it is kept.

    Lost is a label that began after the change, was acknowledged, and is not in the file at the store's path.
    """
    row = Row("a store deleted or replaced under a labeller")
    started = time.monotonic()

    def prepare(say: Say) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with closing(open_store(url_of(folder))) as store:
            fill(store, 200)
            keep_sample(store, 60, 200)
        back_up(url_of(folder), folder / "backup.db")

    forked(prepare, log=folder.with_suffix(".log"))
    rng = random.Random(seed)
    for number in range(tries):
        place = folder / str(number)
        place.mkdir()
        shutil.copy(folder / STORE, place / STORE)
        changed: list[float] = []
        delete = number % 2 == 0
        child = os.fork()
        if child == 0:
            _replace(place, folder / "backup.db", rng.uniform(0.05, 1.0), delete)
        rng.random()
        outcome = forked(partial(_label_with_times, place))
        os.waitpid(child, 0)
        changed.append(float((place / "changed").read_text()))
        row.count(_judge_replaced(place, outcome.said, changed[0], outcome.raw, delete))
        shutil.rmtree(place)
    row.note = "half deleted, half replaced by a backup"
    row.seconds = time.monotonic() - started
    return row


def _label_with_times(folder: Path, say: Say) -> None:
    began = [time.monotonic()]

    def note(line: str) -> None:
        say(f"{line} {began[0]}")
        time.sleep(0.01)
        began[0] = time.monotonic()

    with closing(open_store(url_of(folder))) as store:
        label_all(store, "ann", note)


def _replace(place: Path, backup: Path, after: float, delete: bool) -> None:
    try:
        time.sleep(after)
        os.link(place / STORE, place / "old.db")
        if delete:
            for path in (place / STORE, place / f"{STORE}-wal", place / f"{STORE}-shm"):
                path.unlink(missing_ok=True)
        else:
            shutil.copy(backup, place / "new.db")
            os.replace(place / "new.db", place / STORE)
        (place / "changed").write_text(str(time.monotonic()))
    finally:
        os._exit(0)


def _judge_replaced(place: Path, said: Sequence[str], changed: float, raw: str | None, delete: bool) -> Found:
    found = Found()
    if raw:
        found.problems.append(f"no sentence, but {raw}")
    kept: set[str] = set()
    if (place / STORE).exists():
        if not delete:
            found += check_sound(place / STORE)
        query = "SELECT trace_pk || ' ' || verdict FROM labels WHERE labeller = 'ann'"
        with contextlib.suppress(sqlite3.DatabaseError):
            kept = {str(row[0]) for row in ask(place / STORE, query)}
    for line in said:
        label, began = line.rsplit(" ", 1)
        found.lost += float(began) > changed and label not in kept
    return found
