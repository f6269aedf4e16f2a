"""Attempts to certify a threshold, and rechecks of a released one: a plan that is fixed first, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import select, update

from db.audit import record as audit
from db.engine import Aggregate, insert_row, serialise
from db.tables import CertificationRow, RecheckRow, table


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


A = TypeVar("A", Certification, Recheck)


class _Attempts(Aggregate, Generic[A]):
    _row: ClassVar[type[CertificationRow] | type[RecheckRow]]
    _record: type[A]

    def finish(self, key: int, outcome: Mapping[str, Any], *, now: datetime) -> A:
        """Stores the outcome, once: the first one stands, so that nothing is tested until it passes."""
        waits = (self._row.id == key, self._row.finished_at.is_(None))
        self._execute(update(self._row).where(*waits).values(outcome=dict(outcome), finished_at=now))
        return self.get(key)

    def get(self, key: int) -> A:
        [record] = self._records(self._record, select(table(self._row)).where(self._row.id == key))
        return record

    def of(self, detector: str | None = None, *, version: int | None = None) -> list[A]:
        """Every attempt, or those of a detector (and for rechecks of a release), newest first."""
        columns, values = table(self._row).c, {"detector": detector, "version": version}
        where = [columns[name] == value for name, value in values.items() if value is not None]
        return self._records(self._record, select(table(self._row)).where(*where).order_by(columns.id.desc()))


class Certifications(_Attempts[Certification]):
    _row, _record = CertificationRow, Certification

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
        row = {"detector": detector, "config_id": config_id, "sample_id": sample_id, "plan": dict(plan)}
        with self._writing() as connection:
            key = insert_row(connection, CertificationRow, {**row, "started_by": by, "started_at": now})
            audit(connection, "certification begun", detector, by=by, after={"attempt": key})
        return self.get(key)

    def set_fresh_sample(self, key: int, sample_id: int) -> Certification:
        """Stores the sample of the second stage, once: a plan has one draw."""
        waits = (CertificationRow.id == key, CertificationRow.fresh_sample_id.is_(None))
        self._execute(update(CertificationRow).where(*waits).values(fresh_sample_id=sample_id))
        return self.get(key)


class Rechecks(_Attempts[Recheck]):
    _row, _record = RecheckRow, Recheck

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
        """Start the recheck of a sample, or return the one it has."""
        row = {"detector": detector, "version": version, "config_id": config_id, "sample_id": sample_id}
        with self._writing() as connection:
            serialise(connection)
            key = connection.scalar(select(RecheckRow.id).where(RecheckRow.sample_id == sample_id))
            if key is None:
                key = insert_row(
                    connection, RecheckRow, {**row, "plan": dict(plan), "started_by": by, "started_at": now}
                )
                audit(connection, "recheck begun", detector, by=by, after={"release": version})
        return self.get(key)
