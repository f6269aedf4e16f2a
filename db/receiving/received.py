"""Requests with spans, from their acknowledgement until their traces are imported, and the one who joins them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection, func, insert, select

from calibrate.types import Arrival, Backlog, StoredArrival
from db.engine import Aggregate
from db.tables import JoinerRow, ReceivedRow, table
from db.tables.bulk import upsert
from db.tables.mapping import batches

RECEIVE_LOCK = 0x70C58  # keys grow in the order of commits: without it a joiner could pass over a request
_JOINER = 1
_MOST_LOOKED_AT = 500


class Received(Aggregate):
    def append(self, arrivals: Sequence[Arrival]) -> None:
        """Keep these requests, in one transaction. They are safe when this returns."""
        rows = [
            {
                "kind": each.kind,
                "spans": each.spans,
                "size": len(each.body),
                "unpacked": each.unpacked,
                "came_at": each.at,
                "body": each.body,
            }
            for each in arrivals
        ]
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(RECEIVE_LOCK)))
            connection.execute(insert(table(ReceivedRow)), rows)

    def backlog(self, now: datetime) -> Backlog:
        """Count what is not imported yet."""
        settled = select(JoinerRow.settled).where(JoinerRow.id == _JOINER).scalar_subquery()
        size = sa.cast(func.coalesce(func.sum(ReceivedRow.size), 0), sa.BigInteger)
        query = select(func.count(), size, func.min(ReceivedRow.came_at))
        query = query.where(ReceivedRow.id > func.coalesce(settled, 0))
        with self._reading() as connection:
            requests, total, oldest = connection.execute(query).one()
            until = connection.scalar(select(JoinerRow.until).where(JoinerRow.id == _JOINER))
        return Backlog(requests, total, oldest, until is not None and until > now)

    def hold(self, holder: str, *, now: datetime, until: datetime) -> int | None:
        """Become, or stay, the only joiner. Returns the newest settled key; None where somebody else is the joiner."""
        with self._writing() as connection:
            connection.execute(
                upsert(connection, JoinerRow), [{"id": _JOINER, "holder": holder, "until": until, "settled": 0}]
            )
            free = sa.or_(JoinerRow.holder == holder, JoinerRow.until <= now)
            mine = sa.update(JoinerRow).where(JoinerRow.id == _JOINER, free).values(holder=holder, until=until)
            if not connection.execute(mine).rowcount:
                return None
            return connection.scalar(select(JoinerRow.settled).where(JoinerRow.id == _JOINER))

    def leave(self, holder: str, *, now: datetime) -> None:
        """Let another joiner begin at once."""
        mine = (JoinerRow.id == _JOINER, JoinerRow.holder == holder)
        self._execute(sa.update(JoinerRow).where(*mine).values(until=now))

    def after(self, key: int, *, most_bytes: int) -> list[StoredArrival]:
        """The next requests, in order: at least one, then as many as have so many bytes unpacked."""
        columns = (ReceivedRow.id, ReceivedRow.unpacked)
        query = select(*columns).where(ReceivedRow.id > key).order_by(ReceivedRow.id).limit(_MOST_LOOKED_AT)
        with self._reading() as connection:
            keys: list[int] = []
            for each, unpacked in connection.execute(query).tuples():
                most_bytes -= unpacked
                if keys and most_bytes < 0:
                    break
                keys.append(each)
            return _load(connection, keys)

    def load(self, keys: Sequence[int]) -> list[StoredArrival]:
        """Those of these requests that are still here, in order."""
        with self._reading() as connection:
            return _load(connection, keys)

    def settle(self, holder: str, key: int, *, gone: Sequence[int] = ()) -> bool:
        """Record that all traces up to this request are imported, and forget the requests that are `gone`.

        Returns False, and changes nothing, where somebody else has become the joiner.
        """
        with self._writing() as connection:
            mine = (JoinerRow.id == _JOINER, JoinerRow.holder == holder)
            if not connection.execute(sa.update(JoinerRow).where(*mine).values(settled=key)).rowcount:
                return False
            for batch in batches(list(gone), 500):
                connection.execute(sa.delete(ReceivedRow).where(ReceivedRow.id.in_(batch)))
        return True


def forget_settled(connection: Connection) -> None:
    """Remove the requests whose traces are all imported: a purge wants no texts left in them."""
    settled = select(JoinerRow.settled).where(JoinerRow.id == _JOINER).scalar_subquery()
    connection.execute(sa.delete(table(ReceivedRow)).where(ReceivedRow.id <= settled))


def _load(connection: Connection, keys: Sequence[int]) -> list[StoredArrival]:
    stored = []
    for batch in batches(list(keys), 500):
        query = select(table(ReceivedRow)).where(ReceivedRow.id.in_(batch)).order_by(ReceivedRow.id)
        for row in connection.execute(query).mappings():
            body = bytes(row["body"])
            stored.append(
                StoredArrival(row["id"], Arrival(row["kind"], body, row["spans"], row["unpacked"], row["came_at"]))
            )
    return stored
