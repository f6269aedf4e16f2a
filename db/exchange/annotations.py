"""Decisions that other systems are to have: each once, in order, given up after a while."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, func, insert, select, update

from db.decisions import StoredDecision
from db.engine import Aggregate, Transaction, serialise
from db.tables import AnnotationRow, DecisionRow, TraceRow, table
from db.tables.mapping import batches

WAITING = and_(AnnotationRow.told_at.is_(None), AnnotationRow.given_up_at.is_(None))


@dataclass(frozen=True, slots=True)
class Unsent:
    """A decision that a system does not have yet, with the trace's own id, and how often it was tried before."""

    key: int
    trace_id: str
    attempts: int
    queued_at: datetime
    decision: StoredDecision


@dataclass(frozen=True, slots=True)
class Tally:
    """How many decisions a system has, is still to have, and will never have."""

    sent: int
    waiting: int
    given_up: int


def queue(connection: Transaction, decisions: Sequence[StoredDecision], targets: Mapping[str, Collection[int]]) -> None:
    """Puts decisions into the outbox of each target, within the transaction that keeps them."""
    rows = [
        {
            "trace_pk": decision.trace_pk,
            "version": decision.version,
            "target": target,
            "queued_at": decision.decided_at,
            "due_at": decision.decided_at,
            "attempts": 0,
        }
        for target, pks in sorted(targets.items())
        for decision in decisions
        if decision.trace_pk in pks
    ]
    if rows:
        connection.execute(insert(table(AnnotationRow)), rows)


class Annotations(Aggregate):
    def due(self, target: str) -> datetime | None:
        """When the next one may be sent; None where none waits."""
        return self._scalar(select(func.min(AnnotationRow.due_at)).where(AnnotationRow.target == target, WAITING))

    def claim(self, target: str, most: int, *, now: datetime, until: datetime) -> list[Unsent]:
        """Takes some that are due, and counts an attempt of each. Nobody else gets them `until` then."""
        due: Select[Any] = select(AnnotationRow.id).where(AnnotationRow.target == target, WAITING)
        due = due.where(AnnotationRow.due_at <= now).order_by(AnnotationRow.due_at, AnnotationRow.id).limit(most)
        with self._writing() as connection:
            serialise(connection)
            keys = list(connection.scalars(due))
            _change(connection, keys, attempts=AnnotationRow.attempts + 1, due_at=until)
            belongs = and_(DecisionRow.trace_pk == AnnotationRow.trace_pk, DecisionRow.version == AnnotationRow.version)
            columns = (AnnotationRow.id.label("key"), AnnotationRow.attempts, AnnotationRow.queued_at)
            query = select(*columns, TraceRow.trace_id, table(DecisionRow)).join(DecisionRow, belongs)
            query = query.join(TraceRow, TraceRow.id == AnnotationRow.trace_pk)
            claimed = [
                _unsent(**row)
                for batch in batches(keys, 900)
                for row in connection.execute(query.where(AnnotationRow.id.in_(batch))).mappings()
            ]
        return sorted(claimed, key=lambda unsent: unsent.key)

    def mark_told(self, keys: Sequence[int], *, now: datetime) -> None:
        """Records that the system has these."""
        with self._writing() as connection:
            _change(connection, keys, told_at=now, last_error=None)

    def postpone(self, keys: Sequence[int], *, error: str, until: datetime) -> None:
        """Records why these could not be sent, and when they may be tried again."""
        with self._writing() as connection:
            _change(connection, keys, last_error=error, due_at=until)

    def give_up(self, keys: Sequence[int], *, error: str, now: datetime) -> None:
        """Records that these will not be sent, and why."""
        with self._writing() as connection:
            _change(connection, keys, last_error=error, given_up_at=now)

    def tally(self) -> dict[str, Tally]:
        """By target."""
        sent, given_up = func.count(AnnotationRow.told_at), func.count(AnnotationRow.given_up_at)
        query = select(AnnotationRow.target, func.count(), sent, given_up).group_by(AnnotationRow.target)
        return {target: Tally(has, n - has - lost, lost) for target, n, has, lost in self._rows(query)}


def _change(connection: Transaction, keys: Sequence[int], **values: Any) -> None:
    for batch in batches(keys, 900):
        connection.execute(update(table(AnnotationRow)).where(AnnotationRow.id.in_(batch)).values(**values))


def _unsent(key: int, trace_id: str, attempts: int, queued_at: datetime, **decision: Any) -> Unsent:
    stored = StoredDecision(**{**decision, "flags": tuple(decision["flags"]), "reasons": tuple(decision["reasons"])})
    return Unsent(key, trace_id, attempts, queued_at, stored)
