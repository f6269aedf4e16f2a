"""What releases decided of traces, what they have not decided yet, flags by day, and flags still to be told."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy.orm import aliased

from calibrate.types import Tier, TraceFilter
from db.engine import Aggregate, Transaction, serialise
from db.tables import DecisionRow, OutboxRow, TraceRow, table
from db.tables.bulk import upsert
from db.tables.filters import conditions, day_of
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


@dataclass(frozen=True, slots=True)
class Untold:
    """A flag in the outbox, with the trace's own id."""

    key: int
    trace_id: str
    decision: StoredDecision


class Decisions(Aggregate):
    def keep(
        self,
        decisions: Sequence[StoredDecision],
        *,
        tell: Collection[int] = (),
        annotate: Callable[[Transaction, Sequence[StoredDecision]], None] | None = None,
    ) -> set[int]:
        """Stores the decisions that are new, in one transaction, and returns the keys of their traces. A release
        decides a trace once: the first decision stands. Those of the traces `tell` that are new go into the outbox in
        the same transaction, in the order given: no kill comes between a decision and what is to be told of it. So does
        what `annotate` does with the new ones."""
        if not decisions:
            return set()
        rows = sorted(map(asdict, decisions), key=lambda row: (row["trace_pk"], row["version"]))
        with self._writing() as connection:
            statement = upsert(connection, DecisionRow).returning(DecisionRow.trace_pk)
            new = set(connection.scalars(statement, rows))
            news = [decision for decision in decisions if decision.trace_pk in new and decision.trace_pk in tell]
            if news:
                connection.execute(insert(table(OutboxRow)), list(map(_outbox_row, news)))
            if annotate is not None and new:
                annotate(connection, [decision for decision in decisions if decision.trace_pk in new])
            return new

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
        Purged ones never will be. With `after`, only those of traces imported after that key: keys grow with every
        import."""
        decided = sa.and_(DecisionRow.trace_pk == TraceRow.id, DecisionRow.version == version)
        query = select(TraceRow.id).outerjoin(DecisionRow, decided).where(DecisionRow.trace_pk.is_(None))
        # Those have an index of their own; the one that is read in order does not tell.
        purged = select(TraceRow.id).where(TraceRow.purged_at.is_not(None)).scalar_subquery()
        query = query.where(TraceRow.id.not_in(purged), *([TraceRow.id > after] if after else []), *conditions(where))
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
        day = day_of(self._engine)
        window = TraceFilter(since=since, until=until, undated=False)
        query = select(DecisionRow.tier, day, func.count()).join(TraceRow, TraceRow.id == DecisionRow.trace_pk)
        query = query.where(*_flagged_by_newest(), *conditions(window))
        rows = self._rows(query.group_by(DecisionRow.tier, day).order_by(day))
        return {tier: {at: n for of, at, n in rows if of == tier} for tier in FLAGGED}

    def flags_per_day(self, *, since: datetime | None = None) -> dict[str, dict[str, int]]:
        """Flagged traces by the detector or ensemble that flagged and the day (UTC) they were logged, as `per_day`
        counts them: {"rouge_l": {"2026-11-20": 12, …}, …}. A trace that several flag counts for each."""
        window, counts = TraceFilter(since=since, undated=False), Counter[tuple[str, str]]()
        query = select(DecisionRow.flags, day_of(self._engine)).join(TraceRow, TraceRow.id == DecisionRow.trace_pk)
        for flags, day in self._rows(query.where(*_flagged_by_newest(), *conditions(window))):
            counts.update((name, day) for name in flags)
        names = sorted({name for name, _ in counts})
        return {name: {day: n for (of, day), n in sorted(counts.items()) if of == name} for name in names}

    def last_day(self, *, since: datetime) -> str | None:
        """The day (UTC) on which the newest decided trace was logged, if that is not before `since`."""
        decided = select(DecisionRow.trace_pk).where(DecisionRow.trace_pk == TraceRow.id).exists()
        query = select(day_of(self._engine)).where(decided, *conditions(TraceFilter(since=since, undated=False)))
        return self._scalar(query.order_by(TraceRow.timestamp.desc()).limit(1))

    def flagged(self, where: TraceFilter, *, limit: int) -> list[tuple[str, datetime | None, StoredDecision]]:
        """The newest matching traces that are flagged, by the newest release that looked at each: the trace's own id,
        when it was logged, and the decision. Undated traces come last."""
        query = select(TraceRow.trace_id.label("id"), TraceRow.timestamp, table(DecisionRow))
        query = query.join(TraceRow, TraceRow.id == DecisionRow.trace_pk).where(*_flagged_by_newest())
        query = query.where(TraceRow.purged_at.is_(None), *conditions(where))
        query = query.order_by(TraceRow.timestamp.desc().nulls_last(), TraceRow.id.desc())
        with self._reading() as connection:
            rows = [dict(row) for row in connection.execute(query.limit(limit)).mappings()]
        return [(row.pop("id"), row.pop("timestamp"), _decision(**row)) for row in rows]

    def _fetch(self, *tests: ColumnElement[bool]) -> list[StoredDecision]:
        query = select(table(DecisionRow)).where(*tests).order_by(DecisionRow.version.desc())
        return self._records(_decision, query)


class Outbox(Aggregate):
    """Flags that a webhook is to be told of: at least once each, in order. What was told stays, with its time."""

    def count(self) -> int:
        """How many were not told yet."""
        return self._scalar(select(func.count()).where(OutboxRow.told_at.is_(None))) or 0

    def first(self) -> tuple[datetime, datetime] | None:
        """When the first that was not told was put here, and when it may be told; None where all were told."""
        query = select(OutboxRow.queued_at, OutboxRow.due_at).where(OutboxRow.told_at.is_(None))
        return next(iter(self._rows(query.order_by(OutboxRow.id).limit(1))), None)

    def claim(self, most: int, *, now: datetime, until: datetime, early: bool = False) -> list[Untold]:
        """Takes the first `most` that were not told, in order, and counts an attempt of each. Nobody else gets them
        `until` then. Empty while the first of them is not due, unless it is to be told `early`."""
        untold = select(OutboxRow.id, OutboxRow.due_at).where(OutboxRow.told_at.is_(None)).order_by(OutboxRow.id)
        with self._writing() as connection:
            serialise(connection)
            rows = connection.execute(untold.limit(most)).all()
            if not rows or (rows[0].due_at > now and not early):
                return []
            keys = [row.id for row in rows]
            _change(connection, keys, attempts=OutboxRow.attempts + 1, due_at=until)
            belongs = sa.and_(DecisionRow.trace_pk == OutboxRow.trace_pk, DecisionRow.version == OutboxRow.version)
            query = select(OutboxRow.id.label("key"), TraceRow.trace_id, table(DecisionRow))
            query = query.join(DecisionRow, belongs).join(TraceRow, TraceRow.id == OutboxRow.trace_pk)
            claimed = [
                Untold(row.pop("key"), row.pop("trace_id"), _decision(**row))
                for batch in batches(keys, 900)
                for row in map(dict, connection.execute(query.where(OutboxRow.id.in_(batch))).mappings())
            ]
        return sorted(claimed, key=lambda untold: untold.key)

    def mark_told(self, keys: Sequence[int], *, now: datetime) -> None:
        """Records that these were told."""
        with self._writing() as connection:
            _change(connection, keys, told_at=now)

    def postpone(self, keys: Sequence[int], *, error: str, until: datetime) -> None:
        """Records why these could not be told, and when they may be tried again."""
        with self._writing() as connection:
            _change(connection, keys, last_error=error, due_at=until)


def _flagged_by_newest() -> tuple[ColumnElement[bool], ...]:
    """That a decision flags, and that no newer release has decided the trace."""
    later = aliased(DecisionRow)
    newer = select(later).where(later.trace_pk == DecisionRow.trace_pk, later.version > DecisionRow.version)
    return DecisionRow.tier.in_(FLAGGED), ~newer.exists()


def _change(connection: Transaction, keys: Sequence[int], **values: Any) -> None:
    for batch in batches(keys, 900):
        connection.execute(update(table(OutboxRow)).where(OutboxRow.id.in_(batch)).values(**values))


def _outbox_row(decision: StoredDecision) -> dict[str, Any]:
    at = decision.decided_at
    return {"trace_pk": decision.trace_pk, "version": decision.version, "queued_at": at, "due_at": at, "attempts": 0}


def _decision(flags: Sequence[str], reasons: Sequence[str], **columns: Any) -> StoredDecision:
    return StoredDecision(flags=tuple(flags), reasons=tuple(reasons), **columns)
