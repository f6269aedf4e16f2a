"""Detector configurations, their scores, and the runs that make them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base


class ConfigRow(Base):
    """A detector as it was run: name, version, parameters, model revision. `key` is their digest."""

    __tablename__ = "detector_configs"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(32), unique=True)
    name: Mapped[str] = mapped_column(String(200), index=True)
    version: Mapped[str]
    params: Mapped[dict[str, Any]]
    revision: Mapped[str]
    created_at: Mapped[datetime]


class ScoreRow(Base):
    """One detector configuration's score of one content; traces with the same content share it."""

    __tablename__ = "scores"
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"), primary_key=True)
    content_hash: Mapped[str] = mapped_column(String(32), primary_key=True)
    status: Mapped[str] = mapped_column(String(20))
    value: Mapped[float | None]
    reason: Mapped[str | None]
    seconds: Mapped[float]
    evidence: Mapped[list[Any] | None]
    usage: Mapped[list[Any] | None]
    scored_at: Mapped[datetime]
    __table_args__ = (
        Index("ix_scores_recent", "config_id", "scored_at"),
        Index("ix_scores_status", "status", "config_id"),
        Index(
            "ix_scores_value", "config_id", "value",
            sqlite_where=text("value NOTNULL"), postgresql_where=text("value NOTNULL"),
        ),
    )  # fmt: skip


class ExternalRow(Base):
    """A detector whose scores are computed elsewhere; its configurations are the revisions of these scores.

    `flag_when` is NULL until somebody has told which side is suspicious.
    """

    __tablename__ = "external_detectors"
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    flag_when: Mapped[str | None] = mapped_column(String(10))
    unit: Mapped[str | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    revision: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[datetime]


class RunRow(Base):
    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(20), index=True)
    detectors: Mapped[list[Any]]
    scope: Mapped[dict[str, Any]]
    options: Mapped[dict[str, Any] | None]
    total: Mapped[int]
    done: Mapped[int]
    counts: Mapped[dict[str, Any]]
    stop_requested: Mapped[bool]
    worker: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
