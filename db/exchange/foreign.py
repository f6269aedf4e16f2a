"""A query on somebody else's database: read only, row by row, with a limit on the time that each step takes.

Two things keep it from writing: the session may only read, and the query is sent with a parameter, which takes one
statement alone.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from calibrate.errors import BadInput, StoreError
from calibrate.urls import redact
from db.exchange.any_time import take_any_time
from db.opening.failures import reason

Kind = Literal["time", "date", "number", "text", "uuid"]
SINCE = "since"
_PARAMETER = re.compile(r"(?<![:\w\\]):(\w+)(?!\w|:)")
_KINDS: dict[int, Kind] = {
    1184: "time", 1114: "time", 1082: "date", 20: "number", 21: "number", 23: "number", 700: "number", 701: "number",
    1700: "number", 2950: "uuid",
}  # fmt: skip
_TEXTS = (25, 1042, 1043)
_EXAMPLES = 20  # rows
_BELOW_ALL = -9_000_000_000_000_000_000
_STEPS = 10_000  # of SQLite's machine, between two looks at the clock


@dataclass(frozen=True, slots=True)
class Shape:
    """What a query gives: its columns, and of the cursor column the kind, with values of it where some were looked
    at. None without a cursor, or where there are no rows to tell."""

    columns: tuple[str, ...]
    kind: Kind | None = None
    examples: tuple[Any, ...] = ()


class ForeignQuery:
    """A query that is ready to be read. `cursor` is the column in whose order rows come; `seconds` is the most that a
    step may take: to begin, and to fetch the next rows."""

    def __init__(self, url: str, query: str, *, cursor: str | None = None, seconds: float = 60) -> None:
        self.url = _parse(url)
        self._query, self._cursor, self._seconds = _clean(query), cursor, seconds
        self._deadline = 0.0
        self._engine = self._connectable()

    @property
    def has_since(self) -> bool:
        return SINCE in _PARAMETER.findall(self._query)

    @property
    def limit(self) -> int | None:
        """The most rows that the query itself lets through; 0 for a number that it computes, None without a LIMIT."""
        return _limit(self._query)

    @property
    def place(self) -> str:
        """Which database it is: its host, with a port that is not the usual one, and its name; a file's path."""
        return place_of(self.url)

    def close(self) -> None:
        self._engine.dispose()

    def shape(self) -> Shape:
        """Looks at the columns. Raises BadInput for a query that the database does not take."""
        with self._reading() as connection:
            self._begin_step()
            result = connection.execute(self._select("*", limit=0), {"single": 1, SINCE: None})
            columns = tuple(result.keys())
            if self._cursor is None:
                return Shape(columns)
            if self._cursor not in columns:
                raise BadInput(f"the query has no column {self._cursor!r}; it has {', '.join(map(repr, columns))}")
            if self._engine.dialect.name == "postgresql":
                assert result.cursor is not None
                code: Any = result.cursor.description[columns.index(self._cursor)][1]
                if code not in _TEXTS:
                    return Shape(columns, _KINDS.get(code, "text"))
                return Shape(columns, "text", self._look(connection, ""))
            values = self._look(connection, _BELOW_ALL)
            if not values:
                return Shape(columns)
            return Shape(columns, "number" if isinstance(values[0], (int, float)) else "text", values)

    def _look(self, connection: Connection, lowest: Any) -> tuple[Any, ...]:
        """Some values of the cursor column: the first ones, and of texts the lowest from a digit on, as times begin
        with one and words like `pending` may stand before them."""
        values: list[Any] = []
        for test, ordered in ((f"{self._column} IS NOT NULL", False), (f"{self._column} >= '0'", True)):
            self._begin_step()
            statement = self._select(self._column, test=test, ordered=ordered, limit=_EXAMPLES)
            values += connection.scalars(statement, {"single": 1, SINCE: lowest})
            if not values or not isinstance(values[0], str):
                break
        return tuple(values)

    def rows(self, since: Any, *, size: int) -> Iterator[Sequence[tuple[Any, ...]]]:
        """The rows whose cursor is beyond `since`, in its order, up to `size` at a time."""
        with self._reading() as connection:
            self._begin_step()
            streaming = connection.execution_options(stream_results=True, max_row_buffer=size)
            behind = f"{self._column} > :{SINCE}" if self._cursor is not None and not self.has_since else ""
            statement = self._select("*", test=behind, ordered=self._cursor is not None)
            result = streaming.execute(statement, {"single": 1, SINCE: since})
            while rows := result.fetchmany(size):
                yield [tuple(row) for row in rows]
                self._begin_step()

    @property
    def _column(self) -> str:
        """The cursor column, as SQL names it."""
        return f"pulled.{self._engine.dialect.identifier_preparer.quote(self._cursor or '')}"

    def _select(self, what: str, *, test: str = "", ordered: bool = False, limit: int | None = None) -> sa.TextClause:
        parts = [f"SELECT {what} FROM (\n{self._query}\n)", "AS pulled", "WHERE :single = 1"]
        parts += [f"AND {test}"] if test else []
        parts += [f"ORDER BY {self._column}"] if ordered else []
        parts += [f"LIMIT {limit}"] if limit is not None else []
        statement = sa.text(" ".join(parts)).bindparams(sa.bindparam("single", type_=sa.Integer))
        has_since = self.has_since or f":{SINCE}" in test
        return statement.bindparams(sa.bindparam(SINCE)) if has_since else statement

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self._explain(error) from error

    def _explain(self, error: SQLAlchemyError) -> Exception:
        cause = error.orig if isinstance(error, DBAPIError) else None
        state, name = str(getattr(cause, "sqlstate", "") or ""), str(getattr(cause, "sqlite_errorname", "") or "")
        place, why = _as_typed(redact(self.url.render_as_string(hide_password=True))), reason(error, self.url)
        if state == "25006" or name.startswith("SQLITE_READONLY"):
            return BadInput(f"the query writes, and a pull only reads ({why}): give a SELECT")
        if state == "57014" or name == "SQLITE_INTERRUPT":
            return StoreError(
                f"{place} took longer than {self._seconds:g} s for a step of the query: an index on the cursor column "
                "helps, or a view with fewer rows"
            )
        # Of more than one statement the driver of SQLite complains by itself, without a name.
        is_ours = not isinstance(error, DBAPIError) or (self.url.get_backend_name() == "sqlite" and not name)
        if is_ours or state[:2] in ("0A", "22", "42") or name in ("SQLITE_ERROR", "SQLITE_MISUSE"):
            return BadInput(f"{place} does not take the query: {why}")
        return StoreError(f"{place} cannot be read: {why}; the same command goes on from there")

    def _begin_step(self) -> None:
        self._deadline = time.monotonic() + self._seconds

    def _connectable(self) -> Engine:
        if self.url.get_backend_name() == "sqlite":
            return self._sqlite()
        patience = round(self._seconds * 1000)
        session = {"default_transaction_read_only": "on", "statement_timeout": str(patience), "timezone": "UTC"}
        options = " ".join(f"-c {name}={value}" for name, value in session.items())
        arguments = {"connect_timeout": 10, "options": options, "application_name": "touchstone pull"}
        engine = create_engine(self.url, poolclass=NullPool, connect_args=arguments)
        event.listen(engine, "connect", lambda connection, _: take_any_time(connection))
        return engine.execution_options(postgresql_readonly=True)

    def _sqlite(self) -> Engine:
        path = Path(self.url.database or "")
        if not path.is_file():
            raise BadInput(f"there is no SQLite file at {path}: name another")
        plain = self.url.set(database=f"file:{quote(str(path.absolute()))}", query={"mode": "ro", "uri": "true"})
        engine = create_engine(plain, poolclass=NullPool, connect_args={"timeout": self._seconds})

        @event.listens_for(engine, "connect")
        def on_connect(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA query_only=ON")
            connection.set_progress_handler(lambda: time.monotonic() > self._deadline, _STEPS)

        return engine


def _parse(url: str) -> URL:
    try:
        parsed = sa.make_url(url)
        backend, _, driver = parsed.drivername.partition("+")
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise BadInput(f"{redact(url)!r} is no address of a database: write postgresql://… or sqlite:///…") from error
    if backend == "sqlite" and driver in ("", "pysqlite"):
        file = parsed.database
        return parsed.set(drivername="sqlite", database=str(Path(file).absolute()) if file else file)
    if backend not in ("postgres", "postgresql") or driver not in ("", "psycopg"):
        raise BadInput(f"{redact(url)} cannot be pulled from: name a postgresql:// or a sqlite:/// database")
    return parsed.set(drivername="postgresql+psycopg")


def without_password(url: str) -> str:
    """The address to keep: without a password, and without a parameter that may be one."""
    parsed = _parse(url)
    harmless = {name: value for name, value in parsed.query.items() if name in ("host", "port", "sslmode", "service")}
    # Made anew: to set a password to None would leave the one that is there.
    plain = URL.create(
        parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, query=harmless
    )
    return _as_typed(plain.render_as_string(hide_password=False))


def place_of(url: URL | str) -> str:
    """The database that an address names, by what tells two apart: no user, no password."""
    parsed = _parse(url) if isinstance(url, str) else url
    if parsed.get_backend_name() == "sqlite":
        return str(parsed.database)
    named = {name: ",".join(each) if isinstance(each, tuple) else each for name, each in parsed.query.items()}
    host = parsed.host or named.get("host") or named.get("service") or os.environ.get("PGHOST") or ""
    port = str(parsed.port or named.get("port") or os.environ.get("PGPORT") or "5432")
    host += "" if port == "5432" else f":{port}"
    return "/".join(filter(None, (host, parsed.database)))


def _as_typed(address: str) -> str:
    """The address without the driver that we put into it."""
    return address.replace("postgresql+psycopg://", "postgresql://", 1)


def _clean(query: str) -> str:
    """One SELECT without its semicolon. Raises BadInput for anything that is not one."""
    text = query.strip().rstrip(";").strip()
    first = re.sub(r"--[^\n]*\n|/\*.*?\*/", " ", text, flags=re.DOTALL).split(None, 1)
    if not first or first[0].lower().lstrip("(") not in ("select", "with", "values", "table"):
        raise BadInput(f"the query {text[:60]!r} is no SELECT, and a pull only reads")
    text = re.sub(rf"(?<![:\w\\]):{SINCE}(?=::)", f":{SINCE} ", text)  # else a cast hides the parameter
    if others := set(_PARAMETER.findall(text)) - {SINCE}:
        name = sorted(others)[0]
        raise BadInput(
            f"the query has the parameter :{name}; only :{SINCE} is filled in. Where :{name} is none, as in a text or "
            f"in JSON, write \\:{name}"
        )
    return text


def _limit(query: str) -> int | None:
    """The number after the LIMIT, or FETCH FIRST, of the query itself, not of one inside it."""
    text = re.sub(r"--[^\n]*|/\*.*?\*/|'[^']*'|\"[^\"]*\"", " ", query, flags=re.DOTALL)
    inner = -1
    while len(text) != inner:
        inner, text = len(text), re.sub(r"\([^()]*\)", "", text)
    clause = re.search(r"\b(?:limit|fetch\s+(?:first|next))\b\s*(\d*)", text, flags=re.IGNORECASE)
    return None if clause is None else int(clause[1] or 0)


def as_json(value: Any) -> Any:
    """A cursor's value as the store keeps it."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value if value is None or isinstance(value, (int, float)) else str(value)
