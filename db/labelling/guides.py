"""The versions of the labelling guide. Append-only: a change is a new version, and labels keep theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from calibrate.errors import BadInput
from calibrate.types import Guide, Kind, Label
from db.audit import record as audit
from db.engine import Aggregate, serialise
from db.tables import GuideRow, table

COLUMNS = [column.label("version") if column.name == "id" else column for column in table(GuideRow).c]


class Guides(Aggregate):
    def newest(self) -> Guide | None:
        """The version that counts; None where the team has saved none."""
        return next(iter(self._records(_guide_of, select(*COLUMNS).order_by(GuideRow.id.desc()).limit(1))), None)

    def get(self, version: int) -> Guide | None:
        return next(iter(self._records(_guide_of, select(*COLUMNS).where(GuideRow.id == version))), None)

    def history(self) -> list[Guide]:
        """Newest first."""
        return self._records(_guide_of, select(*COLUMNS).order_by(GuideRow.id.desc()))

    def save(
        self, text: str, kinds: Sequence[Kind], *, by: str, now: datetime, why: str | None = None, after: int
    ) -> Guide:
        """Keep a new version. Raises BadInput where `after`, which it was made from, is the newest no more."""
        with self._writing() as connection:
            serialise(connection)
            last = newest_version(connection)
            if last != after:
                raise BadInput(
                    f"somebody saved version {last} of the labelling guide after the version {after} that this change "
                    "was made from: look at the newest version, and make the change there"
                )
            guide = Guide(last + 1, text, tuple(kinds), why, by, now)
            row = {"id": guide.version, "text": text, "why": why, "saved_by": by, "saved_at": now}
            documents = [[kind.key, kind.name, kind.meaning] for kind in kinds]
            connection.execute(insert(table(GuideRow)), [{**row, "kinds": documents}])
            keys = [kind.key for kind in kinds]
            entry = {"version": guide.version, "kinds": keys, "why": why}
            audit(connection, "guide changed", f"version {guide.version}", by=by, before={"version": last}, after=entry)
        return guide


def newest_version(connection: Connection) -> int:
    """The number of the version that counts; 0 where the team has saved none."""
    return connection.scalar(select(func.max(GuideRow.id))) or 0


def under_guide(connection: Connection, label: Label) -> Label:
    """The label under the version it names, else under the newest: it is given at this moment."""
    return label if label.guide is not None else replace(label, guide=newest_version(connection))


def _guide_of(**row: Any) -> Guide:
    return Guide(**{**row, "kinds": tuple(Kind(*kind) for kind in row["kinds"])})
