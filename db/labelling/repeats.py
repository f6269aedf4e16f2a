"""Traces that come to their labeller once more. What they say then is kept here alone: no label, and no gold."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection, select

from calibrate.types import Verdict
from db.engine import Aggregate, serialise
from db.tables import LabelRow, MemberRow, RepeatRow, TraceRow, table


@dataclass(frozen=True, slots=True)
class Repeat:
    """What somebody said of a trace, and what they said when it came again unannounced."""

    trace_pk: int
    labeller: str
    before: Verdict
    again: Verdict


class Repeats(Aggregate):
    def hand_out(
        self, sample_id: int, labeller: str, *, share: float, gap: int, held: Collection[int], now: datetime
    ) -> int | None:
        """The key of one trace of the sample that this labeller labelled at least `gap` labels ago, to come again; None
        where none is due. A share of their traces comes once each, chosen by a hash. Asked again before it is answered,
        it is the same one, unless the labeller holds it."""
        with self._reading() as connection:
            due = _due(connection, sample_id, labeller, share, gap)
        if not due:
            return None
        with self._writing() as connection:
            serialise(connection)
            for pk, before in due:
                mine = (RepeatRow.trace_pk == pk, RepeatRow.labeller == labeller)
                row = connection.execute(select(RepeatRow.answered_at).where(*mine)).first()
                if row is None:
                    keys = {"sample_id": sample_id, "trace_pk": pk, "labeller": labeller}
                    connection.execute(sa.insert(table(RepeatRow)), [{**keys, "before": before, "handed_at": now}])
                    return pk
                if row.answered_at is None:
                    return None if pk in held else pk
        return None

    def answer(self, labeller: str, pk: int, verdict: Verdict | None, *, again: bool, now: datetime) -> bool:
        """Keep what the labeller says of a trace that was handed out again; None: they passed it over. False where it
        was not, or where it is answered and `again` does not say that this changes that answer."""
        mine = (RepeatRow.trace_pk == pk, RepeatRow.labeller == labeller)
        with self._writing() as connection:
            serialise(connection)
            row = connection.execute(select(RepeatRow.answered_at, RepeatRow.verdict).where(*mine)).first()
            if row is None or (again and row.answered_at is None):
                return False
            if row.answered_at is not None and not again:
                return bool(row.verdict == verdict)  # sent again after a lost reply
            values = {"verdict": verdict, "answered_at": now}
            connection.execute(sa.update(table(RepeatRow)).where(*mine).values(values))
        return True

    def answered(self, sample_id: int | None = None) -> list[Repeat]:
        """Those with a verdict; with a sample, of its traces."""
        columns = (RepeatRow.trace_pk, RepeatRow.labeller, RepeatRow.before, RepeatRow.verdict.label("again"))
        query = select(*columns).where(RepeatRow.verdict.is_not(None)).order_by(RepeatRow.id)
        if sample_id is not None:
            query = query.where(RepeatRow.sample_id == sample_id)
        return self._records(Repeat, query)


def _due(connection: Connection, sample_id: int, labeller: str, share: float, gap: int) -> list[tuple[int, str]]:
    """The traces that are to come again and are not answered yet, with what the labeller said last, oldest first."""
    members = select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id)
    readable = select(TraceRow.id).where(TraceRow.purged_at.is_(None))
    query = select(LabelRow.trace_pk, LabelRow.verdict).where(
        LabelRow.labeller == labeller,
        LabelRow.adjudicates.is_(False),
        LabelRow.trace_pk.in_(members),
        LabelRow.trace_pk.in_(readable),
    )
    latest: dict[int, str] = {}
    for pk, verdict in connection.execute(query.order_by(LabelRow.id)):
        latest.pop(pk, None)
        latest[pk] = verdict
    done = select(RepeatRow.trace_pk).where(RepeatRow.labeller == labeller, RepeatRow.answered_at.is_not(None))
    answered = set(connection.scalars(done))
    long_ago = list(latest.items())[: max(0, len(latest) - gap)]
    return [(pk, verdict) for pk, verdict in long_ago if pk not in answered and _comes_again(labeller, pk, share)]


def _comes_again(labeller: str, pk: int, share: float) -> bool:
    digest = hashlib.blake2b(f"again:{labeller}:{pk}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64
