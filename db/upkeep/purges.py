"""Purges: take the texts of traces out of every table. Hashes, verdicts, values and figures stay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, func, select, update

from calibrate.types import PURGED, Chosen, PurgeCounts
from db import audit
from db.engine import Aggregate, insert_row, serialise
from db.receiving.received import forget_settled
from db.tables import (
    AnnotationRow,
    ConfigRow,
    DecisionRow,
    DrawnRow,
    FlagRow,
    LabelRow,
    OutboxRow,
    PromptExampleRow,
    PurgeRow,
    ReplyRow,
    ScoreRow,
    SourceRow,
    TextRow,
    TraceRow,
    table,
)
from db.tables.filters import value_of
from db.tables.mapping import batches, load_traces
from db.upkeep.quotes import Quotes, clear_runs, clear_values, cut_everywhere

BATCH = 500
"""Traces purged in one transaction: others write in between."""
EMPTY = {"question": None, "answer": "", "context_digest": None, "tokens": None, "alternatives": None}
EMPTY |= {"output_schema": None, "attributes": None}


class Removed(NamedTuple):
    """How much was removed, and the releases that quote of it in a note or a reason and stay as they are."""

    counts: PurgeCounts
    releases: tuple[int, ...]


class Purges(Aggregate):
    def count(self, chosen: Chosen) -> PurgeCounts:
        """How much a purge would remove."""
        tests = _tests(chosen)
        pks = select(TraceRow.id).where(*tests)
        others = TraceRow.id.not_in(pks)
        mine, theirs = _texts_of(TraceRow.id.in_(pks)).subquery(), _texts_of(others).subquery()
        texts = select(mine.c.digest).where(mine.c.digest.not_in(select(theirs.c.digest)))
        standing = select(TraceRow.content_hash).where(others, TraceRow.purged_at.is_(None))
        gone = select(TraceRow.content_hash).where(*tests, TraceRow.content_hash.not_in(standing))
        ids = select(TraceRow.trace_id).where(*tests)
        with self._reading() as connection:

            def total(row: Any, *where: ColumnElement[bool]) -> int:
                return connection.scalar(select(func.count()).select_from(row).where(*where)) or 0

            return PurgeCounts(
                traces=total(TraceRow, *tests),
                texts=total(texts.subquery()),
                alternatives=total(TraceRow, *tests, TraceRow.alternatives.is_not(None))
                + total(DrawnRow, DrawnRow.content_hash.in_(gone)),
                evidence=total(ScoreRow, ScoreRow.content_hash.in_(gone), _says_why()),
                replies=total(ReplyRow, sa.or_(ReplyRow.trace_id.in_(ids), ReplyRow.trace_id.is_(None))),
                notes=total(LabelRow, LabelRow.trace_pk.in_(pks), LabelRow.note.is_not(None))
                + total(FlagRow, FlagRow.trace_pk.in_(pks), FlagRow.note.is_not(None)),
                spans=total(LabelRow, LabelRow.trace_pk.in_(pks), LabelRow.spans.is_not(None)),
                decisions=total(DecisionRow, DecisionRow.trace_pk.in_(pks)),
                alerts=total(OutboxRow, OutboxRow.trace_pk.in_(pks), OutboxRow.told_at.is_(None)),
            )

    def remove(
        self,
        chosen: Chosen,
        *,
        by: str,
        now: datetime,
        cut_cases: Callable[[str, Collection[int]], str] = lambda text, keys: text,
    ) -> Removed:
        """Remove the texts, some traces at a time. What was removed before a kill stays removed; the next call goes on.
        `cut_cases` takes the cases of traces out of a prompt's text.

        Afterwards the bytes may still lie in free pages and logs of the database: `compact` removes them.
        """
        counts = PurgeCounts()
        with self._reading() as connection:
            pks = list(connection.scalars(select(TraceRow.id).where(*_tests(chosen)).order_by(TraceRow.id)))
        if pks:  # written first, so that a purge that is killed is known to want compacting
            document: dict[str, Any] = {"before": chosen.before.isoformat() if chosen.before else None}
            document |= {"traces": len(chosen.trace_ids), "where": [name for name, _ in chosen.where]}
            with self._writing() as connection:
                row = {"by": by, "chosen": document, "counts": {}, "purged_at": now}
                key = insert_row(connection, PurgeRow, row)
                quotes = Quotes(connection)
        for batch in batches(pks, BATCH):
            with self._writing() as connection:
                serialise(connection)
                quotes.look(_texts_at(connection, batch))
                counts += _remove(connection, batch, now)
                _remove_cases(connection, batch, cut_cases)
        with self._writing() as connection:
            serialise(connection)
            counts += PurgeCounts(texts=_remove_orphans(connection), replies=_remove_unknown_replies(connection))
            if pks:
                audit.record(connection, "texts purged", f"{len(pks)} traces", by=by, now=now, after=document)
                quotes.cut(connection)
                clear_runs(connection)
                forget_settled(connection)
                clear_values(connection, chosen.where)
                connection.execute(update(PurgeRow).where(PurgeRow.id == key).values(counts=asdict(counts)))
        return Removed(counts, quotes.releases() if pks else ())

    def of_traces(self, pks: Iterable[int]) -> set[int]:
        """Those of the traces that are purged."""
        query = select(TraceRow.id).where(TraceRow.purged_at.is_not(None))
        rows = [self._scalars(query.where(TraceRow.id.in_(batch))) for batch in batches(sorted(set(pks)), 900)]
        return {pk for keys in rows for pk in keys}

    def newest(self) -> datetime | None:
        """When a purge last began; None where there was none."""
        return self._scalar(select(func.max(PurgeRow.purged_at)))

    def waiting(self) -> bool:
        """Whether bytes of a purge may still lie in the database's files."""
        return bool(self._scalar(select(func.count()).where(PurgeRow.compacted_at.is_(None))))

    def compacted(self, *, now: datetime) -> None:
        self._execute(update(PurgeRow).where(PurgeRow.compacted_at.is_(None)).values(compacted_at=now))


def _tests(chosen: Chosen) -> list[ColumnElement[bool]]:
    tests: list[ColumnElement[bool]] = [TraceRow.purged_at.is_(None)]
    if chosen.before is not None:
        tests.append(func.coalesce(TraceRow.timestamp, TraceRow.imported_at) < _moment(chosen.before))
    if chosen.trace_ids:
        tests.append(TraceRow.trace_id.in_(chosen.trace_ids))
    return tests + [value_of(name) == value for name, value in chosen.where]


def _moment(moment: datetime) -> ColumnElement[datetime]:
    return sa.literal(moment, table(TraceRow).c.imported_at.type)


def _texts_of(traces: ColumnElement[bool]) -> sa.CompoundSelect[Any]:
    """The digests of the shared texts that these traces use."""
    sources = (
        select(SourceRow.text_digest.label("digest")).join(TraceRow, TraceRow.id == SourceRow.trace_pk).where(traces)
    )
    return sources.union(select(TraceRow.context_digest).where(traces, TraceRow.context_digest.is_not(None)))


def _texts_at(connection: Connection, pks: Sequence[int]) -> Iterator[str]:
    """Every text that goes with these traces."""
    for _, trace in load_traces(connection, pks):
        yield from (trace.question or "", trace.answer, trace.context or "", *trace.alternatives)
        yield from (part for source in trace.sources for part in (source.text, source.title or ""))
        yield from map(str, trace.attributes.values())
    notes = select(LabelRow.note).where(LabelRow.trace_pk.in_(pks), LabelRow.note.is_not(None))
    yield from (note for note in connection.scalars(notes) if note)


def _says_why() -> ColumnElement[bool]:
    return sa.or_(ScoreRow.evidence.is_not(None), sa.and_(ScoreRow.reason.is_not(None), ScoreRow.reason != PURGED))


def _remove(connection: Connection, pks: Sequence[int], now: datetime) -> PurgeCounts:
    """Remove the texts of these traces, and what was made of them."""
    rows = connection.execute(select(TraceRow.content_hash, TraceRow.trace_id).where(TraceRow.id.in_(pks))).tuples()
    hashes, ids = zip(*rows.all(), strict=True)
    chosen = TraceRow.id.in_(pks)
    given = connection.scalar(select(func.count()).where(chosen, TraceRow.alternatives.is_not(None))) or 0
    connection.execute(update(TraceRow).where(chosen).values(**EMPTY, purged_at=now))
    connection.execute(sa.delete(SourceRow).where(SourceRow.trace_pk.in_(pks)))
    standing = select(TraceRow.content_hash).where(TraceRow.content_hash.in_(hashes), TraceRow.purged_at.is_(None))
    gone = sorted(set(hashes) - set(connection.scalars(standing)))
    drawn = connection.execute(sa.delete(DrawnRow).where(DrawnRow.content_hash.in_(gone))).rowcount
    evidence = 0
    for config in connection.scalars(select(ConfigRow.id)).all():  # one by one: scores are found by configuration
        scores = (ScoreRow.config_id == config, ScoreRow.content_hash.in_(gone), _says_why())
        reason = sa.case((ScoreRow.reason.is_not(None), PURGED))
        statement = update(ScoreRow).where(*scores).values(evidence=None, reason=reason)
        evidence += connection.execute(statement).rowcount
    labels = LabelRow.trace_pk.in_(pks)
    notes = connection.execute(update(LabelRow).where(labels, LabelRow.note.is_not(None)).values(note=None)).rowcount
    notes += connection.execute(
        update(FlagRow).where(FlagRow.trace_pk.in_(pks), FlagRow.note.is_not(None)).values(note=None)
    ).rowcount
    spans = connection.execute(update(LabelRow).where(labels, LabelRow.spans.is_not(None)).values(spans=None)).rowcount
    unsent = AnnotationRow.told_at.is_(None)
    connection.execute(sa.delete(AnnotationRow).where(AnnotationRow.trace_pk.in_(pks), unsent))
    return PurgeCounts(
        traces=len(pks),
        alternatives=given + drawn,
        evidence=evidence,
        replies=connection.execute(sa.delete(ReplyRow).where(ReplyRow.trace_id.in_(ids))).rowcount,
        notes=notes,
        spans=spans,
        decisions=_remove_reasons(connection, pks),
        alerts=connection.execute(
            sa.delete(OutboxRow).where(OutboxRow.trace_pk.in_(pks), OutboxRow.told_at.is_(None))
        ).rowcount,
    )


def _remove_cases(connection: Connection, pks: Sequence[int], cut_cases: Callable[[str, Collection[int]], str]) -> None:
    """Every version of a prompt goes without the traces that it quotes, and so does the log of who changed it."""
    quoted = select(PromptExampleRow.trace_pk).where(PromptExampleRow.quoted, PromptExampleRow.trace_pk.in_(pks))
    if keys := frozenset(connection.scalars(quoted)):
        cut_everywhere(connection, lambda text: cut_cases(text, keys))


def _remove_reasons(connection: Connection, pks: Sequence[int]) -> int:
    """What was decided stays; why, in words, goes: one word a flag is left."""
    columns = (DecisionRow.trace_pk, DecisionRow.version, DecisionRow.reasons)
    rows = connection.execute(select(*columns).where(DecisionRow.trace_pk.in_(pks))).tuples().all()
    for pk, version, reasons in rows:
        key = (DecisionRow.trace_pk == pk, DecisionRow.version == version)
        connection.execute(update(DecisionRow).where(*key).values(reasons=[PURGED] * len(reasons)))
    return len(rows)


def _remove_orphans(connection: Connection) -> int:
    """Shared texts that no trace uses any more.

    The database looks for rows that still point to a text, for each that goes: without indexes, all rows. They are made
    for this moment only, as nothing else wants them.
    """
    used = TextRow.digest.in_(select(SourceRow.text_digest))
    context = TextRow.digest.in_(select(TraceRow.context_digest).where(TraceRow.context_digest.is_not(None)))
    if connection.scalar(select(TextRow.digest).where(~used, ~context).limit(1)) is None:
        return 0
    columns = (table(SourceRow).c.text_digest, table(TraceRow).c.context_digest)
    indexes = [sa.Index(f"ix_purge_{column.name}", column) for column in columns]
    try:
        for index in indexes:
            index.create(connection)
        removed = connection.execute(sa.delete(TextRow).where(~used, ~context)).rowcount
        for index in indexes:
            index.drop(connection)
    finally:
        for index in indexes:  # not part of the schema
            column_table = index.table
            if column_table is not None:
                column_table.indexes.discard(index)
    return removed


def _remove_unknown_replies(connection: Connection) -> int:
    """Replies that were kept before it was noted what they are about: they may be about any trace."""
    return connection.execute(sa.delete(ReplyRow).where(ReplyRow.trace_id.is_(None))).rowcount
