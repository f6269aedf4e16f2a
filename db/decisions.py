"""Questions about decisions: what a release said of a trace, what it has not looked at yet, its flags a day."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrate.types import Tier, TraceFilter
from db.engine import writing
from db.mapping import batches
from db.tables import DecisionRow, TraceRow, table
from db.traces import conditions

FLAGGED: tuple[Tier, ...] = ("page", "signal")


@dataclass(frozen=True, slots=True)
class Decided:
    """What release `version` decided of a trace: verdict ACCEPT, REVIEW or REJECT, tier, the detectors and ensembles
    that flagged with a reason each, and the scores it went by (None: could not score)."""

    trace_pk: int
    version: int
    verdict: str
    tier: Tier
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    scores: Mapping[str, float | None]
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class Flagged:
    """A flagged trace as a line of a list."""

    trace_pk: int
    trace_id: str
    timestamp: datetime | None
    model: str | None
    tier: Tier
    flags: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlaggedPage:
    lines: tuple[Flagged, ...]
    after: tuple[datetime, int] | None  # where the next page begins; None at the end


class Decisions:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def keep(self, decided: Sequence[Decided]) -> set[int]:
        """Keeps what is not there yet, in one transaction, and gives the keys of those traces: a release decides a
        trace once, and the first decision stands."""
        if not decided:
            return set()
        rows = sorted((asdict(one) for one in decided), key=lambda row: (row["trace_pk"], row["version"]))
        dialect: Any = sqlite if self._engine.dialect.name == "sqlite" else postgresql
        statement = dialect.insert(table(DecisionRow)).on_conflict_do_nothing().returning(DecisionRow.trace_pk)
        with writing(self._engine) as connection:
            return set(connection.scalars(statement, rows))

    def of(self, trace_pk: int) -> list[Decided]:
        """What was decided of a trace, the newest release first."""
        return self._fetch(DecisionRow.trace_pk == trace_pk)

    def of_traces(self, version: int, pks: Sequence[int]) -> dict[int, Decided]:
        """What a release decided of these traces, by key; without those that it has not decided."""
        return {
            one.trace_pk: one
            for some in batches(pks, 900)
            for one in self._fetch(DecisionRow.version == version, DecisionRow.trace_pk.in_(some))
        }

    def lacking(
        self, version: int, where: TraceFilter, *, after: int = 0, newest_first: bool = True, limit: int | None = None
    ) -> Sequence[int]:
        """The keys of the matching traces that a release has not decided; undated ones last. They are in memory at
        once, 8 bytes each. Keys grow with every import: with `after`, only traces that came after that key are
        looked at."""
        decided = sa.and_(DecisionRow.trace_pk == TraceRow.id, DecisionRow.version == version)
        query = select(TraceRow.id).outerjoin(DecisionRow, decided).where(DecisionRow.trace_pk.is_(None))
        query = query.where(*([TraceRow.id > after] if after else []), *conditions(where))
        way: Any = sa.desc if newest_first else sa.asc
        dated = query.where(TraceRow.timestamp.is_not(None)).order_by(way(TraceRow.timestamp), way(TraceRow.id))
        undated = query.where(TraceRow.timestamp.is_(None)).order_by(way(TraceRow.id))
        with self._engine.connect() as connection:
            found = array("q", connection.scalars(dated.limit(limit)))
            if where.undated and (limit is None or len(found) < limit):
                found.extend(connection.scalars(undated.limit(None if limit is None else limit - len(found))))
        return found

    def newest_trace(self) -> int:
        """The key of the trace that came last; 0 in an empty store."""
        with self._engine.connect() as connection:
            return connection.scalar(select(func.max(TraceRow.id))) or 0

    def counts(self, version: int) -> dict[str, int]:
        """How many traces a release decided, by tier."""
        query = select(DecisionRow.tier, func.count()).where(DecisionRow.version == version)
        with self._engine.connect() as connection:
            return dict(connection.execute(query.group_by(DecisionRow.tier)).tuples().all())

    def per_day(
        self, version: int, *, since: datetime | None = None, until: datetime | None = None
    ) -> dict[Tier, dict[str, int]]:
        """Flagged traces by tier and the day (UTC) they were logged: {"page": {"2026-11-20": 12, …}, "signal": …}.
        `since` is inclusive, `until` exclusive; undated traces are on no day."""
        day = self._day()
        window = TraceFilter(since=since, until=until, undated=False)
        query = select(DecisionRow.tier, day, func.count()).join(TraceRow, TraceRow.id == DecisionRow.trace_pk)
        query = query.where(DecisionRow.version == version, DecisionRow.tier.in_(FLAGGED), *conditions(window))
        with self._engine.connect() as connection:
            rows = connection.execute(query.group_by(DecisionRow.tier, day).order_by(day)).tuples().all()
        return {tier: {at: n for of, at, n in rows if of == tier} for tier in FLAGGED}

    def flagged(self, version: int, *, limit: int = 50, after: tuple[datetime, int] | None = None) -> FlaggedPage:
        """The dated traces that a release flagged, newest first, by key and not by offset."""
        columns = (TraceRow.id, TraceRow.trace_id, TraceRow.timestamp, TraceRow.model)
        query = select(*columns, DecisionRow.tier, DecisionRow.flags, DecisionRow.reasons)
        query = query.join(DecisionRow, DecisionRow.trace_pk == TraceRow.id)
        query = query.where(DecisionRow.version == version, DecisionRow.tier.in_(FLAGGED))
        query = query.where(TraceRow.timestamp.is_not(None))
        if after is not None:
            bound = sa.tuple_(sa.literal(after[0], table(TraceRow).c.timestamp.type), sa.literal(after[1]))
            query = query.where(sa.tuple_(TraceRow.timestamp, TraceRow.id) < bound)
        query = query.order_by(TraceRow.timestamp.desc(), TraceRow.id.desc()).limit(limit + 1)
        with self._engine.connect() as connection:
            rows = connection.execute(query).tuples().all()
        lines = tuple(_line(row) for row in rows[:limit])
        last = lines[-1].timestamp if len(rows) > limit else None
        return FlaggedPage(lines, (last, lines[-1].trace_pk) if last else None)

    def _day(self) -> ColumnElement[str]:
        if self._engine.dialect.name == "sqlite":
            return func.substr(sa.cast(TraceRow.timestamp, sa.String), 1, 10)
        return func.to_char(func.timezone("UTC", TraceRow.timestamp), "YYYY-MM-DD")

    def _fetch(self, *tests: ColumnElement[bool]) -> list[Decided]:
        query = select(table(DecisionRow)).where(*tests).order_by(DecisionRow.version.desc())
        with self._engine.connect() as connection:
            return [
                Decided(**{**row, "flags": tuple(row["flags"]), "reasons": tuple(row["reasons"])})
                for row in connection.execute(query).mappings()
            ]


def _line(row: Any) -> Flagged:
    pk, trace_id, timestamp, model, tier, flags, reasons = row
    return Flagged(pk, trace_id, timestamp, model, tier, tuple(flags), tuple(reasons))
