"""Rows of an older schema, brought up to date by the same migrations as any store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine, create_engine, inspect

from calibrate.errors import BadInput
from db.engine import MIGRATIONS, connect
from db.upkeep.rows import LEFT_OUT, Column, Filling, Kind, Rows, Shape


@contextmanager
def migrated(
    schema: str, tables: Sequence[Shape], rows_of: Callable[[Shape], Iterator[Rows]], folder: Path | None
) -> Iterator[Engine]:
    """A store of today with these rows of an older schema, in a temporary folder inside `folder`.

    Raises BadInput where the tables are not those of that schema.
    """
    with TemporaryDirectory(prefix=".touchstone-", dir=folder) as name:
        url = f"sqlite:///{name}/older.db"
        older = create_engine(url)
        try:
            _build(older, schema)
            refuse_unless_same(tables, _shapes(older, tables), schema)
            with older.begin() as connection:
                target = Filling(connection)
                for shape in tables:
                    for rows in rows_of(shape):
                        target.insert(shape, rows)
        finally:
            older.dispose()
        engine = connect(url)
        try:
            yield engine
        finally:
            engine.dispose()


def refuse_unless_same(tables: Sequence[Shape], expected: Sequence[Shape], schema: str) -> None:
    """Raises BadInput unless these are the tables and columns that are expected, in any order."""
    names, wanted = {shape.name for shape in tables}, {shape.name for shape in expected}
    for name in sorted(names ^ wanted):
        problem = "lacks" if name in wanted else "has"
        raise BadInput(f"the archive {problem} the table {name!r}, unlike a store of schema {schema}; take another")
    columns = {shape.name: set(shape.columns) for shape in expected}
    for shape in tables:
        for column in sorted(columns[shape.name] ^ set(shape.columns), key=lambda column: column.name):
            raise BadInput(
                f"the column {column.name!r} of {shape.name!r} in the archive is not that of a store of schema "
                f"{schema}; take another"
            )


def _shapes(engine: Engine, tables: Sequence[Shape]) -> list[Shape]:
    """The tables of a store, with the kinds that these have: a database does not keep them."""
    kinds = {(shape.name, column.name): column.kind for shape in tables for column in shape.columns}
    stored = inspect(engine)
    names = set(stored.get_table_names()) - LEFT_OUT - {"alembic_version"}
    return [
        Shape(
            name,
            tuple(
                Column(column["name"], kinds.get((name, column["name"]), Kind.TEXT))
                for column in stored.get_columns(name)
            ),
        )
        for name in sorted(names)
    ]


def _build(engine: Engine, schema: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, schema)
