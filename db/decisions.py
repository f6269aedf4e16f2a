"""What releases decided of traces, what they have not decided yet, and flags by day."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import aliased

from calibrate.types import Tier, TraceFilter
from db.engine import Aggregate, upsert
from db.filters import conditions, day_of
from db.tables import DecisionRow, TraceRow, table
from db.tables.mapping import batches

FLAGGED: tuple[Tier, ...] = ("page", "signal")


@dataclass(frozen=True, slots=True)
class StoredDecision:
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


class Decisions(Aggregate):
    def keep(self, decisions: Sequence[StoredDecision]) -> set[int]:
        """Stores the decisions that are new, in one transaction, and returns the keys of their traces. A release
        decides a trace once: the first decision stands."""
        if not decisions:
            return set()
        rows = sorted(map(asdict, decisions), key=lambda row: (row["trace_pk"], row["version"]))
        with self._writing() as connection:
            statement = upsert(connection, DecisionRow).returning(DecisionRow.trace_pk)
            return set(connection.scalars(statement, rows))

    def of(self, trace_pk: int) -> list[StoredDecision]:
        """What was decided of a trace, the newest release first."""
        return self._fetch(DecisionRow.trace_pk == trace_pk)

    def newest(self, pks: Sequence[int]) -> dict[int, StoredDecision]:
        """What the newest release that looked at a trace decided of it, by key; without those that none looked at."""
        return {
            decision.trace_pk: decision
            for batch in batches(pks, 900)
            for decision in reversed(self._fetch(DecisionRow.trace_pk.in_(batch)))
        }

    def lacking(
        self, version: int, where: TraceFilter, *, after: int = 0, newest_first: bool = True, limit: int | None = None
    ) -> Sequence[int]:
        """The keys of the matching traces that a release has not decided, undated ones last, 8 bytes each in memory.
        With `after`, only those of traces imported after that key: keys grow with every import."""
        decided = sa.and_(DecisionRow.trace_pk == TraceRow.id, DecisionRow.version == version)
        query = select(TraceRow.id).outerjoin(DecisionRow, decided).where(DecisionRow.trace_pk.is_(None))
        query = query.where(*([TraceRow.id > after] if after else []), *conditions(where))
        way: Any = sa.desc if newest_first else sa.asc
        dated = query.where(TraceRow.timestamp.is_not(None)).order_by(way(TraceRow.timestamp), way(TraceRow.id))
        undated = query.where(TraceRow.timestamp.is_(None)).order_by(way(TraceRow.id))
        with self._reading() as connection:
            pks = array("q", connection.scalars(dated.limit(limit)))
            if where.undated and (limit is None or len(pks) < limit):
                pks.extend(connection.scalars(undated.limit(None if limit is None else limit - len(pks))))
        return pks

    def newest_trace(self) -> int:
        """The key of the trace that was imported last; 0 in an empty store."""
        return self._scalar(select(func.max(TraceRow.id))) or 0

    def counts(self, version: int) -> dict[str, int]:
        """How many traces a release decided, by tier."""
        query = select(DecisionRow.tier, func.count()).where(DecisionRow.version == version)
        return dict(self._rows(query.group_by(DecisionRow.tier)))

    def per_day(self, *, since: datetime | None = None, until: datetime | None = None) -> dict[Tier, dict[str, int]]:
        """Flagged traces by tier and the day (UTC) they were logged: {"page": {"2026-11-20": 12, …}, "signal": …}. What
        several releases looked at counts as the newest of them decided. `since` is inclusive, `until` exclusive;
        undated traces are on no day."""
        day, later = day_of(self._engine), aliased(DecisionRow)
        window = TraceFilter(since=since, until=until, undated=False)
        query = select(DecisionRow.tier, day, func.count()).join(TraceRow, TraceRow.id == DecisionRow.trace_pk)
        query = query.where(DecisionRow.tier.in_(FLAGGED), *conditions(window)).where(
            ~select(later).where(later.trace_pk == DecisionRow.trace_pk, later.version > DecisionRow.version).exists()
        )
        rows = self._rows(query.group_by(DecisionRow.tier, day).order_by(day))
        return {tier: {at: n for of, at, n in rows if of == tier} for tier in FLAGGED}

    def _fetch(self, *tests: ColumnElement[bool]) -> list[StoredDecision]:
        query = select(table(DecisionRow)).where(*tests).order_by(DecisionRow.version.desc())
        return self._records(_decision, query)


def _decision(flags: Sequence[str], reasons: Sequence[str], **columns: Any) -> StoredDecision:
    return StoredDecision(flags=tuple(flags), reasons=tuple(reasons), **columns)
