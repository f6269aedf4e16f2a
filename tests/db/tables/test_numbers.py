"""Numbers that are read as arrays are those that the tables hold, on both databases."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa

from calibrate.errors import StoreError
from calibrate.types import Record, Score, TraceFilter
from db import Store
from db.engine import reading
from db.tables import numbers
from tests.db.make import NOW, records, trace

pytestmark = pytest.mark.both_databases
COUNT = 200


@pytest.fixture
def scored(store: Store) -> tuple[Store, dict[int, float | None]]:
    """Every second trace has a score, every sixth one without a value."""
    store.traces.add(records(COUNT), labels_as=None, now=NOW)
    config = store.scores.config("overlap", "1", {}, "", now=NOW).id
    hashes = dict(pair for chunk in store.traces.keys(TraceFilter()) for pair in chunk)
    values = {pk: None if pk % 6 == 0 else pk * 1.1e-7 for pk in hashes if pk % 2 == 0}
    store.scores.save(config, [(hashes[pk], Score("", value, None)) for pk, value in values.items()], now=NOW)
    return store, values


@pytest.mark.parametrize("chunk", [1, 7, COUNT, COUNT * 10])
def test_arrays_hold_every_row_once_however_they_are_read(
    scored: tuple[Store, dict[int, float | None]], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "CHUNK", chunk)
    store, values = scored
    keys, scores = store.pools.scores(TraceFilter(), store.pools.moment(), [1, 1])
    assert keys.tolist() == list(range(1, COUNT + 1))
    expected = [[np.nan if values.get(pk) is None else values[pk]] * 2 for pk in keys.tolist()]
    np.testing.assert_array_equal(scores, np.array(expected, dtype=float))
    given = [values[pk] for pk in sorted(values)]
    np.testing.assert_array_equal(store.scores.window(1, TraceFilter()), np.array(given, dtype=float))
    assert list(store.traces.lacking(TraceFilter(), [1])) == [pk for pk in range(1, COUNT + 1) if pk % 2]


def test_nothing_is_an_array_without_rows(store: Store) -> None:
    keys, scores = store.pools.scores(TraceFilter(), store.pools.moment(), [1])
    assert (keys.shape, scores.shape) == ((0,), (0, 1))
    assert len(store.scores.window(1, TraceFilter())) == 0


def test_a_filter_may_hold_any_text(store: Store) -> None:
    name = "50 %(x)s % 'q' \\"
    store.traces.add([Record(1, trace(1, attributes={name: name})), *records(9)[1:]], labels_as=None, now=NOW)
    where = TraceFilter(attributes={name: name}, models=("a", "b"))
    assert store.pools.keys(where, store.pools.moment()).tolist() == [1]


def test_a_server_that_goes_away_under_a_read_is_an_error_of_the_store(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        return  # it has no server
    ended = sa.func.pg_terminate_backend(sa.func.pg_backend_pid())
    query = sa.select(sa.literal(1).label("key"), sa.cast(ended, sa.Integer).label("ended"))

    def read() -> None:
        with reading(store.engine) as connection:
            numbers.read_numbers(connection, query)

    with pytest.raises(StoreError):
        read()
