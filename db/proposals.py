"""Questions about releases that wait for a second person, or waited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Engine, insert, select, update

from db.engine import writing
from db.releases import MOST
from db.tables import ProposalRow, table

Decided = Literal["approved", "declined"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A release that somebody wants: `wanted` is what it was asked with and the digest of what it would hold. `outcome`
    is None until somebody decides; `version` is the release it became."""

    id: int
    wanted: Mapping[str, Any]
    outcome: Decided | None
    version: int | None
    proposed_by: str
    proposed_at: datetime
    decided_by: str | None
    decided_at: datetime | None


class Proposals:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, wanted: Mapping[str, Any], *, by: str, now: datetime) -> Proposal:
        row = {"wanted": dict(wanted), "proposed_by": by, "proposed_at": now}
        with writing(self._engine) as connection:
            (key,) = connection.execute(insert(ProposalRow).values(row)).inserted_primary_key or (0,)
        return Proposal(key, dict(wanted), None, None, by, now, None, None)

    def get(self, key: int) -> Proposal | None:
        if key > MOST:
            return None
        with self._engine.connect() as connection:
            row = connection.execute(select(table(ProposalRow)).where(ProposalRow.id == key)).mappings().one_or_none()
        return Proposal(**row) if row else None

    def list(self, *, waiting: bool = False, limit: int = 100) -> list[Proposal]:
        """Newest first; only those that wait, or all."""
        query = select(table(ProposalRow)).order_by(ProposalRow.id.desc()).limit(limit)
        if waiting:
            query = query.where(ProposalRow.outcome.is_(None))
        with self._engine.connect() as connection:
            return [Proposal(**row) for row in connection.execute(query).mappings()]

    def decline(self, key: int, *, by: str, now: datetime) -> bool:
        """False where somebody has decided already."""
        with writing(self._engine) as connection:
            return decide(connection, key, "declined", by=by, now=now)


def decide(
    connection: Connection, key: int, outcome: Decided, *, by: str, now: datetime, version: int | None = None
) -> bool:
    """Decides once, within the caller's transaction; False where somebody has decided already."""
    waits = (ProposalRow.id == key, ProposalRow.outcome.is_(None))
    values = {"outcome": outcome, "decided_by": by, "decided_at": now, "version": version}
    return connection.execute(update(ProposalRow).where(*waits).values(values)).rowcount == 1
