"""The labelling guide, who labels what, and what labellers ask the lead."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Key


class GuideRow(Base):
    """Append-only: the newest version of the labelling guide counts. `kinds` are (key, name, meaning)."""

    __tablename__ = "guides"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str]
    kinds: Mapped[list[Any]]
    why: Mapped[str | None]
    saved_by: Mapped[str] = mapped_column(String(200))
    saved_at: Mapped[datetime]


class AssignmentRow(Base):
    """How a sample's traces are shared among labellers; without a row everybody labels all. `overlap` is the chance of
    a trace to get a second labeller, and `seed` decides which."""

    __tablename__ = "assignments"
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"), primary_key=True, autoincrement=False)
    mode: Mapped[str] = mapped_column(String(20))
    overlap: Mapped[float]
    seed: Mapped[int] = mapped_column(BigInteger)
    set_by: Mapped[str] = mapped_column(String(200))
    set_at: Mapped[datetime]


class LeaseRow(Base):
    """A trace that was handed to a labeller, who has it for themselves until then."""

    __tablename__ = "leases"
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"), primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True)
    labeller: Mapped[str] = mapped_column(String(200), primary_key=True)
    until: Mapped[datetime]


class FlagRow(Base):
    """A trace that a labeller wants the lead to look at. Flagged again, the row says so anew and is open again."""

    __tablename__ = "flags"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True)
    labeller: Mapped[str] = mapped_column(String(200), primary_key=True)
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    note: Mapped[str | None]
    raised_at: Mapped[datetime]
    settled_by: Mapped[str | None] = mapped_column(String(200))
    settled_at: Mapped[datetime | None]


class RepeatRow(Base):
    """A trace handed to somebody who had labelled it, `before` being what they said, and what they say the second time;
    without a verdict it waits, or once answered, was passed over. No label and no gold comes of it."""

    __tablename__ = "repeats"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"))
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"))
    labeller: Mapped[str] = mapped_column(String(200))
    before: Mapped[str] = mapped_column(String(20))
    handed_at: Mapped[datetime]
    verdict: Mapped[str | None] = mapped_column(String(20))
    answered_at: Mapped[datetime | None]
    __table_args__ = (UniqueConstraint("trace_pk", "labeller"),)


class PromptExampleRow(Base):
    """Append-only: labelled traces that were set aside for a version of a judge's prompt, and leave calibration for
    good. `quoted`: its text stands in the prompt; else it was looked at, and not chosen."""

    __tablename__ = "prompt_examples"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    file: Mapped[str] = mapped_column(String(200))
    version: Mapped[str] = mapped_column(String(16))
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), index=True)
    quoted: Mapped[bool]
    guide: Mapped[int]
    saved_by: Mapped[str] = mapped_column(String(200))
    saved_at: Mapped[datetime]
    __table_args__ = (UniqueConstraint("file", "version", "trace_pk"),)


class PromptComparisonRow(Base):
    """Append-only: what a new prompt of a judge was found to gain over the one in use, out of fold."""

    __tablename__ = "prompt_comparisons"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    detector: Mapped[str] = mapped_column(String(200))
    before: Mapped[str] = mapped_column(String(16))
    after: Mapped[str] = mapped_column(String(16))
    document: Mapped[dict[str, Any]]
    compared_by: Mapped[str] = mapped_column(String(200))
    compared_at: Mapped[datetime]
