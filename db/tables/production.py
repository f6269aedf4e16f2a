"""What happens after a release: decisions on production traces, rechecks of precision."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Identity, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Key


class DecisionRow(Base):
    """What a release decided of a trace that production or `watch` scored. `detectors` are those that flagged."""

    __tablename__ = "decisions"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(ForeignKey("releases.version"), primary_key=True, autoincrement=False)
    verdict: Mapped[str] = mapped_column(String(20))
    tier: Mapped[str] = mapped_column(String(20))
    flags: Mapped[list[Any]]
    reasons: Mapped[list[Any]]
    scores: Mapped[dict[str, Any]]
    decided_at: Mapped[datetime]
    __table_args__ = (Index("ix_decisions_recent", "version", "decided_at"), Index("ix_decisions_tier", "tier"))


class OutboxRow(Base):
    """A flag that a webhook is to be told of, in the order of `id`. `told_at` is None until it took the message.

    `due_at` is when it may be told next: while somebody is telling it, and after an attempt that failed, it lies ahead.
    """

    __tablename__ = "outbox"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key)
    version: Mapped[int]
    queued_at: Mapped[datetime]
    due_at: Mapped[datetime]
    attempts: Mapped[int]
    last_error: Mapped[str | None]
    told_at: Mapped[datetime | None]
    __table_args__ = (
        ForeignKeyConstraint(["trace_pk", "version"], ["decisions.trace_pk", "decisions.version"], ondelete="CASCADE"),
        UniqueConstraint("trace_pk", "version"),
        Index("ix_outbox_untold", "told_at", "id"),
    )


class RecheckRow(Base):
    """Flagged traces of a release that are labelled one by one until it is clear whether its precision holds."""

    __tablename__ = "rechecks"
    id: Mapped[int] = mapped_column(primary_key=True)
    detector: Mapped[str] = mapped_column(String(200), index=True)
    version: Mapped[int] = mapped_column(ForeignKey("releases.version"))
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"))
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"))
    plan: Mapped[dict[str, Any]]
    outcome: Mapped[dict[str, Any] | None]
    started_by: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class LoggedRow(Base):
    """An answer that a program logged: one line of a trace file, to be imported. Programs may insert here and read
    nothing."""

    __tablename__ = "logged"
    id: Mapped[int] = mapped_column(Key, Identity(), primary_key=True)
    record: Mapped[str]
    __table_args__ = ({"sqlite_autoincrement": True},)
