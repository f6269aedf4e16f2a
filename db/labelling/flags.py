"""What labellers ask the lead to look at: at most one flag a trace and labeller, open until somebody settles it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update

from db.audit import record as audit
from db.engine import Aggregate
from db.tables import FlagRow, TraceRow, table
from db.tables.bulk import upsert


@dataclass(frozen=True, slots=True)
class Flag:
    """A labeller's question about a trace."""

    trace_pk: int
    trace_id: str
    labeller: str
    note: str | None
    raised_at: datetime


class Flags(Aggregate):
    def put(self, pk: int, labeller: str, *, sample_id: int | None, note: str | None, now: datetime) -> None:
        """Raise a flag, or open it again with what it says now."""
        row = {"trace_pk": pk, "labeller": labeller, "sample_id": sample_id, "note": note, "raised_at": now}
        values = {**row, "settled_by": None, "settled_at": None}
        with self._writing() as connection:
            connection.execute(upsert(connection, FlagRow, replacing=list(values)[2:]), [values])

    def remove(self, pk: int, labeller: str) -> None:
        """Take back one's own flag while it is open."""
        flags = table(FlagRow)
        mine = (flags.c.trace_pk == pk, flags.c.labeller == labeller, flags.c.settled_at.is_(None))
        with self._writing() as connection:
            connection.execute(flags.delete().where(*mine))

    def settle(self, pk: int, labeller: str, *, by: str, now: datetime) -> bool:
        """Close a flag. Gives whether it was open."""
        flags = table(FlagRow)
        is_open = (flags.c.trace_pk == pk, flags.c.labeller == labeller, flags.c.settled_at.is_(None))
        with self._writing() as connection:
            closed = connection.execute(update(flags).where(*is_open).values(settled_by=by, settled_at=now)).rowcount
            if closed:
                name = connection.scalar(select(TraceRow.trace_id).where(TraceRow.id == pk))
                audit(connection, "flag settled", str(name), by=by, before=None, after={"labeller": labeller})
        return bool(closed)

    def open(self) -> list[Flag]:
        """The flags that nobody has settled, the oldest first."""
        columns = (FlagRow.trace_pk, TraceRow.trace_id, FlagRow.labeller, FlagRow.note, FlagRow.raised_at)
        query = select(*columns).join(TraceRow, TraceRow.id == FlagRow.trace_pk)
        rows = self._rows(query.where(FlagRow.settled_at.is_(None)).order_by(FlagRow.raised_at, FlagRow.trace_pk))
        return [Flag(*row) for row in rows]

    def of(self, pks: list[int], labeller: str) -> dict[int, str]:
        """Which of these traces this labeller has an open flag on, and what it says."""
        mine = (FlagRow.trace_pk.in_(pks), FlagRow.labeller == labeller, FlagRow.settled_at.is_(None))
        return {pk: note or "" for pk, note in self._rows(select(FlagRow.trace_pk, FlagRow.note).where(*mine))}
