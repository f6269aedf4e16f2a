"""Every row of every table, out of one store and into another, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.types import TypeEngine

from calibrate.errors import BadInput
from calibrate.urls import redact
from db.engine import reading, serialise, writing
from db.tables import Base, UtcDateTime
from db.upkeep.audit_trail import note_gaps

# Random stamps by which reads are cached, counts of traces, and who works at this moment: they are no data, and every
# store makes its own.
LEFT_OUT = {"revisions", "trace_days", "joiners"}
AT_ONCE = 200  # rows that are fetched together; one may hold megabytes


class Kind(StrEnum):
    """What a column holds. A document is JSON text, to the letter."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    BYTES = "bytes"
    TIME = "time"
    DOCUMENT = "document"


# The first that fits counts.
_KINDS: tuple[tuple[type[TypeEngine[Any]] | type[UtcDateTime], Kind], ...] = (
    (UtcDateTime, Kind.TIME),
    (sa.JSON, Kind.DOCUMENT),
    (sa.Boolean, Kind.BOOLEAN),
    (sa.LargeBinary, Kind.BYTES),
    (sa.Integer, Kind.INTEGER),
    (sa.Float, Kind.NUMBER),
    (sa.String, Kind.TEXT),
)
_TYPES: dict[Kind, type[TypeEngine[Any]] | type[UtcDateTime]] = {
    Kind.TIME: UtcDateTime,
    Kind.DOCUMENT: sa.Text,  # not parsed on its way
    Kind.BOOLEAN: sa.Boolean,
    Kind.BYTES: sa.LargeBinary,
    Kind.INTEGER: sa.BigInteger,
    Kind.NUMBER: sa.Float,
    Kind.TEXT: sa.Text,
}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as it is moved: its name, and its columns in order."""

    name: str
    columns: tuple[Column, ...]


Rows = Sequence[tuple[Any, ...]]


def shapes() -> list[Shape]:
    """Every table whose rows are moved, one that others point to before them."""
    return [
        Shape(table.name, tuple(Column(column.name, _kind(column)) for column in table.columns))
        for table in Base.metadata.sorted_tables
        if table.name not in LEFT_OUT
    ]


def _kind(column: sa.Column[Any]) -> Kind:
    for stored, kind in _KINDS:
        if isinstance(column.type, stored):
            return kind
    raise TypeError(f"{column.table.name}.{column.name}: nobody has said how a {column.type!r} is moved")


class Snapshot:
    """A store as it was at one moment, whoever writes to it meanwhile."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, shape: Shape) -> int:
        return self._connection.scalar(select(func.count()).select_from(sa.table(shape.name))) or 0

    def rows(self, shape: Shape) -> Iterator[Rows]:
        """Every row by its key, a few at a time. Text is in the order of its code points, on every database."""
        table = Base.metadata.tables[shape.name]
        columns = [
            sa.cast(table.c[column.name], sa.Text).label(column.name)
            if column.kind == Kind.DOCUMENT
            else table.c[column.name]
            for column in shape.columns
        ]
        keys = [
            sa.collate(key, "C") if self._connection.dialect.name == "postgresql" and _kind(key) == Kind.TEXT else key
            for key in table.primary_key
        ]
        query = select(*columns).order_by(*keys)
        for part in self._connection.execute(query, execution_options={"yield_per": AT_ONCE}).partitions():
            yield [tuple(row) for row in part]


@contextmanager
def snapshot(engine: Engine) -> Iterator[Snapshot]:
    """Read a store as it is now. Raises StoreError."""
    with reading(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        yield Snapshot(connection)


class Filling:
    """An empty store that gets every row of another in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, shape: Shape, rows: Rows) -> None:
        names = [column.name for column in shape.columns]
        if rows:
            self._connection.execute(self._statement(shape), [dict(zip(names, row, strict=True)) for row in rows])

    def _statement(self, shape: Shape) -> sa.Insert:
        table = sa.table(shape.name, *(sa.column(column.name, _TYPES[column.kind]()) for column in shape.columns))
        if self._connection.dialect.name != "postgresql":
            return sa.insert(table)
        # PostgreSQL takes a document as a document only.
        values: dict[str, Any] = {column.name: sa.bindparam(column.name) for column in shape.columns}
        for column in shape.columns:
            if column.kind == Kind.DOCUMENT:
                values[column.name] = sa.cast(sa.bindparam(column.name, type_=sa.Text), sa.JSON)
        return sa.insert(table).values(values)

    def finish(self) -> None:
        """Let PostgreSQL count on from the keys that came with the rows, and SQLite know of their gaps."""
        note_gaps(self._connection)
        if self._connection.dialect.name != "postgresql":
            return
        for table in Base.metadata.sorted_tables:
            for key in table.primary_key:
                sequence = self._connection.scalar(select(func.pg_get_serial_sequence(table.name, key.name)))
                newest = self._connection.scalar(select(func.max(key))) if sequence else None
                if newest is not None:
                    self._connection.execute(select(func.setval(sequence, newest)))


@contextmanager
def filling(engine: Engine) -> Iterator[Filling]:
    """Fill an empty store: every row is kept when the body succeeds, else none. Raises BadInput where it holds any."""
    with writing(engine) as connection:
        serialise(connection)
        if holder := holding(connection):
            raise BadInput(
                f"the store {redact(str(engine.url))} is not empty (it has rows in {holder}), and an archive becomes a "
                "whole store: name one that does not exist yet with --store"
            )
        target = Filling(connection)
        yield target
        target.finish()


def holding(connection: Connection) -> str | None:
    """The name of a table that has rows; None in an empty store."""
    for table in Base.metadata.sorted_tables:
        if table.name not in LEFT_OUT and connection.execute(select(sa.literal(1)).select_from(table).limit(1)).first():
            return table.name
    return None
