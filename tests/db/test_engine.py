"""Opening stores: what is refused and how it is said, migrations, two processes, a killed one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, make_url, text

from calibrate.errors import BadInput, StoreError, TouchstoneError
from calibrate.types import Label, TraceFilter
from db import Store, open_store
from db.engine import HEAD, MIGRATIONS
from db.tables import Base
from tests.db.make import NOW

ROOT = Path(__file__).parent.parent.parent
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}


def write_traces(path: Path, count: int, *, first: int = 0) -> None:
    lines = (
        json.dumps({"trace_id": f"t{n}", "answer": f"answer {n}", "sources": {"1": "s"}}) for n in range(first, count)
    )
    path.write_text("\n".join(lines) + "\n")


def start_import(url: str, file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "calibrate", "import", str(file), "--store", url, "--json"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("nonsense", BadInput, "not one"),
        ("mysql://x/y", BadInput, "mysql"),
        ("oracle://u:secret@x/y", BadInput, "sqlite or postgresql"),
        ("sqlite:////nowhere/at/all/x.db", BadInput, "no folder /nowhere/at/all; make it, or name another"),
        ("sqlite:////", BadInput, "name a file in it"),
        ("sqlite:////tmp/" + "x" * 300, BadInput, "File name too long; name another file"),
        ("postgresql://u:secret@127.0.0.1:1/x", StoreError, "cannot open"),
    ],
)
def test_a_url_that_is_none_is_told_in_a_sentence_without_its_password(
    url: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_store_that_is_not_there_is_not_made_by_asking(tmp_path: Path) -> None:
    for path in ("x.db", "no folder/x.db"):
        with pytest.raises(BadInput, match=r"there is no store at .*x\.db: name another"):
            open_store(f"sqlite:///{tmp_path}/{path}", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("something else entirely, and long enough to be no header at all")
    with pytest.raises(BadInput, match="not a database; name another file"):
        open_store(f"sqlite:///{tmp_path}/x.db")
    assert (tmp_path / "x.db").read_text().startswith("something else")


def test_a_database_that_is_no_store_is_not_made_one_by_asking(tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    with pytest.raises(BadInput, match="no Touchstone store yet: name another"):
        open_store(f"sqlite:///{tmp_path}/x.db", create=False)


def test_a_store_without_rights_to_write(tmp_path: Path) -> None:
    """As root a mode does not bind, so the check is on a file system path nobody may write to."""
    with pytest.raises(BadInput, match=r"cannot be made|cannot open"):
        open_store("sqlite:////proc/touchstone.db")


def test_a_newer_store_is_refused_and_left_alone(store_url: str) -> None:
    with open_store(store_url).engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer Touchstone"):
        open_store(store_url)


def test_the_migrations_make_the_tables_of_the_code(store: Store) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == HEAD
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
        assert set(Base.metadata.tables) <= set(inspect(connection).get_table_names())


def test_two_processes_importing_at_once_keep_every_trace_once(store_url: str, tmp_path: Path) -> None:
    write_traces(tmp_path / "a.jsonl", 3000)
    write_traces(tmp_path / "b.jsonl", 4000, first=1000)
    both = [start_import(store_url, tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    reports = []
    for process in both:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        reports.append(json.loads(out))
    assert sum(report["imported"] for report in reports) == 4000
    assert sum(report["duplicates"] for report in reports) == 2000
    assert open_store(store_url).traces.count(TraceFilter()) == 4000


def test_a_killed_import_keeps_whole_batches_and_goes_on_where_it_was(store_url: str, tmp_path: Path) -> None:
    write_traces(tmp_path / "a.jsonl", 40_000)
    process = start_import(store_url, tmp_path / "a.jsonl")
    store = None
    for _ in range(600):
        time.sleep(0.05)
        try:
            store = store or open_store(store_url, create=False)
            if store.traces.count(TraceFilter(), limit=1):
                break
        except TouchstoneError:
            continue
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert store is not None
    kept = store.traces.count(TraceFilter())
    assert 0 < kept < 40_000
    with store.engine.connect() as connection:
        half = "SELECT count(*) FROM traces WHERE id NOT IN (SELECT trace_pk FROM sources)"
        assert connection.scalar(text(half)) == 0
    again = start_import(store_url, tmp_path / "a.jsonl")
    report = json.loads(again.communicate(timeout=120)[0])
    assert (report["imported"], report["duplicates"]) == (40_000 - kept, kept)


@pytest.mark.parametrize("version", ["0001", "0002", "0003", "0004"])
def test_a_store_of_every_older_schema_opens_and_reads(store_url: str, version: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(make_url(store_url).set(drivername=DRIVERS[store_url.partition(":")[0]]))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        at = NOW.replace(tzinfo=None)
        for row in (
            f"INSERT INTO traces (id, trace_id, content_hash, answer, imported_at) VALUES (1, 't1', '', 'yes', '{at}')",
            f"INSERT INTO labels (trace_pk, labeller, verdict, created_at) VALUES (1, 'ann', 'clean', '{at}')",
            f"INSERT INTO gold (trace_pk, verdict, labellers, decided_at) VALUES (1, 'clean', 1, '{at}')",
        ):
            connection.execute(text(row))
    engine.dispose()
    store = open_store(store_url, create=False)
    stored = store.traces.get(1)
    assert stored is not None
    assert (stored.trace.id, stored.trace.answer, stored.gold) == ("t1", "yes", "clean")
    assert [(label.labeller, label.adjudicates) for label in store.labels.of_trace(1)] == [("ann", False)]
    assert {stamp for _, stamp in store.revision()} == {0}
    store.labels.add(1, Label("t1", "bob", "hallucinated"), sample_id=None, now=NOW)
    assert store.labels.gold_counts() == {"disputed": 1}
    assert store.revision("labels") != (("labels", 0),)
    store.close()
