"""Answers that programs have put straight into the store, and that wait to be imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import func, select

from db.engine import Aggregate
from db.tables import LoggedRow
from db.tables.bulk import among
from db.tables.mapping import batches


class LoggedLine(NamedTuple):
    """A record as a program wrote it; None for one that is longer than was to be read."""

    id: int
    text: str | None


class Logged(Aggregate):
    def count(self) -> int:
        """How many wait."""
        return self._scalar(select(func.count()).select_from(LoggedRow)) or 0

    def read(self, limit: int, *, size: int, longest: int) -> list[LoggedLine]:
        """The oldest of them, up to `limit` rows and about `size` characters. Of those beyond `longest`, the id."""
        lengths = select(LoggedRow.id, func.length(LoggedRow.record)).order_by(LoggedRow.id).limit(limit)
        with self._reading() as connection:
            chosen, total = dict[int, int](), 0
            for key, length in connection.execute(lengths).tuples():
                if chosen and total + length > size:
                    break
                chosen[key] = length
                total += length if length <= longest else 0
            readable = [key for key, length in chosen.items() if length <= longest]
            query = select(LoggedRow.id, LoggedRow.record).where(among(connection, LoggedRow.id, readable))
            texts = dict(connection.execute(query).tuples().all())
        # Another process may have taken some of them meanwhile.
        return [LoggedLine(key, texts.get(key)) for key in chosen if key in texts or chosen[key] > longest]

    def settle(self, ids: Sequence[int]) -> None:
        """Removes what was imported or rejected."""
        with self._writing() as connection:
            for batch in batches(sorted(ids), 500):
                connection.execute(sa.delete(LoggedRow).where(LoggedRow.id.in_(batch)))
