"""What flows between the store and other systems."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Index, String, UniqueConstraint, and_, column
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Key


class PullRow(Base):
    """How far a pull from another system has come. `settings` and `cursor` hold no secret."""

    __tablename__ = "pulls"
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    system: Mapped[str] = mapped_column(String(20))
    settings: Mapped[dict[str, Any]]
    cursor: Mapped[dict[str, Any] | None]
    traces: Mapped[int] = mapped_column(BigInteger)
    begun_at: Mapped[datetime]
    pulled_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class OriginRow(Base):
    """A pull by which answers came. It stays when the pull is forgotten."""

    __tablename__ = "origins"
    id: Mapped[int] = mapped_column(primary_key=True)
    pull: Mapped[str] = mapped_column(String(200))
    system: Mapped[str] = mapped_column(String(20))
    __table_args__ = (UniqueConstraint("pull", "system"),)


class PulledRow(Base):
    """That a pull brought an answer, or found it in the store already."""

    __tablename__ = "pulled"
    origin_id: Mapped[int] = mapped_column(ForeignKey("origins.id"), primary_key=True, autoincrement=False)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True, autoincrement=False)
    __table_args__ = ({"sqlite_with_rowid": False},)


WAITING = and_(column("told_at").is_(None), column("given_up_at").is_(None))


class AnnotationRow(Base):
    """A decision that another system, the `target`, is to have. It waits while `told_at` and `given_up_at` are None;
    `due_at` is when it may be sent next."""

    __tablename__ = "annotations"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key)
    version: Mapped[int]
    target: Mapped[str] = mapped_column(String(20))
    queued_at: Mapped[datetime]
    due_at: Mapped[datetime]
    attempts: Mapped[int]
    last_error: Mapped[str | None]
    told_at: Mapped[datetime | None]
    given_up_at: Mapped[datetime | None]
    __table_args__ = (
        ForeignKeyConstraint(["trace_pk", "version"], ["decisions.trace_pk", "decisions.version"], ondelete="CASCADE"),
        UniqueConstraint("trace_pk", "version", "target"),
        Index(
            "ix_annotations_waiting",
            "target",
            "due_at",
            sqlite_where=WAITING,
            postgresql_where=WAITING,
        ),
    )
