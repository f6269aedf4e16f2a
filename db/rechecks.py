"""Questions about rechecks: begin one, note what came of it, those of a detector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from db.engine import Aggregate, serialise, writing
from db.tables import RecheckRow, table


@dataclass(frozen=True, slots=True)
class Recheck:
    """One recheck of a detector of release `version`; `plan` and `outcome` as workflow.watching.recheck writes them,
    `outcome` None until it is decided."""

    id: int
    detector: str
    version: int
    config_id: int
    sample_id: int
    plan: Mapping[str, Any]
    outcome: Mapping[str, Any] | None
    started_by: str
    started_at: datetime
    finished_at: datetime | None


class Rechecks(Aggregate):
    def begin(
        self,
        detector: str,
        *,
        version: int,
        config_id: int,
        sample_id: int,
        plan: Mapping[str, Any],
        by: str,
        now: datetime,
    ) -> Recheck:
        """Keeps a recheck. A sample has one: begun again, it is the one that stands."""
        row = {
            "detector": detector,
            "version": version,
            "config_id": config_id,
            "sample_id": sample_id,
            "plan": dict(plan),
            "started_by": by,
            "started_at": now,
        }
        with writing(self._engine) as connection:
            serialise(connection)
            key = connection.scalar(select(RecheckRow.id).where(RecheckRow.sample_id == sample_id))
            if key is None:
                (key,) = connection.execute(insert(RecheckRow).values(row)).inserted_primary_key or (0,)
        return self.get(key)

    def finish(self, key: int, outcome: Mapping[str, Any], *, now: datetime) -> Recheck:
        """Notes what came of it. It is noted once: the first decision stands."""
        where = (RecheckRow.id == key, RecheckRow.finished_at.is_(None))
        with writing(self._engine) as connection:
            connection.execute(update(RecheckRow).where(*where).values(outcome=dict(outcome), finished_at=now))
        return self.get(key)

    def get(self, key: int) -> Recheck:
        with self._reading() as connection:
            query = select(table(RecheckRow)).where(RecheckRow.id == key)
            return Recheck(**connection.execute(query).mappings().one())

    def of(self, detector: str | None = None, *, version: int | None = None) -> list[Recheck]:
        """Every recheck, or those of a detector or release, newest first."""
        query = select(table(RecheckRow)).order_by(RecheckRow.id.desc())
        if detector is not None:
            query = query.where(RecheckRow.detector == detector)
        if version is not None:
            query = query.where(RecheckRow.version == version)
        with self._reading() as connection:
            return [Recheck(**row) for row in connection.execute(query).mappings()]
