"""Questions about what was built on sweeps: attempts to certify a threshold, ensembles that were saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, update

from db.engine import Aggregate, writing
from db.tables import CertificationRow, EnsembleRow, table


@dataclass(frozen=True, slots=True)
class Certification:
    """One attempt. `sample_id` is that of the first labels (None: all labels), `fresh_sample_id` of those drawn by the
    plan, None until they are; `outcome` is None until they are labelled and tested."""

    id: int
    detector: str
    config_id: int
    sample_id: int | None
    fresh_sample_id: int | None
    plan: Mapping[str, Any]
    outcome: Mapping[str, Any] | None
    started_by: str
    started_at: datetime
    finished_at: datetime | None


class Certifications(Aggregate):
    def start(
        self,
        detector: str,
        *,
        config_id: int,
        sample_id: int | None,
        plan: Mapping[str, Any],
        by: str,
        now: datetime,
    ) -> Certification:
        row = {
            "detector": detector,
            "config_id": config_id,
            "sample_id": sample_id,
            "plan": dict(plan),
            "started_by": by,
            "started_at": now,
        }
        with writing(self._engine) as connection:
            (key,) = connection.execute(insert(CertificationRow).values(row)).inserted_primary_key or (0,)
        return self.get(key)

    def drawn(self, key: int, fresh_sample_id: int) -> Certification:
        """Notes the sample of the second stage. It is noted once: a plan has one draw."""
        where = (CertificationRow.id == key, CertificationRow.fresh_sample_id.is_(None))
        with writing(self._engine) as connection:
            connection.execute(update(CertificationRow).where(*where).values(fresh_sample_id=fresh_sample_id))
        return self.get(key)

    def finish(self, key: int, outcome: Mapping[str, Any], *, now: datetime) -> Certification:
        """Notes what came of it. It is noted once: a test is not repeated until it passes."""
        where = (CertificationRow.id == key, CertificationRow.finished_at.is_(None))
        with writing(self._engine) as connection:
            done = update(CertificationRow).where(*where).values(outcome=dict(outcome), finished_at=now)
            connection.execute(done)
        return self.get(key)

    def get(self, key: int) -> Certification:
        with self._reading() as connection:
            query = select(table(CertificationRow)).where(CertificationRow.id == key)
            return Certification(**connection.execute(query).mappings().one())

    def of(self, detector: str) -> list[Certification]:
        """Every attempt of a detector, newest first."""
        query = select(table(CertificationRow)).where(CertificationRow.detector == detector)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(CertificationRow.id.desc())).mappings()
            return [Certification(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class SavedEnsemble:
    """An ensemble as it was saved: `document` is what calibrate.workflow.tuning.ensemble wrote."""

    id: int
    name: str
    document: Mapping[str, Any]
    saved_by: str
    saved_at: datetime


class Ensembles(Aggregate):
    def save(self, name: str, document: Mapping[str, Any], *, by: str, now: datetime) -> None:
        row = {"name": name, "document": dict(document), "saved_by": by, "saved_at": now}
        with writing(self._engine) as connection:
            connection.execute(insert(EnsembleRow), [row])

    def latest(self) -> dict[str, SavedEnsemble]:
        """The newest of each name."""
        newest = select(func.max(EnsembleRow.id)).group_by(EnsembleRow.name)
        query = select(table(EnsembleRow)).where(EnsembleRow.id.in_(newest)).order_by(EnsembleRow.name)
        with self._reading() as connection:
            return {row["name"]: SavedEnsemble(**row) for row in connection.execute(query).mappings()}

    def of(self, name: str, *, until: datetime) -> list[SavedEnsemble]:
        """Every ensemble that was saved under the name by then, newest first."""
        query = select(table(EnsembleRow)).where(EnsembleRow.name == name, EnsembleRow.saved_at <= until)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(EnsembleRow.id.desc())).mappings()
            return [SavedEnsemble(**row) for row in rows]
