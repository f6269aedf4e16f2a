"""Many rows at once: PostgreSQL takes them as one COPY, SQLite row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Table, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from db import revision
from db.tables.base import Base, table

FEW = 50
"""Fewer rows than this are not worth the round trips of a COPY."""


def insert_many(connection: Connection, row: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows whose keys are new."""
    if not _pays(connection, rows):
        if rows:
            connection.execute(insert(table(row)), rows)
        return
    revision.touch(connection, table(row))
    _copy(connection, table(row), rows)


def upsert_many(
    connection: Connection, row: type[Base], rows: Sequence[Mapping[str, Any]], *, replacing: Sequence[str]
) -> None:
    """Inserts rows, and replaces these columns of those whose key is there already. No key may come twice."""
    if not _pays(connection, rows):
        if rows:
            connection.execute(upsert(connection, row, replacing=replacing), rows)
        return
    # COPY knows no conflicts: the rows wait in a table that only this session sees, empty after each transaction.
    target, columns = table(row), list(rows[0])
    waiting = Table(
        f"incoming_{target.name}",
        sa.MetaData(),
        *(sa.Column(column, target.c[column].type) for column in columns),
        prefixes=["TEMPORARY"],
        postgresql_on_commit="DELETE ROWS",
    )
    connection.execute(CreateTable(waiting, if_not_exists=True))
    _copy(connection, waiting, rows)
    statement = postgresql.insert(target).from_select(columns, sa.select(waiting))
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=list(target.primary_key), set_={column: statement.excluded[column] for column in replacing}
        )
    )


def upsert(connection: Connection, row: type[Base], *, replacing: Sequence[str] = ()) -> Any:
    """An insert that skips rows whose key exists already, or replaces these columns of them."""
    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table(row))
    if not replacing:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(
        index_elements=list(table(row).primary_key), set_={name: statement.excluded[name] for name in replacing}
    )


def among(connection: Connection, column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
    """Whether a column has one of many values: one parameter on PostgreSQL, which reads a thousand slowly."""
    if connection.dialect.name != "postgresql":
        return column.in_(values)  # type: ignore[no-any-return]
    array = sa.bindparam(None, list(values), postgresql.ARRAY(column.type), unique=True)
    return column == sa.any_(array)  # type: ignore[no-any-return]


def _pays(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> bool:
    return connection.dialect.name == "postgresql" and len(rows) >= FEW


def _copy(connection: Connection, target: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """One COPY, with values as SQLAlchemy would bind them."""
    dialect = connection.dialect
    columns = [target.c[column] for column in rows[0]]
    processors = [column.type.dialect_impl(dialect).bind_processor(dialect) for column in columns]
    converted = [(column.name, process) for column, process in zip(columns, processors, strict=True)]
    names = ", ".join(dialect.identifier_preparer.quote(column.name) for column in columns)
    statement = f"COPY {target.name} ({names}) FROM STDIN"
    driver: Any = connection.connection
    with driver_errors(connection, statement), driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([process(row[column]) if process else row[column] for column, process in converted])


@contextmanager
def driver_errors(connection: Connection, statement: str) -> Iterator[None]:
    """What SQLAlchemy does for every statement but COPY, which it does not know: errors of the driver become its own,
    and a connection that is lost is not used again."""
    driver: Any = connection.connection
    kind = connection.dialect.loaded_dbapi.Error
    try:
        yield
    except kind as error:
        if driver.driver_connection.closed:
            connection.invalidate(error)
        raise DBAPIError.instance(statement, None, error, kind, dialect=connection.dialect) from error
