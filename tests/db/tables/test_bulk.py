"""Many rows at once, on both databases: what goes in comes back, and a write that fails leaves nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select, text

from calibrate.errors import StoreError
from calibrate.types import Evidence, Record, Score, Source, Token, TraceFilter, Usage
from db import Store
from db.engine import writing
from db.tables import TextRow, TraceRow
from db.tables.bulk import FEW, insert_many
from tests.db.make import NOW, records, rich

pytestmark = pytest.mark.both_databases

MANY = FEW * 3
AWKWARD = ["", "\\N", "\\.", "a\tb\nc\r\\", '{"a": null}', "漢字 😀 é", "'quoted' \"twice\"", "\x01\x1f\x7f"]


def test_many_traces_come_back_as_they_went_in(store: Store) -> None:
    given = [replace(rich(f"t{number}"), answer=AWKWARD[number % len(AWKWARD)]) for number in range(MANY)]
    given += [
        replace(
            one, id=f"again-{one.id}", question=one.answer, context=one.answer or None, model=None, timestamp=None,
            sources=(Source("1", one.answer, None, -0.5),), tokens=(Token(one.answer, -1e-300),), alternatives=(),
            schema=None, attributes={"k": one.answer},
        )
        for one in given
    ]  # fmt: skip
    added = store.traces.add([Record(line, one) for line, one in enumerate(given)], labels_as=None, now=NOW)
    assert added.imported == len(given)
    assert store.traces.load(range(1, len(given) + 1)) == given


def test_importing_many_again_adds_nothing(store: Store) -> None:
    store.traces.add(records(MANY), labels_as=None, now=NOW)
    revision = store.revision()
    again = store.traces.add(records(MANY), labels_as=None, now=NOW)
    more = store.traces.add(records(MANY + FEW), labels_as=None, now=NOW)
    assert (again.imported, again.duplicates) == (0, MANY)
    assert (more.imported, more.duplicates) == (FEW, MANY)
    assert store.revision() != revision


def test_many_scores_replace_those_of_the_same_contents(store: Store) -> None:
    store.traces.add(records(MANY), labels_as=None, now=NOW)
    config = store.scores.config("overlap", "1", {}, "", now=NOW).id
    hashes = [content for chunk in store.traces.keys(TraceFilter()) for _, content in chunk]
    first = [(content, Score("", None, "no sources", "failed")) for content in hashes]
    why = (Evidence("a\tb", 0.25, 1, 2, "1", (0, 3)),)
    second = [(content, Score("", 0.1 + n, None, "scored", why, 1.5, Usage())) for n, content in enumerate(hashes)]
    store.scores.save(config, first, now=NOW)
    revision = store.revision("scores")
    store.scores.save(config, second[: FEW + 1], now=NOW + timedelta(hours=1))
    store.scores.save(config, second[: FEW + 2], now=NOW + timedelta(hours=1))  # twice in one session
    assert store.revision("scores") != revision
    stored = {score.trace_id: score for pk in range(1, MANY + 1) for _, score in store.scores.of_trace(pk)}
    for n in range(MANY):
        expected = (second if n < FEW + 2 else first)[n][1]
        assert stored[f"t{n + 1}"] == replace(expected, trace_id=f"t{n + 1}")


@pytest.mark.parametrize("broken", ["twice", "nul"])
def test_a_write_that_fails_leaves_nothing(store: Store, broken: str) -> None:
    rows = [{"digest": number.to_bytes(16, "big"), "text": "text"} for number in range(MANY)]
    rows[-1] = rows[0] if broken == "twice" else {**rows[-1], "text": "a\x00b"}
    revision = store.revision()
    if broken == "nul" and store.engine.dialect.name == "sqlite":
        return  # it takes a NUL
    with pytest.raises(StoreError, match="nothing of this step was kept"), writing(store.engine) as connection:
        insert_many(connection, TextRow, rows)
    assert store.revision() == revision
    with store.engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(TextRow)) == 0


def test_a_server_that_goes_away_under_a_copy_is_an_error_of_the_store(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        return  # it has no server
    rows = [{"digest": number.to_bytes(16, "big"), "text": "text"} for number in range(MANY)]

    def write() -> None:
        with writing(store.engine) as connection:
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            with store.engine.connect() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            insert_many(connection, TextRow, rows)

    with pytest.raises(StoreError):
        write()
    store.traces.add(records(MANY), labels_as=None, now=NOW)
    with store.engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(TraceRow)) == MANY
