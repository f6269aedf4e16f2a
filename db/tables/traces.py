"""Traces. Texts that several share (sources, contexts) are stored once, by digest."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Document, Key


class TextRow(Base):
    __tablename__ = "texts"
    digest: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    text: Mapped[str]


class TraceRow(Base):
    __tablename__ = "traces"
    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    trace_id: Mapped[str] = mapped_column(String(500), unique=True)
    content_hash: Mapped[str] = mapped_column(String(32), index=True)
    timestamp: Mapped[datetime | None]
    model: Mapped[str | None]
    operation: Mapped[str | None]
    source_group: Mapped[str | None]
    question: Mapped[str | None]
    answer: Mapped[str]
    context_digest: Mapped[bytes | None] = mapped_column(ForeignKey("texts.digest"))
    tokens: Mapped[list[Any] | None]
    alternatives: Mapped[list[Any] | None]
    output_schema: Mapped[Any | None] = mapped_column(Document)
    attributes: Mapped[dict[str, Any] | None]
    imported_at: Mapped[datetime]
    purged_at: Mapped[datetime | None]
    __table_args__ = (
        Index("ix_traces_time", "timestamp", "id"),
        Index("ix_traces_model", "model", "timestamp"),
        Index(
            "ix_traces_purged", "id",
            sqlite_where=text("purged_at NOTNULL"), postgresql_where=text("purged_at NOTNULL"),
        ),
    )  # fmt: skip


class TraceDayRow(Base):
    """How many traces a day (UTC) has of a model and an operation, "(none)" for none; the day of undated ones is empty.

    Triggers of the database keep it: the migration has them. `first` and `last` may be those of traces that went.
    """

    __tablename__ = "trace_days"
    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    operation: Mapped[str] = mapped_column(primary_key=True)
    traces: Mapped[int] = mapped_column(BigInteger)
    first: Mapped[datetime | None]
    last: Mapped[datetime | None]


class SourceRow(Base):
    __tablename__ = "sources"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str]
    text_digest: Mapped[bytes] = mapped_column(ForeignKey("texts.digest"))
    title: Mapped[str | None]
    retrieval_score: Mapped[float | None]


class DrawnRow(Base):
    """Alternatives drawn for a content that came without any. `request` says from which model and how."""

    __tablename__ = "drawn_alternatives"
    content_hash: Mapped[str] = mapped_column(String(32), primary_key=True)
    alternatives: Mapped[list[Any]]
    request: Mapped[dict[str, Any]]
    drawn_at: Mapped[datetime]
