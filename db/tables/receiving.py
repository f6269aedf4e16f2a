"""Requests with spans that were acknowledged, until their traces are imported; and who joins them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Key


class ReceivedRow(Base):
    """The body comes last, so that SQLite reads the others without it. No key is given twice."""

    __tablename__ = "received"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    spans: Mapped[int]
    size: Mapped[int]
    unpacked: Mapped[int]
    came_at: Mapped[datetime]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012


class JoinerRow(Base):
    """One row: who joins `until` then, and the newest request of which, and before which, every trace is imported."""

    __tablename__ = "joiners"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    holder: Mapped[str] = mapped_column(String(40))
    until: Mapped[datetime]
    settled: Mapped[int] = mapped_column(BigInteger)
