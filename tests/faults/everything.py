"""A store with rows in every table, of values that are easy to lose on the way; and all of it read again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine

from db.engine import writing
from db.tables import Base, UtcDateTime
from db.upkeep.rows import LEFT_OUT

ROWS = 3
TEXTS = ("Ünïcode ✓ 漢字 עברית \U0001f600\r\n\t\"quoted\" '%s' :name \\", "", "x" * 100_000)
DOCUMENTS: tuple[Any, ...] = (
    {"b": [1, 2.5, None, 5e-324, True], "a": {"ü\u2028": 2**60 + 1, "": "\x7f"}, "c": 1.0},
    [],
    [[[{}]], "z\ud800"],  # half a pair, as JavaScript may log it: in JSON only
)
NUMBERS = (0.1 + 0.2, 1.7976931348623157e308, float("inf"))
TIMES = (
    datetime(2026, 3, 29, 2, 30, 0, 123457, timezone(timedelta(hours=5, minutes=30))),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(9999, 12, 30, 23, 59, 59, 999999, UTC),
)


def fill(engine: Engine) -> None:
    """Three rows in every table of the metadata. In the last one, what may be null is."""
    rows: dict[str, list[dict[str, Any]]] = {}
    with writing(engine) as connection:
        for table in Base.metadata.sorted_tables:
            if table.name in LEFT_OUT:
                continue
            rows[table.name] = [{} for _ in range(ROWS)]
            for n, row in enumerate(rows[table.name]):
                for column in table.columns:
                    row[column.name] = _value(column, n, rows)
            connection.execute(sa.insert(table), rows[table.name])


def _value(column: sa.Column[Any], n: int, rows: dict[str, list[dict[str, Any]]]) -> Any:
    if column.foreign_keys:
        (parent, name) = next(iter(column.foreign_keys)).target_fullname.split(".")
        return rows[parent][n][name]
    if column.nullable and n == ROWS - 1:
        return None
    unique = column.primary_key or column.unique
    kind = column.type
    if isinstance(kind, sa.JSON):
        return DOCUMENTS[n]
    if isinstance(kind, sa.Boolean):
        return n % 2 == 0
    if isinstance(kind, sa.LargeBinary):
        return bytes([n, 0, 255, 39, 92] * 3) + b"\n"
    if isinstance(kind, sa.Integer):
        return 10**n if unique else (2**31 - 1, 0, -5)[n]
    if isinstance(kind, sa.Float):
        return NUMBERS[n]
    if isinstance(kind, sa.String):
        text = f"{n} é漢'\U0001f600" if unique else TEXTS[n]
        return text[: kind.length] if kind.length else text
    assert isinstance(kind, UtcDateTime), f"{column}: give this test values of {kind!r}"
    return TIMES[n]


def everything(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table, as the library reads it, to the last digit."""
    with engine.connect() as connection:
        return {
            table.name: sorted(repr(tuple(row)) for row in connection.execute(sa.select(table)))
            for table in Base.metadata.sorted_tables
            if table.name != "revisions"
        }
