"""Labelled traces that were set aside for judges' prompts: they leave calibration for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, insert, select
from sqlalchemy.orm import aliased

from db.audit import record as audit
from db.engine import Aggregate
from db.tables import PromptComparisonRow, PromptExampleRow, TraceRow, table
from db.tables.filters import is_labelled


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """A saved prompt that was made from labels: how many traces it quotes, and how many were set aside for it."""

    file: str
    version: str
    quoted: int
    set_aside: int
    guide: int
    saved_by: str
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """What a prompt of the version `after` was found to gain over `before`."""

    detector: str
    before: str
    after: str
    document: Mapping[str, Any]
    compared_by: str
    compared_at: datetime


class PromptExamples(Aggregate):
    def set_aside(self) -> frozenset[int]:
        """The keys of the traces whose labels left calibration: those set aside for any version of any prompt, and
        labelled ones that share their sources."""
        taken = select(PromptExampleRow.trace_pk)
        another = aliased(TraceRow)
        groups = select(another.source_group).where(another.id.in_(taken), another.source_group.is_not(None))
        with self._reading() as connection:
            keys = set(connection.scalars(taken.distinct()))
            if keys:
                keys |= set(
                    connection.scalars(select(TraceRow.id).where(is_labelled(), TraceRow.source_group.in_(groups)))
                )
        return frozenset(keys)

    def save(
        self,
        file: str,
        version: str,
        keys: Mapping[int, bool],
        *,
        guide: int,
        by: str,
        now: datetime,
    ) -> None:
        """Keep which traces were set aside for a version of a prompt, and whether it quotes each. Keys of no trace are
        left out: prompts are edited by hand, too."""
        common = {"file": file, "version": version, "guide": guide, "saved_by": by, "saved_at": now}
        same = (PromptExampleRow.file == file, PromptExampleRow.version == version)
        with self._writing() as connection:
            before = set(connection.scalars(select(PromptExampleRow.trace_pk).where(*same)))
            stored = set(connection.scalars(select(TraceRow.id).where(TraceRow.id.in_(keys))))
            rows = [
                {**common, "trace_pk": pk, "quoted": quoted} for pk, quoted in keys.items() if pk in stored - before
            ]
            if rows:
                connection.execute(insert(table(PromptExampleRow)), rows)
                after = {"version": version, "quoted": sum(keys.values()), "set_aside": len(keys), "guide": guide}
                audit(connection, "labels set aside", file, by=by, after=after)

    def versions(self, file: str) -> list[PromptVersion]:
        """The versions of a prompt that were made from labels, newest first."""
        quoted = func.sum(sa.case((PromptExampleRow.quoted, 1), else_=0))
        columns = (
            PromptExampleRow.file,
            PromptExampleRow.version,
            quoted.label("quoted"),
            func.count().label("set_aside"),
            func.max(PromptExampleRow.guide).label("guide"),
            func.max(PromptExampleRow.saved_by).label("saved_by"),
            func.max(PromptExampleRow.saved_at).label("saved_at"),
        )
        query = select(*columns).where(PromptExampleRow.file == file)
        query = query.group_by(PromptExampleRow.file, PromptExampleRow.version)
        return self._records(PromptVersion, query.order_by(func.max(PromptExampleRow.id).desc()))

    def compared(self, detector: str) -> list[PromptComparison]:
        """What prompts of a detector were found to gain, newest first."""
        columns = [column for column in table(PromptComparisonRow).c if column.name != "id"]
        query = select(*columns).where(PromptComparisonRow.detector == detector)
        return self._records(PromptComparison, query.order_by(PromptComparisonRow.id.desc()))

    def keep_comparison(
        self, detector: str, before: str, after: str, document: Mapping[str, Any], *, by: str, now: datetime
    ) -> None:
        row = {"detector": detector, "before": before, "after": after, "document": dict(document)}
        with self._writing() as connection:
            connection.execute(insert(table(PromptComparisonRow)), [{**row, "compared_by": by, "compared_at": now}])

    def of_traces(self, keys: Sequence[int]) -> frozenset[int]:
        """Those of the traces that a saved prompt quotes."""
        query = select(PromptExampleRow.trace_pk).where(PromptExampleRow.quoted)
        return frozenset(self._scalars(query.where(PromptExampleRow.trace_pk.in_(keys))))
