"""The labelling guide, and who labels what."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base


class GuideRow(Base):
    """Append-only: the newest version of the labelling guide counts. `kinds` are (key, name, meaning)."""

    __tablename__ = "guides"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str]
    kinds: Mapped[list[Any]]
    why: Mapped[str | None]
    saved_by: Mapped[str] = mapped_column(String(200))
    saved_at: Mapped[datetime]
