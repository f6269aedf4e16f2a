"""`export --all` and `import --all`: every row arrives, from SQLite to PostgreSQL and back, or none does."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import struct
import time
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from calibrate.cli import main
from calibrate.errors import BadInput, StoreError
from calibrate.thresholds.canonical import digest_of
from calibrate.workflow.upkeep import archive
from calibrate.workflow.upkeep.moving import export_all, import_all
from db import Store, open_store
from db.tables import Base
from db.upkeep import rows
from db.upkeep.rows import LEFT_OUT, Column, Kind, Shape
from tests.db.make import NOW, label, records
from tests.faults.everything import ROWS, everything, fill
from tests.faults.killing import kill_during

RELEASE = '{\n  "ü": 1.0,\r\n "b": [ ]}\n\n'


@pytest.fixture
def source(tmp_path: Path) -> Store:
    store = open_store(f"sqlite:///{tmp_path}/source.db")
    fill(store.engine)
    return store


def exported(store: Store, path: Path) -> Path:
    export_all(store, path, now=NOW)
    return path


@pytest.mark.postgres
def test_every_row_of_every_table_goes_to_postgresql_and_back(source: Store, postgres_url: str, tmp_path: Path) -> None:
    before = everything(source.engine)
    assert {name: len(lines) for name, lines in before.items() if name not in LEFT_OUT} == {
        table.name: ROWS for table in Base.metadata.sorted_tables if table.name not in LEFT_OUT
    }
    first = export_all(source, tmp_path / "1.zip", now=NOW)
    import_all(postgres_url, tmp_path / "1.zip")
    server = open_store(postgres_url)
    assert everything(server.engine) == before
    second = export_all(server, tmp_path / "2.zip", now=NOW)
    import_all(f"sqlite:///{tmp_path}/back.db", tmp_path / "2.zip")
    back = open_store(f"sqlite:///{tmp_path}/back.db")
    assert everything(back.engine) == before
    # The same rows make the same files, so that two stores can be compared by their archives' digests.
    assert first.sha256 == second.sha256
    server.close()


@pytest.mark.postgres
def test_postgresql_counts_on_from_the_keys_that_came(postgres_url: str, tmp_path: Path) -> None:
    source = open_store(f"sqlite:///{tmp_path}/source.db")
    source.traces.add(records(3), labels_as=None, now=NOW)
    for labeller in "abc":
        source.labels.add(1, label("clean", labeller), sample_id=None, now=NOW)
    import_all(postgres_url, exported(source, tmp_path / "a.zip"))
    store = open_store(postgres_url)
    store.labels.add(1, label("hallucinated", "d"), sample_id=None, now=NOW)
    assert [each.labeller for each in store.labels.of_trace(1)] == list("abcd")
    store.close()


def test_an_archive_can_be_read_without_touchstone(source: Store, tmp_path: Path) -> None:
    path = exported(source, tmp_path / "a.zip")
    assert path.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(path) as whole:
        assert whole.testzip() is None
        manifest = json.loads(whole.read("manifest.json"))
        for table in manifest["tables"]:
            content = pq.read_table(io.BytesIO(whole.read(table["file"]))).to_pylist()
            assert len(content) == table["rows"] == ROWS
    names = {table["table"] for table in manifest["tables"]}
    assert names == set(Base.metadata.tables) - LEFT_OUT


def test_a_release_keeps_its_bytes(tmp_path: Path) -> None:
    source = open_store(f"sqlite:///{tmp_path}/source.db")
    with source.releases.adding(lambda *_: RELEASE, by="ann", note="", now=NOW):
        pass
    url = f"sqlite:///{tmp_path}/target.db"
    import_all(url, exported(source, tmp_path / "a.zip"))
    with closing(sqlite3.connect(tmp_path / "target.db")) as connection:
        assert connection.execute("SELECT document FROM releases").fetchone() == (RELEASE,)
    assert open_store(url).releases.get(1) == source.releases.get(1)


def test_a_store_that_holds_anything_is_left_alone(
    source: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = exported(source, tmp_path / "a.zip")
    for held in ("a file", "everything"):
        url = f"sqlite:///{tmp_path}/{held}.db"
        other = open_store(url)
        if held == "a file":
            other.files.save("prompts/x", "text", by="ann", now=NOW)
        else:
            fill(other.engine)
        before = everything(other.engine)
        other.close()
        assert main(["import", "--all", str(path), "--store", url]) == 2
        assert "not empty" in (message := capsys.readouterr().err)
        assert "--store" in message
        assert everything(open_store(url).engine) == before


def test_caches_notice_a_store_that_was_filled(source: Store, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/target.db"
    target = open_store(url)
    before = dict(target.revision())
    import_all(url, exported(source, tmp_path / "a.zip"))
    after = dict(target.revision())
    assert all(after[group] != before[group] for group in before)
    assert all(after[group] != stamp for group, stamp in source.revision())


def rewritten(path: Path, **change: Any) -> None:
    """Write an archive anew with other members: `drop`, `add`, or `change` a manifest, its digest made to fit."""
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    members.pop(change.get("drop", ""), None)
    for key, value in change.get("head", {}).items():
        manifest[key] = value
    for table in manifest["tables"]:
        table |= change.get("tables", {}).get(table["table"], {})
    manifest["tables"] = [t for t in manifest["tables"] if t["table"] != change.get("without")]
    manifest["digest"] = digest_of(manifest)
    with zipfile.ZipFile(path, "w", change.get("compression", zipfile.ZIP_STORED)) as whole:
        for name, content in {**members, "manifest.json": json.dumps(manifest), **change.get("add", {})}.items():
            whole.writestr(name, content)


def damage(path: Path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as whole:
        traces = whole.getinfo("tables/traces.parquet")
        manifest = whole.getinfo("manifest.json")
    if kind == "cut":
        path.write_bytes(content[: len(content) * 2 // 3])
    elif kind == "cut by a byte":
        path.write_bytes(content[:-1])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "a byte of a table":
        content[traces.header_offset + 200] ^= 1
        path.write_bytes(content)
    elif kind == "a byte of the manifest":
        content[content.index(b'"rows": 3', manifest.header_offset) + 8] += 1
        path.write_bytes(content)
    elif kind == "a header that points elsewhere":
        content[traces.header_offset + 26 : traces.header_offset + 30] = struct.pack("<HH", 60_000, 60_000)
        path.write_bytes(content)
    elif kind == "another program's zip":
        with zipfile.ZipFile(path, "w") as whole:
            whole.writestr("a.txt", "a")
    elif kind == "a table's file is missing":
        rewritten(path, drop="tables/labels.parquet")
    elif kind == "a table is missing":
        rewritten(path, drop="tables/labels.parquet", without="labels")
    elif kind == "a path out of it":
        rewritten(path, add={"../../evil.parquet": b"x"})
    elif kind == "a table of nobody's":
        rewritten(path, tables={"skips": {"table": "../../etc/passwd"}})
    elif kind == "a bomb in the zip":
        rewritten(path, compression=zipfile.ZIP_DEFLATED, add={"manifest.json": b" " * 50_000_000})
    elif kind == "packed":
        rewritten(path, compression=zipfile.ZIP_DEFLATED)
    elif kind == "more rows than there are":
        rewritten(path, tables={"labels": {"rows": 2}})
    elif kind == "another column":
        columns = {"id": "integer", "trace_pk": "text"}
        rewritten(path, tables={"labels": {"columns": columns}})
    elif kind == "a newer schema":
        rewritten(path, head={"schema": "9999"})
    elif kind == "a newer format":
        rewritten(path, head={"touchstone_archive": 2})
    elif kind == "no tables":
        rewritten(path, head={"tables": None} | {"tables": []})


KINDS = [
    "cut", "cut by a byte", "empty", "a byte of a table", "a byte of the manifest", "a header that points elsewhere",
    "another program's zip", "a table's file is missing", "a table is missing", "a path out of it",
    "a table of nobody's", "a bomb in the zip", "packed", "more rows than there are", "another column",
    "a newer schema", "a newer format", "no tables",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_archive_is_refused_before_anything_is_written(
    source: Store, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = exported(source, tmp_path / "a.zip")
    source.close()
    damage(path, kind)
    before = {file.name for file in tmp_path.iterdir()}
    assert main(["import", "--all", str(path), "--store", f"sqlite:///{tmp_path}/target.db"]) == 2
    message = capsys.readouterr().err
    assert "archive" in message
    assert len(message.splitlines()) == 1
    assert "this should not happen" not in message
    assert {file.name for file in tmp_path.iterdir()} == before


def test_no_changed_byte_goes_unnoticed(tmp_path: Path) -> None:
    """Wherever a byte is changed, an import refuses or brings exactly what was exported."""
    source = open_store(f"sqlite:///{tmp_path}/source.db")
    source.traces.add(records(5), labels_as=None, now=NOW)
    path = exported(source, tmp_path / "a.zip")
    content, rng, refused = path.read_bytes(), random.Random(5), 0
    for _ in range(150):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            with archive.reading(path) as whole:
                parts = {shape.name: [row for part in whole.rows(shape) for row in part] for shape in rows.shapes()}
        except BadInput:
            refused += 1
        else:
            assert len(parts["traces"]) == 5
            assert [row[0] for row in parts["sources"]] == [1, 2, 3, 4, 5]
    assert refused > 100


def test_a_part_that_unpacks_to_more_than_memory_is_refused(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(source, tmp_path / "a.zip")  # the text of 100,000 letters takes few bytes there
    monkeypatch.setattr(archive, "MOST_ROW_GROUP", 50_000)
    with pytest.raises(BadInput, match="unpacks to more"), archive.reading(path):
        pass


def test_an_archive_that_the_disk_cannot_hold_is_refused(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(source, tmp_path / "a.zip")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(BadInput, match="unpacks to"):
        import_all(f"sqlite:///{tmp_path}/target.db", path)
    assert not (tmp_path / "target.db").exists()


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.both_databases])]
)
def test_a_killed_import_leaves_an_empty_or_a_whole_store(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = open_store(f"sqlite:///{tmp_path}/source.db")
    source.traces.add(records(400), labels_as=None, now=NOW)
    for pk in range(1, 60):
        source.labels.add(pk, label("clean", "ann"), sample_id=None, now=NOW)
    path = exported(source, tmp_path / "a.zip")
    whole = everything(source.engine)
    empty = {name: [] for name in whole}
    source.close()
    server = request.getfixturevalue("postgres_url") if database == "postgresql" else ""
    if server:
        open_store(server).close()
    rng, outcomes = random.Random(11), []
    for number in range(12):
        url = server or f"sqlite:///{tmp_path}/{number}.db"
        kill_during(lambda url=url: import_all(url, path, on_progress=lambda *_: time.sleep(0.02)), rng.uniform(0, 1.2))
        store = open_store(url, create=True)
        held = everything(store.engine)
        assert held in (empty, whole)
        outcomes.append(held == whole)
        if held == empty and number == 11:
            import_all(url, path)
            assert everything(store.engine) == whole
        if server and held == whole:
            with store.engine.connect() as connection, connection.begin():
                connection.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        store.close()
    assert not all(outcomes)


def test_a_killed_export_leaves_none_or_a_whole_archive(tmp_path: Path) -> None:
    source = open_store(f"sqlite:///{tmp_path}/source.db")
    source.traces.add(records(300), labels_as=None, now=NOW)
    source.close()
    rng = random.Random(2)
    for number in range(12):
        path = tmp_path / f"{number}.zip"

        def work(path: Path = path) -> None:
            store = open_store(f"sqlite:///{tmp_path}/source.db")
            export_all(store, path, now=NOW, on_progress=lambda *_: time.sleep(0.05))

        kill_during(work, rng.uniform(0, 0.6))
        if path.exists():
            with archive.reading(path) as whole:
                assert sum(member.rows for member in whole.manifest.tables) > 600


def test_an_export_is_of_one_moment(tmp_path: Path) -> None:
    """Labels that come while the archive is written are in no table of it, though labels come after traces there."""
    store = open_store(f"sqlite:///{tmp_path}/source.db")
    store.traces.add(records(20), labels_as=None, now=NOW)
    other = open_store(f"sqlite:///{tmp_path}/source.db")
    calls = []

    def on_progress(done: int, total: int) -> None:
        calls.append((done, total))
        other.labels.add(len(calls), label("clean"), sample_id=None, now=NOW)

    moved = export_all(store, tmp_path / "a.zip", now=NOW, on_progress=on_progress)
    assert calls
    assert (moved.rows["labels"], moved.rows["gold"], moved.rows["traces"]) == (0, 0, 20)
    assert calls[-1][0] == calls[-1][1]


def test_an_archive_of_an_older_schema_is_migrated_as_a_store_is(tmp_path: Path) -> None:
    older = tmp_path / "older.db"
    kinds = {
        "BLOB": Kind.BYTES,
        "INTEGER": Kind.INTEGER,
        "BIGINT": Kind.INTEGER,
        "FLOAT": Kind.NUMBER,
        "DOUBLE": Kind.NUMBER,
    }
    kinds |= {"JSON": Kind.DOCUMENT, "DATETIME": Kind.TIME, "BOOLEAN": Kind.BOOLEAN}
    store_at("0004", older)
    engine = sa.create_engine(f"sqlite:///{older}")
    tables = sa.MetaData()
    tables.reflect(engine)
    assert "revisions" not in tables.tables
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO texts VALUES (x'0102', 'ü')")
        connection.exec_driver_sql(
            "INSERT INTO traces (id, trace_id, content_hash, answer, imported_at, attributes) VALUES "
            "(7, 't7', 'aa', 'answer', '2026-01-02 03:04:05.678901', '{\"a\": \"b\"}')"
        )
        connection.exec_driver_sql(
            "INSERT INTO labels (id, trace_pk, labeller, verdict, seconds, adjudicates, created_at) VALUES "
            "(3, 7, 'ann', 'clean', 0.1, 0, '2026-01-02 03:04:05.000000')"
        )
        shapes = []
        for table in tables.sorted_tables:
            if table.name != "alembic_version":
                columns = [Column(c.name, kinds.get(str(c.type).split("(")[0], Kind.TEXT)) for c in table.columns]
                shapes.append(Shape(table.name, tuple(columns)))
        # As its own version would have written it.
        mine = {shape.name: content(connection, shape) for shape in shapes}
        archive.write(
            tmp_path / "a.zip",
            [(shape, iter([mine[shape.name]] if mine[shape.name] else [])) for shape in shapes],
            schema="0004",
            written_by="touchstone 0",
            now=NOW,
            on_rows=lambda _: None,
        )
    engine.dispose()
    import_all(f"sqlite:///{tmp_path}/target.db", tmp_path / "a.zip")
    target = everything(open_store(f"sqlite:///{tmp_path}/target.db").engine)
    assert target == everything(open_store(f"sqlite:///{older}").engine)  # which opening brings up to date
    assert len(target["labels"]) == len(target["traces"]) == len(target["texts"]) == 1
    assert not list(tmp_path.glob(".touchstone-*"))


def store_at(schema: str, path: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[2] / "db" / "migrations"))
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, schema)
    engine.dispose()


def content(connection: sa.Connection, shape: Shape) -> list[tuple[Any, ...]]:
    rows_of: list[tuple[Any, ...]] = []
    for row in connection.exec_driver_sql(f'SELECT {", ".join(c.name for c in shape.columns)} FROM "{shape.name}"'):
        values = []
        for value, column in zip(row, shape.columns, strict=True):
            if column.kind == Kind.TIME and value is not None:
                value = datetime.fromisoformat(value).replace(tzinfo=UTC)
            values.append(bool(value) if column.kind == Kind.BOOLEAN else value)
        rows_of.append(tuple(values))
    return rows_of


def test_the_verbs_say_what_they_moved(source: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.close()
    at = ["--store", f"sqlite:///{tmp_path}/source.db"]
    assert main(["export", str(tmp_path / "a.zip"), *at]) == 2
    assert "--all" in capsys.readouterr().err
    assert main(["export", "--all", str(tmp_path / "a.zip"), *at]) == 0
    assert "3 traces, 3 labels" in capsys.readouterr().out
    assert main(["export", "--all", str(tmp_path / "a.zip"), *at]) == 2
    assert "is there already" in capsys.readouterr().err
    for ending in ("", "-wal", "-shm"):
        assert main(["export", "--all", f"{tmp_path}/source.db{ending}", *at]) == 2
        assert "it is the store" in capsys.readouterr().err
    assert main(["import", "--all", str(tmp_path / "a.zip"), "--labels-as", "a", *at]) == 2
    assert "leave out" in capsys.readouterr().err
    assert main(["import", "--all", str(tmp_path / "a.zip"), "--store", f"sqlite:///{tmp_path}/b.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["gold"] == 3


def test_a_row_that_points_nowhere_stops_the_import(source: Store, tmp_path: Path) -> None:
    """No archive that Touchstone wrote has one; nothing of it is kept."""
    with closing(sqlite3.connect(tmp_path / "source.db")) as connection, connection:
        connection.execute("UPDATE labels SET trace_pk = 12345 WHERE id = 1")
    path = exported(source, tmp_path / "a.zip")
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        import_all(f"sqlite:///{tmp_path}/target.db", path)
    target = open_store(f"sqlite:///{tmp_path}/target.db")
    assert all(lines == [] for lines in everything(target.engine).values())
