"""The labelling guide: what a team tells its labellers, and the kinds of error that they may choose."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of error. Labels hold its `key`; labellers read its `name` and its `meaning`."""

    key: str
    name: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Guide:
    """One version of the labelling guide. The order of `kinds` is that of the digits that choose them.

    Version 0 came with Touchstone: nobody saved it.
    """

    version: int
    text: str
    kinds: tuple[Kind, ...]
    why: str | None = None
    saved_by: str | None = None
    saved_at: datetime | None = None
