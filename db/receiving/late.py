"""Traces of which more comes to be known after their import, as long as nobody has used them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection, select

from calibrate.types import Record, Trace
from db.engine import Aggregate, serialise
from db.tables import (
    DecisionRow,
    FlagRow,
    LabelRow,
    LeaseRow,
    MemberRow,
    RepeatRow,
    SkipRow,
    SourceRow,
    TextRow,
    TraceRow,
    table,
)
from db.tables.bulk import among, insert_many, upsert
from db.tables.mapping import digests, load_traces, source_rows, trace_row

_USES = (LabelRow, MemberRow, SkipRow, DecisionRow, FlagRow, LeaseRow, RepeatRow)


class Late(Aggregate):
    def load(self, trace_ids: Sequence[str]) -> dict[str, Trace]:
        """Those of the traces that are in the store with their texts, by id, as they were imported."""
        with self._reading() as connection:
            tests = (among(connection, TraceRow.trace_id, trace_ids), TraceRow.purged_at.is_(None))
            pks = connection.scalars(select(TraceRow.id).where(*tests)).all()
            return {trace.id: trace for _, trace in load_traces(connection, pks, as_logged=True)}

    def replace(self, changes: Sequence[tuple[str, Record]], *, now: datetime) -> frozenset[str]:
        """Replace the content of traces, each given after the content hash that it must still have.

        Returns the ids of those that were replaced: a trace that somebody has labelled, sampled, flagged, skipped,
        holds or decided stays as it is.
        """
        records = {record.trace.id: (before, record) for before, record in changes}
        with self._writing() as connection:
            serialise(connection)
            query = select(TraceRow.id, TraceRow.trace_id, TraceRow.content_hash).where(TraceRow.purged_at.is_(None))
            rows = connection.execute(query.where(among(connection, TraceRow.trace_id, list(records)))).tuples()
            standing = {pk: trace_id for pk, trace_id, content in rows if content == records[trace_id][0]}
            used = _used(connection, list(standing))
            replaced = {pk: trace_id for pk, trace_id in standing.items() if pk not in used}
            keys = digests([records[trace_id][1].trace for trace_id in replaced.values()])
            if keys:
                texts = [{"digest": key, "text": text} for text, key in keys.items()]
                connection.execute(upsert(connection, TextRow), texts)
            for pk, trace_id in replaced.items():
                trace = records[trace_id][1].trace
                values = trace_row(pk, trace, trace.content_hash(), keys, now)
                connection.execute(sa.update(TraceRow).where(TraceRow.id == pk).values(values))
                connection.execute(sa.delete(table(SourceRow)).where(SourceRow.trace_pk == pk))
                insert_many(connection, SourceRow, source_rows(pk, trace, keys))
        return frozenset(replaced.values())


def _used(connection: Connection, pks: Sequence[int]) -> set[int]:
    used: set[int] = set()
    for row in _USES:
        used.update(connection.scalars(select(row.trace_pk).where(row.trace_pk.in_(pks))))
    return used
