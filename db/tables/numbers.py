"""Many rows of numbers as arrays. PostgreSQL hands them out as one binary COPY, which makes no object a row."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import Connection

from db.tables.bulk import driver_errors

CHUNK = 50_000  # rows in memory beside the arrays
BINARY = "(FORMAT BINARY)"
HEADER = 19  # bytes before the first row of a binary COPY; two follow the last


def read_numbers(
    connection: Connection,
    query: sa.Select[*tuple[Any, ...]],
    on_rows: Callable[[int], None] = lambda rows: None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The first column of a query, which is a key, and the others, one column each, NaN for NULL; in no order.

    `on_rows` is told now and then how many are read; it ends the reading by raising.
    """
    width = len(query.selected_columns) - 1
    read = _copied if connection.dialect.name == "postgresql" else _streamed
    keys, values = [np.empty(0, np.int64)], [np.empty((0, width))]
    done = 0
    with closing(read(connection, query, width)) as parts:
        for some_keys, some_values in parts:
            keys.append(some_keys)
            values.append(some_values)
            on_rows(done := done + len(some_keys))
    return np.concatenate(keys), np.concatenate(values)


_Chunks = Generator[tuple[NDArray[np.int64], NDArray[np.float64]]]


def _streamed(connection: Connection, query: sa.Select[*tuple[Any, ...]], width: int) -> _Chunks:
    rows = connection.execution_options(yield_per=CHUNK).execute(query)
    for part in rows.partitions():
        numbers = np.array([tuple(row) for row in part], dtype=np.float64).reshape(-1, 1 + width)
        yield numbers[:, 0].astype(np.int64), numbers[:, 1:]


def _copied(connection: Connection, query: sa.Select[*tuple[Any, ...]], width: int) -> _Chunks:
    # A cursor would be planned for its first rows, with a look-up a row; COPY is planned for all of them.
    key, *others = query.subquery().c
    floats: list[Any] = [
        sa.func.coalesce(sa.cast(column, sa.Double()), sa.literal("NaN", sa.Double())) for column in others
    ]
    statement = sa.select(sa.cast(key, sa.BigInteger), *floats)
    compiled = statement.compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    # Every field is 8 bytes behind its length, so each row is as long as the next.
    value = np.dtype([("size", ">i4"), ("number", ">f8")])
    row = np.dtype([("fields", ">i2"), ("key_size", ">i4"), ("key", ">i8"), ("values", value, (width,))])
    driver: Any = connection.connection
    command = f"COPY ({compiled}) TO STDOUT {BINARY}"
    with (
        driver_errors(connection, command),
        driver.cursor() as cursor,
        cursor.copy(command, compiled.params) as copy,
    ):
        held, skip = bytearray(), HEADER
        for block in copy:
            held += block
            if len(held) >= CHUNK * row.itemsize:
                yield _parse(held, skip, row)
                held, skip = bytearray(held[skip + (len(held) - skip) // row.itemsize * row.itemsize :]), 0
        yield _parse(held, skip, row)


def _parse(held: bytearray, skip: int, row: np.dtype[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rows = np.frombuffer(bytes(held), dtype=row, count=(len(held) - skip) // row.itemsize, offset=skip)
    return rows["key"].astype(np.int64), rows["values"]["number"].astype(np.float64)
