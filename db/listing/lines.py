"""The list of traces with the scores of one detector configuration: by time or by score, a window at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Select, func, select

from calibrate.types import TraceFilter
from db.engine import Aggregate
from db.tables import GoldRow, ScoreRow, TraceRow
from db.tables.filters import conditions

Order = Literal["newest", "highest", "lowest"]
After = tuple[datetime | float | None, int]
LONGEST = 200  # characters of a text in the list


@dataclass(frozen=True, slots=True)
class ScoreBand:
    """Which scores are listed: of the configuration `config`, from `low` to `high`, both inclusive."""

    config: int
    low: float | None = None
    high: float | None = None

    @property
    def bounded(self) -> bool:
        return self.low is not None or self.high is not None


@dataclass(frozen=True, slots=True)
class Line:
    """A trace as a line of the list, texts cut short. `value` and `status` are those of its score, None without one."""

    pk: int
    id: str
    timestamp: datetime | None
    model: str | None
    question: str | None
    answer: str
    gold: str | None
    purged: bool
    value: float | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of the list, and where the next window begins; None at the end."""

    lines: tuple[Line, ...]
    after: After | None


class Lines(Aggregate):
    def window(
        self,
        where: TraceFilter,
        *,
        band: ScoreBand | None = None,
        order: Order = "newest",
        limit: int = 100,
        after: After | None = None,
    ) -> Window:
        """The lines after a place, by key and not by offset: the thousandth window costs what the first does.

        By time the newest come first and undated ones last; by score only traces with a score are listed, and so where
        the band is bounded.
        """
        if order != "newest" and band is None:
            raise ValueError("a list by score needs a configuration")
        with self._reading() as connection:
            if order != "newest":
                rows = list(connection.execute(_by_score(where, band, order, after).limit(limit + 1)))
            else:
                rows = []
                if after is None or after[0] is not None:
                    rows = list(connection.execute(_dated(where, band, after).limit(limit + 1)))
                if len(rows) <= limit and where.undated:
                    begun = after if after is not None and after[0] is None else None
                    rows += connection.execute(_undated(where, band, begun).limit(limit + 1 - len(rows)))
        lines = tuple(Line(*row) for row in rows[:limit])
        if len(rows) <= limit:
            return Window(lines, None)
        last = lines[-1]
        return Window(lines, (last.timestamp if order == "newest" else last.value, last.pk))

    def count(self, where: TraceFilter, *, band: ScoreBand | None = None, scored: bool = False, limit: int) -> int:
        """How many lines there are, those with a score only if `scored`; stops counting at `limit`."""
        query = select(TraceRow.id).where(*conditions(where))
        if band is not None and (scored or band.bounded):
            query = query.join(ScoreRow, _score_of(band)).where(*_within(band))
        return self._scalar(select(func.count()).select_from(query.limit(limit).subquery())) or 0


def _score_of(band: ScoreBand) -> ColumnElement[bool]:
    return sa.and_(ScoreRow.config_id == band.config, ScoreRow.content_hash == TraceRow.content_hash)


def _within(band: ScoreBand) -> list[ColumnElement[bool]]:
    tests: list[ColumnElement[bool]] = [ScoreRow.value.is_not(None)]
    if band.low is not None:
        tests.append(ScoreRow.value >= band.low)
    if band.high is not None:
        tests.append(ScoreRow.value <= band.high)
    return tests


def _lines(where: TraceFilter, band: ScoreBand | None, *, scored: bool) -> Select[*tuple[Any, ...]]:
    columns: list[Any] = [TraceRow.id, TraceRow.trace_id, TraceRow.timestamp, TraceRow.model]
    columns += [func.substr(TraceRow.question, 1, LONGEST), func.substr(TraceRow.answer, 1, LONGEST)]
    columns += [GoldRow.verdict, TraceRow.purged_at.is_not(None)]
    columns += [ScoreRow.value, ScoreRow.status] if band else []
    query = select(*columns).select_from(TraceRow).outerjoin(GoldRow, GoldRow.trace_pk == TraceRow.id)
    if band and (scored or band.bounded):
        query = query.join(ScoreRow, _score_of(band)).where(*_within(band))
    elif band:
        query = query.outerjoin(ScoreRow, _score_of(band))
    return query.where(*conditions(where))


def _dated(where: TraceFilter, band: ScoreBand | None, after: After | None) -> Select[*tuple[Any, ...]]:
    query = _lines(where, band, scored=False).where(TraceRow.timestamp.is_not(None))
    if after is not None:
        place = sa.tuple_(sa.bindparam(None, after[0], TraceRow.timestamp.type), sa.literal(after[1]))
        query = query.where(sa.tuple_(TraceRow.timestamp, TraceRow.id) < place)
    return query.order_by(TraceRow.timestamp.desc(), TraceRow.id.desc())


def _undated(where: TraceFilter, band: ScoreBand | None, after: After | None) -> Select[*tuple[Any, ...]]:
    query = _lines(where, band, scored=False).where(TraceRow.timestamp.is_(None))
    if after is not None:
        query = query.where(TraceRow.id < after[1])
    return query.order_by(TraceRow.id.desc())


def _by_score(
    where: TraceFilter, band: ScoreBand | None, order: Order, after: After | None
) -> Select[*tuple[Any, ...]]:
    query = _lines(where, band, scored=True)
    key = sa.tuple_(ScoreRow.value, TraceRow.id)
    if after is not None:
        place = sa.tuple_(sa.literal(after[0], sa.Float()), sa.literal(after[1]))
        query = query.where(key > place if order == "lowest" else key < place)
    columns = (ScoreRow.value, TraceRow.id)
    return query.order_by(*(column.asc() if order == "lowest" else column.desc() for column in columns))
