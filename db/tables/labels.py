"""Samples, their members, labels and the gold that follows from them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Key


class SampleRow(Base):
    __tablename__ = "samples"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    design: Mapped[str]
    by: Mapped[str | None]
    size: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    pool: Mapped[int]
    undated: Mapped[int]
    filter: Mapped[dict[str, Any]]
    strata: Mapped[dict[str, Any]]
    options: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]


class MemberRow(Base):
    __tablename__ = "sample_members"
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), index=True)
    inclusion_probability: Mapped[float]
    stratum: Mapped[str]
    __table_args__ = (UniqueConstraint("sample_id", "trace_pk"),)


class LabelRow(Base):
    """Append-only: a change of mind is a new row."""

    __tablename__ = "labels"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"))
    labeller: Mapped[str] = mapped_column(String(200))
    verdict: Mapped[str] = mapped_column(String(20))
    kinds: Mapped[list[Any] | None]
    spans: Mapped[list[Any] | None]
    note: Mapped[str | None]
    seconds: Mapped[float | None]
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    adjudicates: Mapped[bool]
    created_at: Mapped[datetime]
    guide: Mapped[int | None]
    __table_args__ = (Index("ix_labels_latest", "trace_pk", "labeller", "id"), Index("ix_labels_recent", "created_at"))


class SkipRow(Base):
    __tablename__ = "skips"
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"), primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True)
    labeller: Mapped[str] = mapped_column(String(200), primary_key=True)
    skipped_at: Mapped[datetime]


class GoldRow(Base):
    """Derived from `labels` in the transaction that adds one (`resolve_gold`); stored so that pages can count."""

    __tablename__ = "gold"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True, autoincrement=False)
    verdict: Mapped[str] = mapped_column(String(20), index=True)
    labellers: Mapped[int]
    decided_at: Mapped[datetime]
