"""A store that is deleted, replaced or restored under a running program is noticed, and nothing acknowledged then."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError

import pytest

from calibrate.cli import main
from calibrate.errors import StoreReplaced
from calibrate.types import Label, TraceFilter
from db import Store, open_store
from db.opening.store_file import StoreFile
from tests.db.make import NOW
from tests.workflow.making import draw, fill, save

ROOT = Path(__file__).parents[2]
Replace = Callable[[Path], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of 20 traces, closed, with an older copy of it and another store beside it."""
    path = tmp_path / "live.db"
    store = open_store(f"sqlite:///{path}")
    fill(store, *draw(20))
    store.close()
    shutil.copy(path, tmp_path / "older.db")
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    fill(other, *draw(10))
    other.close()
    return path


def add(store: Store, number: int) -> None:
    pk = store.traces.find("t1")
    assert pk is not None
    store.labels.add(pk, Label("t1", f"labeller {number}", "clean"), sample_id=None, now=NOW)


def labellers(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT labeller FROM labels WHERE labeller LIKE 'labeller %'")}


def delete(path: Path) -> None:
    for name in ("", "-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def rename_older(path: Path) -> None:
    shutil.copy(path.with_name("older.db"), path.with_name("new.db"))
    path.with_name("new.db").replace(path)


def delete_and_copy(path: Path) -> None:
    delete(path)
    shutil.copy(path.with_name("older.db"), path)


def copy_older_over(path: Path) -> None:
    """As `cp backup.db store.db` does: the inode stays."""
    shutil.copyfile(path.with_name("older.db"), path)


def copy_other_over(path: Path) -> None:
    shutil.copyfile(path.with_name("other.db"), path)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


REPLACEMENTS = (delete, move, rename_older, delete_and_copy, copy_older_over, copy_other_over, truncate)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_a_label_is_acknowledged_only_in_the_store_that_is_there(
    path: Path, replace: Replace, checkpoint: bool
) -> None:
    store = open_store(f"sqlite:///{path}")
    for number in range(30):
        add(store, number)
    if checkpoint:
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        add(store, 30)
    replace(path)
    acknowledged = set()
    for number in range(100, 110):
        try:
            add(store, number)
        except StoreReplaced:
            continue
        acknowledged.add(f"labeller {number}")
    if path.exists() and acknowledged:  # an older copy of the same pages, under a log that holds all that came after
        assert acknowledged <= labellers(path)
        assert {f"labeller {number}" for number in range(30)} <= labellers(path)
    else:
        assert acknowledged == set()
        with pytest.raises(StoreReplaced, match=r"live\.db (is gone|was replaced|was overwritten)"):
            store.traces.count(TraceFilter())


@pytest.mark.parametrize("replace", [delete, rename_older])
def test_a_store_replaced_between_check_and_commit_is_not_acknowledged(
    path: Path, replace: Replace, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{path}")
    checks, check = [], StoreFile.check

    def replaced_at_the_last_moment(self: StoreFile) -> None:
        check(self)
        checks.append(self)
        if len(checks) == 2:  # the last check before the commit
            replace(path)

    monkeypatch.setattr(StoreFile, "check", replaced_at_the_last_moment)
    with pytest.raises(StoreReplaced):
        store.labels.add(1, Label("t0", "late", "clean"), sample_id=None, now=NOW)


def test_another_store_on_the_same_inode_is_noticed(path: Path) -> None:
    """A file system may give a new file the inode of the one that was deleted."""
    store = open_store(f"sqlite:///{path}")
    store.engine.dispose()  # no connection keeps the inode
    status = os.stat(path)
    os.truncate(path, 0)
    with path.open("r+b") as file:
        file.write(path.with_name("other.db").read_bytes())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(path).st_ino == status.st_ino
    with pytest.raises(StoreReplaced):
        store.traces.count(TraceFilter())


def test_writes_and_checkpoints_of_other_processes_are_no_replacement(path: Path) -> None:
    first, second = open_store(f"sqlite:///{path}"), open_store(f"sqlite:///{path}")
    for number in range(200):
        add((first, second)[number % 2], number)
        if number % 20 == 0:
            with closing(sqlite3.connect(path)) as database:
                database.execute(f"PRAGMA wal_checkpoint({('PASSIVE', 'TRUNCATE')[number % 40 == 0]})")
        if number == 100:
            with closing(sqlite3.connect(path)) as database:
                database.execute("VACUUM")
    second.close()
    assert len(labellers(path)) == 200
    assert first.traces.count(TraceFilter()) == 20


def test_a_new_store_is_not_taken_for_replaced_before_its_first_checkpoint(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/new.db")
    fill(store, *draw(5))
    with closing(sqlite3.connect(tmp_path / "new.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert store.traces.count(TraceFilter()) == 5
    add(store, 1)


def test_a_first_checkpoint_while_another_process_opens_the_store_is_no_replacement(tmp_path: Path) -> None:
    """Until then the store's identity is in the log alone, and whoever is opening it does not know it yet."""
    store = open_store(f"sqlite:///{tmp_path}/new.db")
    fill(store, *draw(5))
    opening = StoreFile(tmp_path / "new.db", mode="rw")
    with closing(sqlite3.connect(tmp_path / "new.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opening.check()
    store.close()


def test_writes_that_only_the_log_had_are_not_missed_in_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that readers hold up leaves a file that makes no sense alone, and later one that lacks writes."""
    store = open_store(f"sqlite:///{path}")
    opened = StoreFile(path, mode="rw")
    add(store, 1)
    with monkeypatch.context() as patch:
        patch.setattr(StoreFile, "_look", lambda self: None)
        os.utime(path)
        opened.check()
    os.utime(path, (1, 1))
    opened.check()
    store.close()


def test_a_store_from_before_identities_gets_one(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM revisions WHERE name IN ('store', 'writes')")
    store = open_store(f"sqlite:///{path}")
    add(store, 1)
    copy_other_over(path)
    with pytest.raises(StoreReplaced):
        add(store, 2)


def test_serve_says_so_instead_of_serving_the_old_file(path: Path) -> None:
    command = [sys.executable, "-m", "calibrate", "serve", "--port", "0", "--store", f"sqlite:///{path}"]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        address = server.stderr.readline().split(" at ")[1].split(";")[0]
        rename_older(path)
        with pytest.raises(HTTPError) as answer:
            urllib.request.urlopen(address, timeout=20)
        assert answer.value.code == 503
        assert "was replaced" in answer.value.read().decode()
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_watch_ends_with_the_sentence(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    save(store, "manual:0.55")
    assert main(["release", "--out", str(path.with_name("t.json")), "--store", store.url]) == 0
    command = [sys.executable, "-m", "calibrate", "watch", "--every", "0.2", "--store", f"sqlite:///{path}"]
    watch = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert watch.stderr is not None
    assert watch.stderr.readline()  # it has looked once
    rename_older(path)
    began = time.monotonic()
    _, err = watch.communicate(timeout=30)
    assert (watch.returncode, "was replaced" in err) == (1, True)
    assert time.monotonic() - began < 20
