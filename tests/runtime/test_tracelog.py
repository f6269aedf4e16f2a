"""The trace log: what a program appends is what an import makes, whatever becomes of the database meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.ingest import import_file
from calibrate.runtime import TraceLog
from calibrate.runtime.tracelog.inserts import INSERT
from calibrate.types import Source, TraceFilter
from calibrate.workflow.traces.logged import take_logged
from db import Store, open_store
from db.tables import LoggedRow, table

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@contextmanager
def logging_to(url: str, **settings: Any) -> Iterator[TraceLog]:
    log = TraceLog(url, **{"every": 0.05, "timeout": 0.4} | settings)
    try:
        yield log
    finally:
        log.close(5)


@contextmanager
def standstill(store: Store) -> Iterator[None]:
    """Somebody else holds the table, and does not let go."""
    with store.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("LOCK TABLE logged IN ACCESS EXCLUSIVE MODE")
        else:
            connection.exec_driver_sql("ROLLBACK")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield
        connection.exec_driver_sql("ROLLBACK")


def answers_in(store: Store) -> list[str]:
    take_logged(store, now=NOW)
    return sorted(line.answer for line in store.traces.page(TraceFilter(), limit=100_000).lines)


def rows_of(store: Store) -> dict[str, list[Any]]:
    """Every column of what an import writes, but for the moment of it."""
    tables = ("traces", "sources", "texts", "trace_days")
    with store.engine.connect() as connection:
        rows = {
            name: [dict(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}").mappings()]
            for name in tables
        }
    for row in rows["traces"]:
        del row["imported_at"]
    return {name: sorted(map(repr, rows[name])) for name in tables}


@pytest.mark.both_databases
def test_what_is_appended_is_what_an_import_makes_of_it(store: Store, store_url: str, tmp_path: Path) -> None:
    when = NOW - timedelta(minutes=3)
    tokens = [{"token": "Two", "logprob": -0.5, "top_logprobs": [{"token": "One", "logprob": -2.5}]}]
    lines = [
        {
            "answer": "Two years [1]. \x00 é 漢", "timestamp": when.isoformat(), "question": "How long?",
            "context": "All of it.",
            "sources": [{"number": "1", "text": "24 months.", "title": "Warranty", "retrieval_score": 0.5}],
            "model": "m-1", "operation": "chat", "group": "g", "tokens": tokens, "alternatives": ["2 years."],
            "schema": {"type": "string"}, "attributes": {"user": "u", "tries": 3, "cached": True},
        },
        {"answer": "plain", "timestamp": when.isoformat(), "trace_id": "own-1", "sources": ["24 months."]},
        {"answer": "at a second", "timestamp": 1_763_640_000, "sources": {"7": "24 months."}},
    ]  # fmt: skip
    with logging_to(store_url) as log:
        source = Source("1", "24 months.", "Warranty", 0.5)
        assert log.append(**{**lines[0], "timestamp": when, "sources": [source]})  # type: ignore[arg-type]
        assert log.append(**lines[1])  # type: ignore[arg-type]
        assert log.append(**lines[2])  # type: ignore[arg-type]
        assert log.flush(10)
        assert (log.counters.written, log.counters.waiting) == (3, 0)
    taken = take_logged(store, now=NOW)
    assert (taken.imported, taken.rejected, store.logged.count()) == (3, 0, 0)
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with closing(open_store(f"sqlite:///{tmp_path}/imported.db")) as other:
        import_file(other.traces, path, now=NOW)
        keys = [store.traces.keys_of([trace.id]).keys() for trace in other.traces.load([1, 2, 3])]
        assert all(keys)  # the ids that are made from the content too
        if store.file is not None:
            assert rows_of(store) == rows_of(other)
    assert import_file(store.traces, path, now=NOW).duplicates == 3


def test_the_statement_is_the_tables() -> None:
    assert re.fullmatch(r"INSERT INTO (\w+) \((\w+)\) VALUES \(\{\}\)", INSERT).groups() == (
        LoggedRow.__tablename__, *(column.name for column in table(LoggedRow).columns if not column.primary_key),
    )  # fmt: skip


@pytest.mark.postgres
def test_a_role_that_may_insert_is_enough(postgres_url: str) -> None:
    import psycopg

    role = f"service_{uuid4().hex[:8]}"
    with closing(open_store(postgres_url)) as store, psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'hunter-2'")  # type: ignore[arg-type]
        owner.execute(f"GRANT INSERT ON logged TO {role}")  # type: ignore[arg-type]
        url = re.sub(r"//[^/@]*@", f"//{role}:hunter-2@", postgres_url)
        try:
            with logging_to(url) as log:
                log.append("Two years.", trace_id="a")
                assert log.flush(10)
            with psycopg.connect(url, autocommit=True) as service:
                for statement in (
                    "SELECT * FROM logged", "DELETE FROM logged", "SELECT * FROM traces",
                    "INSERT INTO revisions VALUES ('x', 1)",
                ):  # fmt: skip
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        service.execute(statement)
            assert answers_in(store) == ["Two years."]
        finally:
            owner.execute(f"DROP OWNED BY {role}")  # type: ignore[arg-type]
            owner.execute(f"DROP ROLE {role}")  # type: ignore[arg-type]


@pytest.mark.both_databases
def test_a_database_that_stands_still_holds_nobody_up(store: Store, store_url: str) -> None:
    with logging_to(store_url, max_queue=400, batch=50) as log:
        took = []
        with standstill(store):
            for n in range(600):
                began = time.perf_counter()
                log.append(f"answer {n}", trace_id=f"t{n}", sources=["x" * 5_000])
                took.append(time.perf_counter() - began)
            assert not log.flush(1.0)  # longer than the lock is waited for: a try has failed by then
            assert (log.counters.waiting, log.counters.dropped) == (400, 200)
        assert sorted(took)[570] < 0.001  # the 95th percentile, in seconds
        assert log.flush(20)
        assert log.counters.written == 400
    assert len(answers_in(store)) == 400


@pytest.mark.both_databases
def test_it_goes_on_when_the_database_comes_back(store: Store, store_url: str) -> None:
    with logging_to(store_url) as log:
        log.append("before")
        assert log.flush(10)
        with away(store):
            log.append("meanwhile")
            assert not log.flush(0.5)
            assert log.counters.waiting == 1
        assert log.flush(20)
    assert answers_in(store) == ["before", "meanwhile"]


@contextmanager
def away(store: Store) -> Iterator[None]:
    """The server refuses, and ends the connections that there are; the file is moved away."""
    if store.file is not None:
        elsewhere = store.file.with_suffix(".away")
        store.engine.dispose()
        store.file.rename(elsewhere)
        yield
        elsewhere.rename(store.file)
        return
    name = store.engine.url.database
    server = sa.create_engine(store.engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        connection.execute(sa.text(ends), {"name": name})
        yield
        connection.execute(sa.text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
    server.dispose()
    store.engine.dispose()


def test_what_cannot_be_a_record_is_counted_and_never_raised(store: Store, sqlite_url: str) -> None:
    within: list[Any] = []
    within.append(within)
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with logging_to(sqlite_url) as log:
        assert not log.append(None)  # type: ignore[arg-type]
        assert not log.append("x", sources=7)  # type: ignore[arg-type]
        for odd in (float("nan"), object(), within, deep, {1: {2}}):
            log.append("odd", attributes={"odd": odd})
        assert log.append("good", trace_id=str(UUID(int=7)), attributes={"half": "\ud800"})
        assert log.append("rejected", trace_id="y" * 501)
        assert log.flush(10)
        counters = log.counters
    assert (counters.written, counters.failed, counters.dropped, counters.waiting) == (2, 7, 0, 0)
    taken = take_logged(store, now=NOW)
    assert (taken.imported, taken.rejected, store.logged.count()) == (1, 1, 0)
    reason = taken.errors[0].reason
    assert reason.startswith("trace 'yyy")
    assert "at most 500" in reason
    noted = store.audit.entries(verb="logged answers rejected")[0].after
    assert noted["rejected"] == 1
    assert noted["each"][0].startswith("trace 'yyy")
    with log._changed:
        assert log._bytes == 0
    assert not log.append("late")
    assert log.counters.dropped == 1


def test_what_is_no_record_in_the_table_is_rejected_and_the_rest_goes_on(store: Store, sqlite_url: str) -> None:
    """Another program may hold the role: it may put anything there."""
    odd = ["", "[1]", "{", '{"answer": 7}', '{"answer": "a", "answer": "b"}', "[" * 200_000, '{"answer": "fine"}']
    big = json.dumps({"answer": "x" * 17_000_000})
    label = '{"answer": "labelled", "label": "clean"}'
    with store.engine.connect() as connection:
        for record in (*odd, big, label):
            connection.exec_driver_sql("INSERT INTO logged (record) VALUES (?)", (record,))
        connection.exec_driver_sql("COMMIT")
    taken = take_logged(store, now=NOW)
    assert (taken.imported, taken.rejected, store.logged.count()) == (2, 7, 0)
    assert (taken.labels_left_out, store.labels.count()) == (1, 0)


def test_a_field_of_the_wrong_shape_fails_at_once(
    store: Store, sqlite_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrate.runtime.notices._logged", set())
    wrong: list[dict[str, Any]] = [
        {"sources": "a secret passage"}, {"sources": [7]}, {"sources": {"1": None}},
        {"timestamp": "yesterday"}, {"timestamp": True}, {"timestamp": -1.0},
        {"question": 5}, {"context": ["x"]}, {"model": 1.5}, {"trace_id": ["x"]},
        {"tokens": {"a": -1.0}}, {"alternatives": "another"}, {"attributes": [1]},
    ]  # fmt: skip
    right: list[dict[str, Any]] = [
        {"sources": ("a", Source("2", "b"), {"text": "c"})}, {"sources": {"1": "a"}}, {"sources": []},
        {"timestamp": "2026-11-20"}, {"timestamp": NOW.timestamp()}, {"timestamp": NOW}, {"timestamp": NOW.date()},
        {"model": 7}, {"alternatives": ("another",)}, {"schema": True},
    ]  # fmt: skip
    with logging_to(sqlite_url) as log:
        for n, fields in enumerate(wrong):
            assert not log.append(f"wrong {n}", **fields), fields
        for n, fields in enumerate(right):
            assert log.append(f"right {n}", **fields), fields
        assert log.flush(10)
        assert (log.counters.failed, log.counters.written) == (len(wrong), len(right))
    assert [record.getMessage().count("sources is of type str") for record in caplog.records] == [1]
    assert "secret" not in caplog.text
    taken = take_logged(store, now=NOW)
    assert (taken.imported, taken.rejected) == (len(right), 0)


def test_what_is_rejected_is_named_in_report_and_audit_log(
    store: Store, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(sqlite_url) as log:
        for n in range(25):
            log.append("an answer", trace_id=f"order-{n}", tokens=[{"token": 7}])
        assert log.flush(10)
    monkeypatch.setenv("TOUCHSTONE_STORE", sqlite_url)
    assert main(["import", "--logged"]) == 0
    lines = capsys.readouterr().out.splitlines()
    noted = store.audit.entries(verb="logged answers rejected")[0].after["each"]
    assert len(noted) == 20
    for n in range(20):
        assert f"trace 'order-{n}': tokens[0].token" in lines[n + 1]
        assert noted[n].startswith(f"trace 'order-{n}': tokens[0].token")


def test_a_preview_takes_nothing_in(
    store: Store, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(sqlite_url) as log:
        log.append("an answer")
    monkeypatch.setenv("TOUCHSTONE_STORE", sqlite_url)
    for option in ("--preview", "--strict"):
        assert main(["import", "--logged", option]) == 2
        assert "leave out files and what is about files" in capsys.readouterr().err
    assert (store.logged.count(), store.traces.count(TraceFilter())) == (1, 0)


def test_what_is_redacted_and_left_out_never_reaches_the_store(
    store: Store, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logging_to(sqlite_url, redact="email") as log:
        log.append(
            "Write to ann@example.com.", question="Who is ann@example.com?", trace_id="a", tokens=[{"token": "ann"}]
        )
        assert log.flush(10)
    with logging_to(sqlite_url, redact=lambda record: record if "keep" in record["answer"] else None) as log:
        log.append("keep this")
        log.append("not this")
        assert log.flush(10)
        assert (log.counters.written, log.counters.left_out) == (1, 1)
    said: list[str] = []
    monkeypatch.setattr("calibrate.runtime.tracelog.log.log_once", lambda kind, problem: said.append(problem))
    with logging_to(sqlite_url, redact=lambda record: {}[record["answer"]]) as log:
        log.append("a secret")
        assert log.flush(10)
        assert log.counters.failed == 1
    assert said == ["KeyError while it was redacted; it is in no store"]
    with store.engine.connect() as connection:
        records = [json.loads(text) for (text,) in connection.exec_driver_sql("SELECT record FROM logged")]
    assert records[0] == {
        "trace_id": "a", "timestamp": records[0]["timestamp"], "answer": "Write to [e-mail 1].",
        "question": "Who is [e-mail 1]?",
    }  # fmt: skip
    assert [record["answer"] for record in records[1:]] == ["keep this"]


def test_a_share_is_logged(store: Store, sqlite_url: str) -> None:
    with logging_to(sqlite_url, share=0.25) as log:
        for n in range(2_000):
            log.append(str(n))
        log.flush(10)
        counters = log.counters
    assert counters.written + counters.left_out == 2_000
    assert 380 < counters.written < 620  # six standard deviations of the binomial


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("mysql://x/y", {}, "not one: write sqlite"),
        ("sqlite://", {}, "in memory"),
        ("sqlite:///x.db", {"share": 0}, "share cannot be 0"),
        ("sqlite:///x.db", {"max_queue": 0}, "max_queue cannot be 0"),
        ("sqlite:///x.db", {"redact": 7}, "redact cannot be 7"),
        ("sqlite:///x.db", {"redact": "shoes"}, "shoes"),
    ],
)
def test_a_wrong_setting_is_said_at_once(url: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        TraceLog(url, **settings)


SERVICE = """
import os, sys, time
from calibrate.runtime import TraceLog
log = TraceLog(sys.argv[1], every=0.05)
log.append("of the parent", trace_id="p1")
if sys.argv[2] == "fork":
    log.flush()
    log.append("queued before the fork", trace_id="p2")
    child = os.fork()
    log.append("of the child" if not child else "after it", trace_id="c1" if not child else "p3")
    if child:
        os.waitpid(child, 0)
    else:
        assert log.flush()
        os._exit(0)
elif sys.argv[2] == "kill":
    for n in range(4_000):
        log.append(f"number {n}", trace_id=f"t{n}")
        if n == 2_000:
            log.flush()
            print("flushed", flush=True)
    time.sleep(60)
"""


def service(url: str, what: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SERVICE, url, what]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.both_databases
def test_a_program_that_ends_or_forks_writes_each_answer_once(store: Store, store_url: str) -> None:
    with service(store_url, "fork") as program:
        assert program.wait(30) == 0
    with service(store_url, "end") as program:
        assert program.wait(30) == 0
    assert store.logged.count() == 5
    taken = take_logged(store, now=NOW)
    assert (taken.imported, taken.duplicates) == (4, 1)
    assert answers_in(store) == ["after it", "of the child", "of the parent", "queued before the fork"]


@pytest.mark.both_databases
def test_a_kill_loses_what_was_queued_and_nothing_else(store: Store, store_url: str) -> None:
    with service(store_url, "kill") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "flushed\n"
        program.send_signal(signal.SIGKILL)
    written = store.logged.count()
    assert written >= 2_002
    # A kill between the import and the removal: what is in both is a duplicate the next time.
    killer = (
        "import os, sys, signal, db, datetime\n"
        "from calibrate.workflow.traces.logged import take_logged\n"
        "store = db.open_store(sys.argv[1])\n"
        "store.logged.settle = lambda ids: os.kill(os.getpid(), signal.SIGKILL)\n"
        "take_logged(store, now=datetime.datetime.now(datetime.UTC))\n"
    )
    done = subprocess.run([sys.executable, "-c", killer, store_url], cwd=ROOT, env={**os.environ})
    assert done.returncode == -signal.SIGKILL
    assert store.logged.count() == written
    taken = take_logged(store, now=NOW)
    assert (taken.imported, taken.duplicates, taken.rejected) == (written - 500, 500, 0)
    assert store.logged.count() == 0
