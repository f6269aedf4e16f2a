"""How many traces match, by day, model and operation: whole days are looked up, what is left of them is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine, Select, func, select

from calibrate.types import TraceFilter
from db.tables import TraceDayRow, TraceRow
from db.tables.filters import conditions, day_of, is_labelled, value_of

COUNTED = ("day", "model", "operation")
UNDATED = ""  # the day of traces without a time
DAY = timedelta(days=1)
LAST = datetime.max.replace(tzinfo=UTC)
AFTER_ALL = "~"  # sorts behind every day


def count_by(engine: Engine, where: TraceFilter, *names: str) -> Select[*tuple[Any, ...]]:
    """The query for each value of `names` (day, model, operation or an attribute) and how many matching traces have
    it; without names, for how many match."""
    if where.text or where.attributes or where.label not in ("any", "unlabelled") or not {*names} <= {*COUNTED}:
        columns = [day_of(engine) if name == "day" else value_of(name) for name in names]
        return select(*columns, func.count()).select_from(TraceRow).where(*conditions(where)).group_by(*columns)
    parts = sa.union_all(*_parts(engine, where)).subquery()
    total = sa.cast(func.coalesce(func.sum(parts.c.traces), 0), sa.BigInteger)
    query = select(*(parts.c[name] for name in names), total)
    return query.group_by(*(parts.c[name] for name in names)).having(total != 0) if names else query


def _parts(engine: Engine, where: TraceFilter) -> Iterator[Select[*tuple[Any, ...]]]:
    """What adds up to the count: the whole days of the window, what lies before and after them, and, taken off again,
    traces with a label or without texts where these are not wanted."""
    first, last = _whole_days(where)
    inside = [
        *([TraceDayRow.day >= first] if first else []),
        *([TraceDayRow.day < last] if last else []),
        TraceDayRow.day != UNDATED,
    ]
    tests = [sa.or_(sa.and_(*inside), TraceDayRow.day == UNDATED) if where.undated else sa.and_(*inside)]
    for column, chosen in ((TraceDayRow.model, where.models), (TraceDayRow.operation, where.operations)):
        if chosen:
            tests.append(column.in_(chosen))
    yield select(TraceDayRow.day, TraceDayRow.model, TraceDayRow.operation, TraceDayRow.traces).where(*tests)
    plain = replace(where, label="any", unpurged_at=None)
    for since, until in _edges(where):
        edge = replace(plain, since=since, until=until, undated=False)
        yield _rows(engine, 1).where(*conditions(edge))
    if where.label == "unlabelled":
        yield _rows(engine, -1).where(is_labelled(), *conditions(plain))
    if where.unpurged_at:
        gone = conditions(replace(where, unpurged_at=None))
        yield _rows(engine, -1).where(TraceRow.purged_at.is_not(None), TraceRow.purged_at <= where.unpurged_at, *gone)


def _rows(engine: Engine, sign: int) -> Select[*tuple[Any, ...]]:
    day = func.coalesce(day_of(engine), UNDATED).label("day")
    values = (value_of(name).label(name) for name in COUNTED[1:])
    return select(day, *values, sa.literal_column(str(sign), sa.BigInteger).label("traces")).select_from(TraceRow)


def _whole_days(where: TraceFilter) -> tuple[str | None, str | None]:
    """The first day that lies in the window as a whole, and the first that does not any more."""
    since, until = _bounds(where)
    first = None if since is None else AFTER_ALL if since == LAST else since.date().isoformat()
    return first, until.date().isoformat() if until else None


def _bounds(where: TraceFilter) -> tuple[datetime | None, datetime | None]:
    since = None if where.since is None else _next_midnight(where.since.astimezone(UTC))
    until = None if where.until is None else _midnight(where.until.astimezone(UTC))
    return since, until


def _next_midnight(moment: datetime) -> datetime:
    """The midnight at or after it; of the last day that there is, its end."""
    try:
        return _midnight(moment + DAY - timedelta(microseconds=1))
    except OverflowError:
        return LAST


def _edges(where: TraceFilter) -> Iterator[tuple[datetime, datetime]]:
    """The parts of the window that are no whole days."""
    first, last = _bounds(where)
    if where.since and where.until and first and last and first > last:
        yield where.since, where.until
        return
    if where.since and first and where.since < first:
        yield where.since, first
    if where.until and last and last < where.until:
        yield last, where.until


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
