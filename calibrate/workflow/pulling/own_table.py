"""Pull from a table that is there already, by a query on its database: PostgreSQL or SQLite.

Rows come in the order of a cursor column, and the next pull goes on behind the last value that it saw: a little before,
as rows of an equal value, or of a transaction that ended late, may have come since. What is read twice is a duplicate.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.record import RECORD_FIELDS, build
from calibrate.ingest.systems.base import Page, PullRequest
from calibrate.ingest.table import fields_of, to_record_row
from calibrate.redaction import redactor_of
from calibrate.types import Record
from calibrate.workflow.pulling.position import Position, example_of, is_time, like, moment_of
from db import Store
from db.exchange.foreign import ForeignQuery, Shape, place_of, without_password
from db.exchange.pulls import Pull

ADDRESS = "TOUCHSTONE_PULL_URL"
PAGE = 1000  # rows
BEHIND = 1000  # numbers of a counter that may have been given before and committed since
EVER = datetime(1, 1, 2, tzinfo=UTC)
SECONDS = 60.0


class OwnTable:
    """A query on a team's own database, as a source of traces.

    A row's columns fill the fields of their names, or those that `columns` says; others become attributes. A cursor of
    times is the timestamp where no column is. An `id` that is a number gets the pull's name before it.
    """

    system = "sql"

    def __init__(self, request: PullRequest) -> None:
        given, stored = request.options, request.stored
        self._url = request.url or os.environ.get(ADDRESS, "").strip() or stored.get("url") or ""
        self._query = given.get("query") or stored.get("query") or ""
        self._cursor = given.get("cursor") or stored.get("cursor")
        self._columns = dict(request.columns or stored.get("columns") or {})
        self._overlap, self._now = request.overlap, request.now
        if not self._url or not self._query:
            lacking = "--url postgresql://…" if not self._url else '--query "select …"'
            raise BadInput(f"`pull sql` needs {lacking}, or the --name of a pull that has it")
        for name in self._columns:
            if name not in RECORD_FIELDS:
                fields = ", ".join(sorted(RECORD_FIELDS))
                raise BadInput(f"--column {name}=…: a trace has no field {name!r}; it has {fields}")
        self._foreign = ForeignQuery(self._url, self._query, cursor=self._cursor, seconds=SECONDS)
        if self._foreign.has_since and self._cursor is None:
            self._foreign.close()
            raise BadInput("the query has :since, so say which column it is compared with: --cursor COLUMN")
        self.name = request.name or f"sql {self._foreign.place}"[:200]

    @property
    def place(self) -> str:
        """Which database it is."""
        return self._foreign.place

    @property
    def settings(self) -> Mapping[str, Any]:
        """Without a secret, kept in the store."""
        return {
            "url": without_password(self._url),
            "query": self._query,
            "cursor": self._cursor,
            "columns": self._columns,
        }

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        """Read the rows behind the cursor, or since then, a page at a time."""
        try:
            shape = self._foreign.shape()
            fields = self._fields(shape)
            place = None if self._cursor is None else shape.columns.index(self._cursor)
            position = Position(self._cursor or "", shape, self._now(), cursor or {})
            line = 0
            for rows in self._foreign.rows(self._start(shape, since, cursor), size=PAGE):
                page, names, position.ahead = [], {}, 0
                for cells in rows:
                    line += 1
                    problem = None if place is None else position.take(cells[place])
                    names[line] = self._name_of(fields, cells, place)
                    page.append(Rejected(line, str(problem)) if problem else self._row(line, shape, fields, cells))
                yield Page(rows=page, cursor=position.cursor, ahead=position.ahead, mixed=position.mixed, names=names)
            if self._is_held_back(line, position, cursor):
                yield Page(held_back=True)
        finally:
            self._foreign.close()

    def _is_held_back(self, rows: int, position: Position, cursor: Mapping[str, Any] | None) -> bool:
        """Whether the query's own LIMIT may hide what is behind the cursor, which got no further: either it let through
        all that it does, or it stands before the cursor is compared."""
        limit = self._foreign.limit
        if limit is None or cursor is None or (self._foreign.has_since and rows < limit):
            return False
        reached, before = (position.cursor or cursor).get("value"), cursor.get("value")
        return type(reached) is type(before) and before is not None and not reached > before

    def preview(self, n: int = 5, *, redact: str | None = None) -> tuple[tuple[str, ...], list[Record | Rejected]]:
        """The columns of the query, and what an import would make of its first rows. Nothing is stored."""
        redactor = redactor_of(settings.imports().redact if redact is None else redact)
        limits = settings.imports()
        try:
            shape = self._foreign.shape()
            fields = self._fields(shape)
            batches = self._foreign.rows(self._start(shape, None, None), size=n)
            cells = [row for rows in islice(batches, 1) for row in rows][:n]
        finally:
            self._foreign.close()
        rows = (self._row(line, shape, fields, row) for line, row in enumerate(cells, start=1))
        return shape.columns, [
            row if isinstance(row, Rejected) else build(row, format_name=self.system, limits=limits, redactor=redactor)
            for row in rows
        ]

    def _fields(self, shape: Shape) -> list[str]:
        fields = fields_of(shape.columns, self._columns, "the query")
        if self._cursor is not None and "timestamp" not in fields and is_time(shape):
            fields[shape.columns.index(self._cursor)] = "timestamp"
        return fields

    def _row(self, line: int, shape: Shape, fields: list[str], cells: Sequence[Any]) -> Row | Rejected:
        size = sum(len(cell) for cell in cells if isinstance(cell, str))
        row = to_record_row(Row(line, dict(zip(shape.columns, cells, strict=True)), size), fields)
        if isinstance(row, Row) and "trace_id" not in self._columns:
            for name in ("trace_id", "id"):
                if type(row.fields.get(name)) is int:
                    row.fields[name] = f"{self.name}-{row.fields[name]}"
        return row

    def _name_of(self, fields: Sequence[str], cells: Sequence[Any], place: int | None) -> str:
        """What a refusal calls a row: its id, or else its place in the order of rows."""
        for name in ("trace_id", "id"):
            value = cells[fields.index(name)] if name in fields else None
            if value is not None and value != "":
                return f"{self.name}-{value}" if type(value) is int and "trace_id" not in self._columns else str(value)
        return "" if place is None or cells[place] is None else str(cells[place])

    def _start(self, shape: Shape, since: datetime | None, cursor: Mapping[str, Any] | None) -> Any:
        """What `:since` is: a little before where the last pull ended, or the beginning of this one."""
        if cursor is None or cursor.get("value") is None:
            return _beginning(shape, since)
        value, kind, moment = cursor["value"], shape.kind, moment_of(cursor["value"])
        if moment is not None:  # never behind what is still to come
            moment = min(moment, self._now())
        if kind == "time":
            return _beginning(shape, since) if moment is None else moment - self._overlap
        if kind == "date":
            return _beginning(shape, since) if moment is None else moment.date() - max(self._overlap, timedelta(days=1))
        if kind == "number" or isinstance(value, (int, float)):
            is_number = isinstance(value, (int, float)) and math.isfinite(value)
            return value - BEHIND if is_number else _beginning(shape, since)
        if kind != "uuid" and moment is not None:
            return like(moment - self._overlap, value, mixed=bool(cursor.get("mixed")))
        before = cursor.get("before")
        if before is None or (is_time(shape) and moment_of(before) is None):
            return _beginning(shape, since if is_time(shape) else None)
        return before


def open_own_table(request: PullRequest, store: Store) -> OwnTable:
    """Open the table. Raises BadInput for settings that cannot be, and where the pull of that name is of another query
    or database: its cursor would pass over rows of this one."""
    source = OwnTable(request)
    stored = store.pulls.get(source.name)
    if stored is None and request.name is None and (older := _older(source, store)) is not None:
        source.name, stored = older.name, older
    if stored is None or stored.cursor is None or request.options.get("restart"):
        return source
    before = place_of(str(stored.settings["url"]))
    if before != source.place:
        raise BadInput(
            f"the pull {source.name!r} is of {before}, not of {source.place}: give this one another --name, or "
            "--restart to begin anew where the database has moved"
        )
    for name in ("query", "cursor"):
        if stored.settings.get(name) != source.settings[name]:
            raise BadInput(
                f"the pull {source.name!r} has another {name}: give this one another --name, or --restart to begin anew"
            )
    return source


def _older(source: OwnTable, store: Store) -> Pull | None:
    """The pull of this database under the name that pulls had when they did not name its host or folder."""
    return next(
        (
            pull for pull in store.pulls.list()
            if pull.system == "sql" and pull.name.startswith("sql ") and source.place.endswith(pull.name[4:])
            and place_of(str(pull.settings["url"])) == source.place
        ),
        None,
    )  # fmt: skip


def _beginning(shape: Shape, since: datetime | None) -> Any:
    kind, example = shape.kind, example_of(shape)
    if kind == "number":
        return -(2**62)
    if kind == "uuid":
        return "0" * 8 + "-0000-0000-0000-" + "0" * 12
    if kind == "date":
        return (since or EVER).date()
    if kind == "time":
        return since or EVER
    if example is not None:
        return like(since or EVER, example)
    return "" if kind == "text" or since is None else since.strftime("%Y-%m-%d %H:%M:%S")
