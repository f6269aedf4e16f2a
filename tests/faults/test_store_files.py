"""Who may read a store's files, and what a store does that may only be read."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.errors import BadInput, StoreError
from calibrate.types import Label, TraceFilter
from db import open_store
from tests.db.make import NOW
from tests.workflow.making import draw, fill, save

ROOT = Path(__file__).parents[2]
PR_CAPBSET_DROP, OVERRIDES = 24, (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: what lets root ignore permissions


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def obey_permissions() -> None:
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in OVERRIDES:
            assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of ours by a user whom permissions bind."""
    command = [sys.executable, "-m", "calibrate", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=obey_permissions, timeout=120)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A closed store with a release, in a folder of its own."""
    path = tmp_path / "folder" / "live.db"
    path.parent.mkdir()
    store = open_store(f"sqlite:///{path}")
    fill(store, *draw(30))
    save(store, "manual:0.55")
    assert main(["release", "--out", str(tmp_path / "t.json"), "--store", store.url]) == 0
    store.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    yield path
    path.parent.chmod(0o700)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
def test_a_new_store_is_its_users_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        store = open_store(f"sqlite:///{tmp_path}/new.db")
        fill(store, *draw(5))
    modes = {file.name: permissions(file) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["new.db", "new.db-wal", "new.db-shm"], 0o600)


def test_an_older_store_that_everybody_reads_is_told_of_and_left_alone(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for mode, told in ((0o644, True), (0o640, False), (0o600, False)):
        path.chmod(mode)
        assert main(["traces", "--store", f"sqlite:///{path}"]) == 0
        assert (f"chmod 600 {path}*" in capsys.readouterr().err) is told
        assert permissions(path) == mode


@pytest.mark.parametrize("way", ["mode=ro", "file", "folder"])
def test_a_store_that_may_only_be_read_is_read_and_refuses_to_be_written(path: Path, way: str) -> None:
    url = f"sqlite:///{path}"
    if way == "mode=ro":
        url += "?mode=ro"
    if way == "file":
        path.chmod(0o400)
    if way == "folder":
        path.parent.chmod(0o500)
    before = path.read_bytes()
    for words in (["traces"], ["sweep", "token_overlap"]):
        done = call(*words, "--store", url)
        assert done.returncode == 0, done.stderr
    (labels := path.parent.parent / "labels.jsonl").write_text(
        '{"trace_id": "t1", "labeller": "x", "verdict": "clean"}'
    )
    for words in (["labels", "import", str(labels)], ["detect", "token_overlap"]):
        done = call(*words, "--store", url)
        assert done.returncode == 1, done.stdout
        assert "is open for reading only, so nothing of this step was kept" in done.stderr
        assert done.stderr.count("\n") == 1
    assert path.read_bytes() == before


def test_a_read_only_store_is_served(path: Path) -> None:
    path.chmod(0o400)
    path.parent.chmod(0o500)
    code = (
        "import sys\nfrom calibrate.cli.serve import find_document\nfrom db import open_store\n"
        "print(find_document(open_store(sys.argv[1], create=False), None).version)"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=obey_permissions)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


def test_a_reader_sees_what_a_writer_adds(path: Path) -> None:
    reader, writer = open_store(f"sqlite:///{path}?mode=ro"), open_store(f"sqlite:///{path}")
    before = reader.revision("labels")
    writer.labels.add(1, Label("t0", "new", "clean"), sample_id=None, now=NOW)
    assert reader.revision("labels") != before
    assert "new" in {label.labeller for label in reader.labels.of_trace(1)}
    with pytest.raises(StoreError, match="reading only"):
        reader.labels.add(1, Label("t0", "other", "clean"), sample_id=None, now=NOW)


def test_changes_that_only_a_log_holds_are_not_left_out_in_silence(path: Path, tmp_path: Path) -> None:
    writer = open_store(f"sqlite:///{path}")
    writer.labels.add(1, Label("t0", "new", "clean"), sample_id=None, now=NOW)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("live.db", "live.db-wal"):
        shutil.copy(path.with_name(name), copy)
    copy.chmod(0o500)
    done = call("traces", "--store", f"sqlite:///{copy}/live.db")
    copy.chmod(0o700)
    assert done.returncode == 1
    assert "live.db-wal holds changes, which SQLite reads only where it may write the folder" in done.stderr


def test_an_older_schema_is_not_upgraded_by_a_reader(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE alembic_version SET version_num = '0004'")
    with pytest.raises(StoreError, match=r"older schema \(0004.*open it once where it may be written"):
        open_store(f"sqlite:///{path}?mode=ro")


def test_a_spelling_of_sqlites_own_and_an_unknown_parameter(path: Path) -> None:
    store = open_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert (store.read_only, store.traces.count(TraceFilter())) == (True, 30)
    with pytest.raises(BadInput, match="it may say mode=ro"):
        open_store(f"sqlite:///{path}?mode=read")
    with pytest.raises(BadInput, match="there is no store at"):
        open_store(f"sqlite:///{path.parent}/none.db?mode=ro")
