"""Who labels what: everybody everything, or each trace to one labeller, some to two. What was handed out is leased."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import Connection, select

from calibrate.types import Sample
from db.audit import record as audit
from db.engine import Aggregate, serialise
from db.tables import AssignmentRow, LabelRow, LeaseRow, MemberRow, SkipRow, TraceRow, table
from db.tables.bulk import upsert
from db.tables.mapping import batches

Mode = Literal["everyone", "split"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """How a sample is shared. Split: each trace is one labeller's, or two's with the chance `overlap`."""

    mode: Mode
    overlap: float = 0.0
    seed: int = 0
    set_by: str | None = None
    set_at: datetime | None = None

    def twice(self, pk: int) -> bool:
        """Whether two people label the trace. It hangs on nothing but the seed and the trace, so traces that are drawn
        later have the same chance."""
        digest = hashlib.blake2b(f"{self.seed}:{pk}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) < self.overlap * 2**64


class Assignments(Aggregate):
    def get(self, sample_id: int) -> Assignment | None:
        """None where nobody has said how the sample is shared."""
        with self._reading() as connection:
            return _assignment(connection, sample_id)

    def set(self, sample: Sample, assignment: Assignment, *, by: str, now: datetime) -> None:
        """Share a sample from now on in this way; what is leased already stays leased."""
        values = {"mode": assignment.mode, "overlap": assignment.overlap, "seed": assignment.seed}
        row = {"sample_id": sample.id, **values, "set_by": by, "set_at": now}
        with self._writing() as connection:
            serialise(connection)
            before = _assignment(connection, sample.id) or Assignment("everyone")
            connection.execute(upsert(connection, AssignmentRow, replacing=list(row)[1:]), [row])
            was = {"mode": before.mode, "overlap": before.overlap}
            audit(connection, "sample assigned", sample.name, by=by, before=was, after=values)

    def take(self, sample_id: int, labeller: str, count: int, *, now: datetime, until: datetime) -> list[int]:
        """The keys of the next traces that this labeller labels, at most `count`, leased to them until then.

        Those that they skipped come last. No trace is handed to more people than are to label it: whoever labelled it
        or has a lease that lasts counts.
        """
        with self._reading() as connection:
            if (_assignment(connection, sample_id) or Assignment("everyone")).mode == "everyone":
                return list(_open_to(connection, sample_id, labeller)[:count])
        with self._writing() as connection:
            serialise(connection)
            assignment = _assignment(connection, sample_id) or Assignment("everyone")
            chosen = _wanting(connection, assignment, sample_id, labeller, now)[:count]
            expired = sa.or_(LeaseRow.labeller == labeller, LeaseRow.until <= now)
            connection.execute(sa.delete(LeaseRow).where(LeaseRow.sample_id == sample_id, expired))
            keys = {"sample_id": sample_id, "labeller": labeller, "until": until}
            if chosen:
                connection.execute(sa.insert(table(LeaseRow)), [{**keys, "trace_pk": pk} for pk in chosen])
        return chosen

    def wanting(self, sample_id: int, labeller: str, now: datetime) -> int:
        """How many traces this labeller may still label: those that they have not, and that want somebody else."""
        with self._reading() as connection:
            assignment = _assignment(connection, sample_id) or Assignment("everyone")
            return len(_wanting(connection, assignment, sample_id, labeller, now))

    def give_back(self, sample_id: int, labeller: str, pks: Sequence[int]) -> None:
        """End this labeller's leases of these traces: others may have them."""
        mine = (LeaseRow.sample_id == sample_id, LeaseRow.labeller == labeller)
        with self._writing() as connection:
            for batch in batches(list(pks), 500):
                connection.execute(sa.delete(LeaseRow).where(*mine, LeaseRow.trace_pk.in_(batch)))

    def held(self, sample_id: int, now: datetime) -> dict[str, list[int]]:
        """The keys of the traces that each labeller holds under a lease that lasts."""
        query = select(LeaseRow.labeller, LeaseRow.trace_pk).where(
            LeaseRow.sample_id == sample_id, LeaseRow.until > now
        )
        held: dict[str, list[int]] = {}
        for labeller, pk in self._rows(query.order_by(LeaseRow.labeller, LeaseRow.trace_pk)):
            held.setdefault(labeller, []).append(pk)
        return held

    def labelled(self, sample_id: int) -> dict[str, int]:
        """How many of the sample's traces each labeller has labelled."""
        members = select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id)
        query = select(LabelRow.labeller, sa.func.count(LabelRow.trace_pk.distinct()))
        query = query.where(LabelRow.trace_pk.in_(members), LabelRow.adjudicates.is_(False))
        return dict(self._rows(query.group_by(LabelRow.labeller)))


def _assignment(connection: Connection, sample_id: int) -> Assignment | None:
    columns = [column for column in table(AssignmentRow).c if column.name != "sample_id"]
    row = connection.execute(select(*columns).where(AssignmentRow.sample_id == sample_id)).mappings().first()
    return None if row is None else Assignment(**row)


def _wanting(connection: Connection, assignment: Assignment, sample_id: int, labeller: str, now: datetime) -> list[int]:
    """The traces that this labeller may label, in their order: fewer others than are to label it have or hold it."""
    mine = _open_to(connection, sample_id, labeller)
    if assignment.mode == "everyone":
        return list(mine)
    holders = _holders(connection, sample_id, now)
    return [pk for pk in mine if len(holders.get(pk, set()) - {labeller}) < (2 if assignment.twice(pk) else 1)]


def _holders(connection: Connection, sample_id: int, now: datetime) -> dict[int, set[str]]:
    """Who has labelled each member, or has it leased."""
    members = select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id)
    labelled = select(LabelRow.trace_pk, LabelRow.labeller).where(
        LabelRow.trace_pk.in_(members), LabelRow.adjudicates.is_(False)
    )
    leased = select(LeaseRow.trace_pk, LeaseRow.labeller).where(LeaseRow.sample_id == sample_id, LeaseRow.until > now)
    holders: dict[int, set[str]] = {}
    for pk, labeller in connection.execute(labelled.union(leased)).tuples():
        holders.setdefault(pk, set()).add(labeller)
    return holders


def _open_to(connection: Connection, sample_id: int, labeller: str) -> Sequence[int]:
    """The members that this labeller has not labelled, in labelling order, those they skipped last."""
    mine = select(LabelRow.trace_pk).where(LabelRow.labeller == labeller, LabelRow.adjudicates.is_(False))
    skipped = sa.and_(
        SkipRow.sample_id == sample_id, SkipRow.trace_pk == MemberRow.trace_pk, SkipRow.labeller == labeller
    )
    query = select(MemberRow.trace_pk).join(TraceRow, TraceRow.id == MemberRow.trace_pk).outerjoin(SkipRow, skipped)
    query = query.where(MemberRow.sample_id == sample_id, TraceRow.purged_at.is_(None))
    query = query.where(MemberRow.trace_pk.not_in(mine))
    order = (SkipRow.skipped_at.is_not(None), SkipRow.skipped_at, MemberRow.position)
    return connection.scalars(query.order_by(*order)).all()
