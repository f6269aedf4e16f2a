"""How long labels took."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from db.engine import Aggregate
from db.tables import LabelRow


@dataclass(frozen=True, slots=True)
class LabelTime:
    """The active seconds of one label."""

    labeller: str
    seconds: float


class Times(Aggregate):
    def newest(self, limit: int) -> list[LabelTime]:
        """Of the newest labels that were timed, the newest first; adjudications are none."""
        timed = (LabelRow.seconds.is_not(None), LabelRow.adjudicates.is_(False))
        query = select(LabelRow.labeller, LabelRow.seconds).where(*timed).order_by(LabelRow.id.desc()).limit(limit)
        return [LabelTime(labeller, float(seconds or 0.0)) for labeller, seconds in self._rows(query)]
