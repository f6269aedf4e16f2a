"""`check` finds what is wrong with a store, wherever it lies, and nothing in one that is sound."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from calibrate.cli import main
from calibrate.types import Record, Trace
from calibrate.workflow.releasing.release import release
from calibrate.workflow.upkeep.checking import check
from calibrate.workflow.upkeep.moving import export_all, import_all
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.db.make import NOW, label, rich
from tests.workflow.making import draw, fill, save


@pytest.fixture
def store(store: Store) -> Store:
    """Traces of every form, labels with changes of mind, scores, a saved point and a release."""
    labels, scores = draw()
    fill(store, labels, scores)
    odd = [
        rich(),
        Trace("bare", "answer"),
        Trace("empty context", "answer", context="", attributes={"retriever": 3}),
        Trace("true", "answer", context="c", attributes={"retriever": True, "n": 1.50}),
        Trace("schema", "answer", schema=False, alternatives=("", "")),
    ]
    store.traces.add([Record(n, trace) for n, trace in enumerate(odd)], labels_as=None, now=NOW)
    store.drawn.save(odd[1].content_hash(), ["another"], {}, detectors=(), now=NOW)
    for pk, verdict, by in ((1, "clean", "a"), (1, "hallucinated", "b"), (2, "unsure", "a"), (2, "clean", "a")):
        store.labels.add(pk, label(verdict, by), sample_id=None, now=NOW)
    store.labels.add(1, label("clean", "c", adjudicates=True), sample_id=None, now=NOW + timedelta(hours=1))
    save(store, "manual:0.5")
    release(store, ReleaseRequest(by="ann", reason="a test"), now=datetime.now(UTC))
    return store


def change(store: Store, *statements: str) -> None:
    """What a disk, a hand or a program of before did to a store: no rule of the database stands in the way."""
    if store.engine.dialect.name == "sqlite":
        path = store.engine.url.database
        assert path
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
        return
    with store.engine.connect() as connection, connection.begin():
        connection.execute(sa.text("SET session_replication_role = replica"))
        for statement in statements:
            connection.execute(sa.text(statement))


@pytest.mark.both_databases
def test_a_sound_store_has_nothing_wrong(store: Store) -> None:
    checked = check(store)
    assert checked.findings == ()
    assert (checked.traces, checked.labelled, checked.releases) == (65, 60, 1)


CASES = {
    "UPDATE texts SET text = text || '.' WHERE text = 'text 3'": {("texts", 1), ("contents", 5)},
    "UPDATE traces SET answer = 'another' WHERE trace_id = 't7'": {("contents", 1)},
    "UPDATE traces SET tokens = NULL WHERE trace_id = 'rich'": {("contents", 1)},
    "DELETE FROM texts WHERE text = 'text 3'": {("orphans", 5), ("contents", 5)},
    "UPDATE labels SET verdict = 'unsure' WHERE trace_pk = 3": {("gold", 1)},
    "DELETE FROM gold WHERE trace_pk = 5": {("gold", 1)},
    "UPDATE labels SET trace_pk = 12345 WHERE trace_pk = 5": {("orphans", 1), ("gold", 2)},
    'UPDATE detector_configs SET params = \'{"variant": "other"}\'': {("configurations", 1)},
    "UPDATE releases SET document = document || ' '": {("releases", 1)},
    "UPDATE releases SET version = 7": {("documents", 1), ("unlogged", 1), ("mislogged", 1)},
    "UPDATE operating_points SET config_id = 99": {("orphans", 1)},
}


@pytest.mark.both_databases
@pytest.mark.parametrize("statement", CASES)
def test_what_was_changed_is_told(store: Store, statement: str) -> None:
    change(store, statement)
    assert {(finding.trouble, finding.rows) for finding in check(store).findings} == CASES[statement]


UNGUARDED = {
    "sqlite": [
        ["DROP TRIGGER audit_no_delete"],
        [
            "DROP TRIGGER audit_no_update",
            "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT 1; END",
        ],
    ],
    "postgresql": [
        ["ALTER TABLE audit DISABLE TRIGGER USER"],
        ["DROP TRIGGER audit_append_only ON audit"],
        [
            "CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN NULL; END $$"
        ],
    ],
}


@pytest.mark.both_databases
@pytest.mark.parametrize("number", range(3))
def test_an_audit_log_that_nothing_guards_is_told(store: Store, number: int) -> None:
    cases = UNGUARDED[store.engine.dialect.name]
    if number < len(cases):
        change(store, *cases[number])
        assert [(finding.trouble, finding.place) for finding in check(store).findings] == [("unguarded", "audit")]


# What was done to the log of a release and a proposal, and what is told of it beside gaps.
TAKEN_OUT = {
    "DELETE FROM audit WHERE verb = 'released'": [("unlogged", "release v1")],
    "UPDATE audit SET what = 'v3' WHERE verb = 'released'": [
        ("unlogged", "release v1"),
        ("mislogged", "release v3"),
    ],
    'UPDATE audit SET after = \'{"version": 1, "sha256": "00"}\' WHERE verb = \'released\'': [
        ("mislogged", "release v1")
    ],
    "DELETE FROM audit WHERE verb = 'release proposed'": [("unlogged", "proposal 1")],
}


@pytest.mark.both_databases
@pytest.mark.parametrize("statement", TAKEN_OUT)
def test_an_entry_that_is_missing_or_other_than_the_release_is_told(store: Store, statement: str) -> None:
    store.proposals.add(ReleaseRequest(by="ann"), expected=2, content="x", now=datetime.now(UTC))
    sqlite = store.engine.dialect.name == "sqlite"
    triggers = [f"DROP TRIGGER audit_no_{action}" for action in ("update", "delete")] if sqlite else []
    change(store, *triggers, statement)
    told = [(finding.trouble, *finding.examples) for finding in check(store).findings if finding.place == "audit"]
    assert [each for each in told if each[0] not in ("gaps", "unguarded")] == TAKEN_OUT[statement]


def test_a_gap_in_the_log_is_told_unless_it_came_with_an_archive(store: Store, tmp_path: Path) -> None:
    for _ in range(4):
        store.audit.note("purged", "a trace")
    newest = store.audit.entries()[0].id
    change(store, "DROP TRIGGER audit_no_delete", f"DELETE FROM audit WHERE id IN ({newest - 1}, {newest - 2})")
    (finding,) = (finding for finding in check(store).findings if finding.trouble == "gaps")
    assert finding.examples == (f"{newest - 2} to {newest - 1}",)
    # PostgreSQL leaves gaps by itself, and they come with its archives.
    export_all(store, tmp_path / "a.zip", now=NOW)
    import_all(f"sqlite:///{tmp_path}/moved.db", tmp_path / "a.zip")
    moved = open_store(f"sqlite:///{tmp_path}/moved.db")
    assert check(moved).findings == ()
    for _ in range(2):
        moved.audit.note("purged", "a trace")
    change(moved, "DROP TRIGGER audit_no_delete", f"DELETE FROM audit WHERE id = {newest + 1}")
    assert (f"{newest + 1}",) in [finding.examples for finding in check(moved).findings]
    moved.close()


def test_a_release_whose_text_and_sha256_were_both_changed_is_told_by_its_own_digest(store: Store) -> None:
    stored = store.releases.get(1)
    assert stored is not None
    document = stored.document.replace('"threshold": 0.5', '"threshold": 0.05')
    assert document != stored.document
    digest = hashlib.sha256(document.encode()).hexdigest()
    with store.engine.connect().execution_options(touched=set()) as connection, connection.begin():
        connection.execute(sa.text("UPDATE releases SET document = :d, sha256 = :s"), {"d": document, "s": digest})
    log, finding = check(store).findings
    assert (finding.trouble, finding.rows) == ("documents", 1)
    assert "digest" in finding.examples[0]
    assert (log.trouble, log.examples) == ("mislogged", ("release v1",))


def test_the_command_ends_with_1_and_names_what_is_wrong(
    sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(sqlite_url)
    store.traces.add([Record(1, Trace("t1", "an answer"))], labels_as=None, now=NOW)
    store.close()
    assert main(["check", "--store", sqlite_url]) == 0
    assert "is sound" in capsys.readouterr().out
    with closing(sqlite3.connect(tmp_path / "touchstone.db")) as connection, connection:
        connection.execute("UPDATE traces SET answer = 'another'")
    assert main(["check", "--store", sqlite_url]) == 1
    assert "t1" in capsys.readouterr().out
    assert main(["check", "--store", sqlite_url, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding == {"trouble": "contents", "place": "traces", "rows": 1, "examples": ["t1"]}


def test_a_page_that_cannot_be_read_is_told_and_the_rest_is_looked_at(
    sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "touchstone.db"
    store = open_store(sqlite_url)
    labels, scores = draw(200)
    fill(store, labels, scores)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        query = "SELECT max(pageno) FROM dbstat WHERE name = 'traces' AND pagetype = 'leaf'"
        try:
            page = connection.execute(query).fetchone()[0]
        except sqlite3.OperationalError:
            page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'traces'").fetchone()[0]
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    assert main(["check", "--store", sqlite_url]) == 1
    said = capsys.readouterr()
    assert "damaged" in said.out + said.err or "malformed" in said.out + said.err
    assert "this should not happen" not in said.err
