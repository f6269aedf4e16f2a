"""What a team keeps beside traces: files, baselines, paid replies, the log of who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Key


class TeamFileRow(Base):
    """Append-only: the latest version of a file counts; NULL means "ours again". `reason`: why it was saved although
    nothing shows that it gains."""

    __tablename__ = "team_files"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), index=True)
    text: Mapped[str | None]
    saved_by: Mapped[str]
    saved_at: Mapped[datetime]
    reason: Mapped[str | None]


class BaselineRow(Base):
    """Append-only: the latest of a statistic and model counts."""

    __tablename__ = "baselines"
    id: Mapped[int] = mapped_column(primary_key=True)
    statistic: Mapped[str] = mapped_column(String(100))
    model: Mapped[str]
    centre: Mapped[float]
    spread: Mapped[float]
    n: Mapped[int]
    fitted_at: Mapped[datetime]


class ReplyRow(Base):
    """What a chat endpoint replied, by the digest of the request, which was about this trace."""

    __tablename__ = "replies"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    model: Mapped[str]
    reply: Mapped[dict[str, Any]]
    replied_at: Mapped[datetime]
    trace_id: Mapped[str | None] = mapped_column(String(500), index=True)


class AuditRow(Base):
    """Append-only, and the database's triggers hold it: the migration has them."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    at: Mapped[datetime]
    who: Mapped[str] = mapped_column(String(200))
    how: Mapped[str] = mapped_column(String(20))
    verb: Mapped[str] = mapped_column(String(40))
    what: Mapped[str]
    before: Mapped[dict[str, Any] | None]
    after: Mapped[dict[str, Any] | None]


class PurgeRow(Base):
    """Append-only: who removed texts, chosen how, and how many of what. `compacted_at` is NULL until the database
    files were written anew without them."""

    __tablename__ = "purges"
    id: Mapped[int] = mapped_column(primary_key=True)
    by: Mapped[str]
    chosen: Mapped[dict[str, Any]]
    counts: Mapped[dict[str, Any]]
    purged_at: Mapped[datetime]
    compacted_at: Mapped[datetime | None]
