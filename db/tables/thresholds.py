"""Chosen thresholds: points, certifications, ensembles, proposals and releases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base


class PointRow(Base):
    """An operating point somebody chose and saved; the latest of a detector is the one on offer for release."""

    __tablename__ = "operating_points"
    id: Mapped[int] = mapped_column(primary_key=True)
    detector: Mapped[str] = mapped_column(String(200), index=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"))
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    point: Mapped[dict[str, Any]]
    data: Mapped[dict[str, Any]]
    chosen_by: Mapped[str]
    chosen_at: Mapped[datetime]


class CertificationRow(Base):
    """One attempt to certify a threshold: the plan of its second stage, fixed before any of that stage's labels, and
    what came of it. `outcome` is NULL until then."""

    __tablename__ = "certifications"
    id: Mapped[int] = mapped_column(primary_key=True)
    detector: Mapped[str] = mapped_column(String(200), index=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"))
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    fresh_sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    plan: Mapped[dict[str, Any]]
    outcome: Mapped[dict[str, Any] | None]
    started_by: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class EnsembleRow(Base):
    """Append-only: the latest of a name counts."""

    __tablename__ = "ensembles"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), index=True)
    document: Mapped[dict[str, Any]]
    saved_by: Mapped[str]
    saved_at: Mapped[datetime]


class ReleaseRow(Base):
    """Immutable: the exact bytes of the thresholds file."""

    __tablename__ = "releases"
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[str]
    sha256: Mapped[str] = mapped_column(String(64))
    released_by: Mapped[str]
    released_at: Mapped[datetime]
    note: Mapped[str]


class ProposalRow(Base):
    """A release that waits for a second person, or waited. `outcome` is NULL until somebody decides."""

    __tablename__ = "proposals"
    id: Mapped[int] = mapped_column(primary_key=True)
    wanted: Mapped[dict[str, Any]]
    outcome: Mapped[str | None] = mapped_column(String(20))
    version: Mapped[int | None]
    proposed_by: Mapped[str]
    proposed_at: Mapped[datetime]
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None]
