"""Pulls from other systems: how far each has come, so that it goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from db.audit import record as audit
from db.engine import Aggregate
from db.tables import PullRow, table


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull. `settings` hold no secret. `cursor` is the source's own: None before the first page. `traces` counts the
    answers that it brought. `pulled_at` is the time of the last page, `finished_at` that of the last end without an
    error; one that has a later page was stopped."""

    name: str
    system: str
    settings: Mapping[str, Any]
    cursor: Mapping[str, Any] | None
    traces: int
    begun_at: datetime
    pulled_at: datetime | None
    finished_at: datetime | None

    @property
    def finished(self) -> bool:
        """Whether the last run came to its end."""
        return self.finished_at is not None and (self.pulled_at is None or self.pulled_at <= self.finished_at)


class Pulls(Aggregate):
    def get(self, name: str) -> Pull | None:
        return next(iter(self._records(Pull, select(table(PullRow)).where(PullRow.name == name))), None)

    def list(self) -> list[Pull]:
        """By name."""
        return self._records(Pull, select(table(PullRow)).order_by(PullRow.name))

    def begin(
        self, name: str, system: str, settings: Mapping[str, Any], *, now: datetime, restart: bool = False
    ) -> Mapping[str, Any] | None:
        """Keeps the settings, and returns the cursor to go on from: None for a new pull, and for a `restart`, which
        forgets the old one."""
        row = table(PullRow)
        with self._writing() as connection:
            before = connection.execute(select(row).where(row.c.name == name).with_for_update()).mappings().first()
            if before is None:
                values = {"name": name, "system": system, "settings": dict(settings), "traces": 0, "begun_at": now}
                connection.execute(insert(row), [values])
            else:
                changed: dict[str, Any] = {"settings": dict(settings)} | ({"cursor": None} if restart else {})
                connection.execute(update(row).where(row.c.name == name).values(**changed))
            audit(connection, "pull begun", name, now=now, after={"settings": dict(settings), "restart": restart})
        return None if before is None or restart else before["cursor"]

    def advance(self, name: str, cursor: Mapping[str, Any] | None, *, traces: int, now: datetime) -> None:
        """Counts what a page brought, and goes on behind it. Without a cursor it stays where it is."""
        values: dict[str, Any] = {"traces": PullRow.traces + traces, "pulled_at": now}
        if cursor is not None:
            values["cursor"] = dict(cursor)
        self._execute(update(table(PullRow)).where(PullRow.name == name).values(**values))

    def finish(self, name: str, *, now: datetime) -> None:
        self._execute(update(table(PullRow)).where(PullRow.name == name).values(finished_at=now))

    def forget(self, name: str) -> bool:
        """Forgets a pull; what it brought stays. False where there is none."""
        with self._writing() as connection:
            gone = connection.execute(delete(table(PullRow)).where(PullRow.name == name)).rowcount
            if gone:
                audit(connection, "pull forgotten", name)
        return bool(gone)
