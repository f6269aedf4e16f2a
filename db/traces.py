"""Traces: import a batch, page through them, count them by value and day, load some, draw some."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Engine, func, select

from calibrate.types import PURGED, Added, Label, Record, Trace, TraceFilter, segment_of
from db import labels
from db.engine import Aggregate, serialise
from db.listing.days import COUNTED, count_by
from db.tables import ConfigRow, GoldRow, PurgeRow, ScoreRow, SourceRow, TextRow, TraceDayRow, TraceRow, table
from db.tables.bulk import among, insert_many
from db.tables.filters import conditions, is_labelled, value_of
from db.tables.mapping import batches, digests, load_traces, source_rows, trace_row
from db.tables.numbers import read_numbers


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A trace as a line of a list: no sources, texts cut short."""

    pk: int
    id: str
    timestamp: datetime | None
    model: str | None
    operation: str | None
    question: str | None
    answer: str
    gold: str | None
    purged: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    lines: tuple[TraceLine, ...]
    after: tuple[datetime | None, int] | None  # where the next page begins; None at the end


@dataclass(frozen=True, slots=True)
class Stored:
    """A trace with its key and gold verdict."""

    pk: int
    trace: Trace
    gold: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What the store holds."""

    traces: int
    undated: int
    first: datetime | None
    last: datetime | None
    models: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """How many traces have a value, and the times of the first and the last; None where all are undated."""

    value: str
    traces: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class LabelledTrace:
    """A trace with a gold verdict. `timestamp` is None where it carries no time."""

    pk: int
    timestamp: datetime | None


class _Origin(NamedTuple):
    """What a segment is read from."""

    operation: str | None
    model: str | None
    attributes: Mapping[str, Any]


class Traces(Aggregate):
    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._stored_texts: OrderedDict[bytes, None] = OrderedDict()  # digests; some of those in the store
        self._purge = 0  # the newest purge that these digests know of

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        """Imports the records in one transaction, as `calibrate.types.TraceSink` describes."""
        hashes = [record.trace.content_hash() for record in records]
        if not again and self._are_stored(records, hashes, with_labels=labels_as is not None):
            return Added(0, len(records), (), 0, ())
        with self._writing() as connection:
            serialise(connection)
            gone = self._forget_purged(connection, hashes)
            stored = self._stored_ids(connection, [record.trace.id for record in records])
            sorted_out = _sort_out(records, hashes, stored, gone if not again else frozenset(), again=again)
            fresh, restored, conflicts, purged, record_labels = sorted_out
            keys = digests([record.trace for record, _ in (*fresh, *restored)])
            self._add_texts(connection, keys)
            next_pk = (connection.scalar(select(func.max(TraceRow.id))) or 0) + 1
            rows, links = [], []
            for pk, (record, content_hash) in enumerate(fresh, next_pk):
                rows.append(trace_row(pk, record.trace, content_hash, keys, now))
                links.extend(source_rows(pk, record.trace, keys))
                stored[record.trace.id] = (pk, content_hash, False)
            for record, content_hash in restored:
                pk = stored[record.trace.id][0]
                values = trace_row(pk, record.trace, content_hash, keys, now)
                connection.execute(sa.update(TraceRow).where(TraceRow.id == pk).values(values))
                links.extend(source_rows(pk, record.trace, keys))
            if again and gone:
                _drop_purged_scores(connection, sorted(gone))
            insert_many(connection, TraceRow, rows)
            insert_many(connection, SourceRow, links)
            added = 0
            if labels_as is not None:
                named = [replace(label, labeller=label.labeller or labels_as) for label in record_labels]
                pairs = [(stored[label.trace_id][0], label) for label in named]
                added = labels.append(connection, pairs, sample_id=None, now=now, skip_standing=True)
        self._remember(keys.values())
        imported = len(fresh) + len(restored)
        duplicates = len(records) - imported - len(conflicts) - len(purged)
        return Added(imported, duplicates, tuple(conflicts), added, tuple(purged))

    def page(self, where: TraceFilter, *, limit: int = 50, after: tuple[datetime | None, int] | None = None) -> Page:
        """Newest first, undated last, by key and not by offset: the thousandth page costs what the first does."""
        columns = (TraceRow.id, TraceRow.trace_id, TraceRow.timestamp, TraceRow.model, TraceRow.operation)
        texts = (func.substr(TraceRow.question, 1, 300), func.substr(TraceRow.answer, 1, 300), GoldRow.verdict)
        query = select(*columns, *texts, TraceRow.purged_at.is_not(None)).outerjoin(
            GoldRow, GoldRow.trace_pk == TraceRow.id
        )
        query = query.where(*conditions(where))
        dated = query.where(TraceRow.timestamp.is_not(None)).order_by(TraceRow.timestamp.desc(), TraceRow.id.desc())
        undated = query.where(TraceRow.timestamp.is_(None)).order_by(TraceRow.id.desc())
        if after is not None and after[0] is not None:
            dated = dated.where(sa.tuple_(TraceRow.timestamp, TraceRow.id) < sa.tuple_(*_bound(after)))
        elif after is not None:
            undated = undated.where(TraceRow.id < after[1])
        with self._reading() as connection:
            rows: list[Any] = []
            if after is None or after[0] is not None:
                rows = list(connection.execute(dated.limit(limit + 1)))
            if len(rows) <= limit and where.undated:
                rows += connection.execute(undated.limit(limit + 1 - len(rows)))
        lines = tuple(TraceLine(*row) for row in rows[:limit])
        more = len(rows) > limit
        return Page(lines, (lines[-1].timestamp, lines[-1].pk) if more else None)

    def count(self, where: TraceFilter, *, limit: int | None = None) -> int:
        """How many traces there are; stops counting at `limit`."""
        if limit is None:
            return self._scalar(count_by(self._engine, where)) or 0
        query = select(TraceRow.id).where(*conditions(where))
        return self._scalar(select(func.count()).select_from(query.limit(limit).subquery())) or 0

    def undated(self, where: TraceFilter) -> int:
        """How many traces match in everything but time, because they carry none."""
        tests = conditions(replace(where, since=None, until=None, undated=True))
        query = select(func.count()).select_from(TraceRow).where(TraceRow.timestamp.is_(None), *tests)
        return self._scalar(query) or 0

    def get(self, pk: int) -> Stored | None:
        with self._reading() as connection:
            traces = load_traces(connection, [pk])
            gold = connection.scalar(select(GoldRow.verdict).where(GoldRow.trace_pk == pk))
        return Stored(pk, traces[0][1], gold) if traces else None

    def find(self, trace_id: str) -> int | None:
        return self._scalar(select(TraceRow.id).where(TraceRow.trace_id == trace_id))

    def keys_of(self, trace_ids: Iterable[str]) -> dict[str, int]:
        """Trace id → key of those of the traces that are in the store."""
        query = select(TraceRow.trace_id, TraceRow.id)
        return {
            trace_id: pk for batch in batches(sorted(set(trace_ids)), 500)
            for trace_id, pk in self._rows(query.where(TraceRow.trace_id.in_(batch)))
        }  # fmt: skip

    def ids(self, where: TraceFilter, *, chunk: int = 900) -> Iterator[list[str]]:
        """The ids of the matching traces in key order, a chunk at a time, without those that were purged."""
        last = 0
        while True:
            query = select(TraceRow.id, TraceRow.trace_id).where(TraceRow.id > last, *conditions(where))
            rows = list(self._rows(query.where(TraceRow.purged_at.is_(None)).order_by(TraceRow.id).limit(chunk)))
            if rows:
                yield [trace_id for _, trace_id in rows]
            if len(rows) < chunk:
                return
            last = rows[-1][0]

    def ids_of_spans(self, spans: Iterable[str]) -> dict[str, str]:
        """OpenTelemetry span id → id of the trace that is named after the span, `<32 hex digits>-<span id>`."""
        span = func.substr(TraceRow.trace_id, 34)
        query = select(span, TraceRow.trace_id).where(func.length(TraceRow.trace_id) == 49)
        return {
            span_id: trace_id for batch in batches(sorted(set(spans)), 500)
            for span_id, trace_id in self._rows(query.where(span.in_(batch)))
        }  # fmt: skip

    def labelled(self, trace_ids: Iterable[str]) -> list[LabelledTrace]:
        """Those of the traces that have a gold verdict of any kind, by key."""
        query = select(TraceRow.id, TraceRow.timestamp).join(GoldRow, GoldRow.trace_pk == TraceRow.id)
        rows = [
            row for batch in batches(sorted(set(trace_ids)), 500)
            for row in self._rows(query.where(TraceRow.trace_id.in_(batch)))
        ]  # fmt: skip
        return [LabelledTrace(*row) for row in sorted(rows)]

    def load(self, pks: Sequence[int]) -> list[Trace]:
        with self._reading() as connection:
            return [trace for _, trace in load_traces(connection, pks)]

    def segments(self, pks: Sequence[int], by: str) -> list[str | None]:
        """The segment of each of these traces, in order, as `segment_of` reads it from the trace."""
        query = select(TraceRow.id, TraceRow.operation, TraceRow.model, TraceRow.attributes)
        segments = {
            pk: segment_of(_Origin(operation, model, attributes or {}), by)
            for batch in batches(sorted(set(pks)), 900)
            for pk, operation, model, attributes in self._rows(query.where(TraceRow.id.in_(batch)))
        }
        return [segments.get(pk) for pk in pks]

    def keys(self, where: TraceFilter, *, chunk: int = 2000) -> Iterator[list[tuple[int, str]]]:
        """(key, content hash) of the matching traces in key order, a chunk at a time, never all at once."""
        last = 0
        while True:
            query = select(TraceRow.id, TraceRow.content_hash).where(TraceRow.id > last, *conditions(where))
            rows = list(self._rows(query.order_by(TraceRow.id).limit(chunk)))
            if rows:
                yield rows
            if len(rows) < chunk:
                return
            last = rows[-1][0]

    def lacking(self, where: TraceFilter, configs: Sequence[int]) -> Sequence[int]:
        """The keys, in order, of the matching traces that lack a score of at least one of these detector
        configurations; a failure is none. They are in memory at once, 8 bytes each."""
        parts = [np.empty(0, np.int64)]
        with self._reading() as connection:
            # One anti-join a configuration, and the failures apart, so that the indexes alone tell what has a score.
            for config in configs:
                score = sa.and_(ScoreRow.config_id == config, ScoreRow.content_hash == TraceRow.content_hash)
                query = select(TraceRow.id).where(*conditions(where))
                none = query.outerjoin(ScoreRow, score).where(ScoreRow.config_id.is_(None))
                failed = query.join(ScoreRow, score).where(ScoreRow.status == "failed")
                parts += [read_numbers(connection, each)[0] for each in (none, failed)]
        return array("q", np.unique(np.concatenate(parts)).tobytes())

    def hashes(self, pks: Sequence[int], *, chunk: int = 900) -> Iterator[list[tuple[int, str]]]:
        """(key, content hash) of these traces in key order, a chunk at a time."""
        query = select(TraceRow.id, TraceRow.content_hash).order_by(TraceRow.id)
        for batch in batches(pks, chunk):
            yield list(self._rows(query.where(TraceRow.id.in_(batch))))

    def summary(self) -> Summary:
        models = self.facet(TraceFilter(), "model")
        undated = self._scalar(select(func.count()).where(TraceRow.timestamp.is_(None))) or 0
        # Two queries: SQLite answers each from the index, but both at once by reading every row.
        first = self._scalar(select(func.min(TraceRow.timestamp)))
        last = self._scalar(select(func.max(TraceRow.timestamp)))
        return Summary(sum(models.values()), undated, first, last, models)

    def facet(self, where: TraceFilter, by: str) -> dict[str, int]:
        """How many matching traces have each value of `by` (model, operation, or an attribute), most first."""
        rows: Sequence[Any] = self._rows(count_by(self._engine, where, by))
        return dict(sorted(rows, key=lambda row: (-row[1], row[0])))

    def values(self, by: str) -> list[ValueSpan]:
        """Every value of `by` (model, operation, or an attribute) with its traces, most traces first."""
        value: Any = value_of(by)
        query = select(value, func.count(), func.min(TraceRow.timestamp), func.max(TraceRow.timestamp)).group_by(value)
        if by in COUNTED:
            value, total = getattr(TraceDayRow, by), sa.cast(func.sum(TraceDayRow.traces), sa.BigInteger)
            query = select(value, total, func.min(TraceDayRow.first), func.max(TraceDayRow.last)).group_by(value)
            query = query.having(total > 0)
        return sorted((ValueSpan(*row) for row in self._rows(query)), key=lambda span: (-span.traces, span.value))

    def labelled_values(self, by: str) -> dict[int, str]:
        """Trace key → value of `by`, for the traces with a gold verdict."""
        return dict(self._rows(select(TraceRow.id, value_of(by)).where(is_labelled())))

    def values_per_day(self, by: str, values: Sequence[str]) -> dict[str, dict[date, int]]:
        """Dated traces of each of these values of `by`, by day (UTC)."""
        query = count_by(self._engine, TraceFilter(undated=False), by, "day")
        days: dict[str, dict[date, int]] = {}
        for name, text, n in sorted(self._rows(query)):
            if name in values:
                days.setdefault(name, {})[date.fromisoformat(text)] = n
        return days

    def answer_lengths(self) -> dict[int, int]:
        """Trace key → length of the answer in characters, for the traces with a gold verdict."""
        return dict(self._rows(select(TraceRow.id, func.length(TraceRow.answer)).where(is_labelled())))

    def operations(self) -> dict[int, str | None]:
        """Trace key → operation, for the traces with a gold verdict."""
        return dict(self._rows(select(TraceRow.id, TraceRow.operation).where(is_labelled())))

    def per_day(self, where: TraceFilter) -> dict[str, int]:
        """Traces a day (UTC), for dated traces: {"2026-11-20": 812, …}."""
        return dict(sorted(self._rows(count_by(self._engine, replace(where, undated=False), "day"))))

    def span(self, where: TraceFilter) -> tuple[int, datetime, datetime] | None:
        """How many dated traces match, the time of the first and of the last; None where there are none."""
        dated = replace(where, undated=False)
        tests = (TraceRow.timestamp.is_not(None), *conditions(dated))
        # Two queries: a database answers each from the index, but both at once by reading every row.
        first = self._scalar(select(func.min(TraceRow.timestamp)).where(*tests))
        last = self._scalar(select(func.max(TraceRow.timestamp)).where(*tests))
        return None if first is None or last is None else (self.count(dated), first, last)

    def attribute_names(self, *, look_at: int = 500) -> list[str]:
        """The attributes that the newest traces carry."""
        query = select(TraceRow.attributes).where(TraceRow.attributes.is_not(None))
        attributes = self._scalars(query.order_by(TraceRow.id.desc()).limit(look_at))
        return sorted({name for names in attributes if names for name in names})

    def draw(
        self, where: TraceFilter, n: int, *, population: int, rng: Any, stratum: tuple[str, str] | None = None
    ) -> list[int]:
        """`n` keys of the matching traces, each equally likely, without reading them all.

        Random keys of the store's range are looked up until `n` of them match: uniform over the matches, whatever
        the gaps. Where matches are rare (under 1 key in 50) their keys are listed instead. `rng` is a numpy Generator.
        """
        tests = [*conditions(where), *([value_of(stratum[0]) == stratum[1]] if stratum else [])]
        n = min(n, population)
        with self._reading() as connection:
            # Two queries: SQLite answers each from the index, but both at once by reading every row.
            low = connection.scalar(select(func.min(TraceRow.id)))
            high = connection.scalar(select(func.max(TraceRow.id)))
            if n == 0 or low is None or high is None:
                return []
            if population * 50 < high - low + 1 or n * 3 > population:
                pks = list(connection.scalars(select(TraceRow.id).where(*tests).order_by(TraceRow.id)))
                return [pks[i] for i in rng.permutation(len(pks))[:n]]
            drawn: dict[int, None] = {}
            while len(drawn) < n:
                tries = list(dict.fromkeys(int(pk) for pk in rng.integers(low, high + 1, size=900)))
                hits = set(connection.scalars(select(TraceRow.id).where(TraceRow.id.in_(tries), *tests)))
                drawn.update((pk, None) for pk in tries if pk in hits)
        return list(drawn)[:n]

    def _are_stored(self, records: Sequence[Record], hashes: Sequence[str], *, with_labels: bool) -> bool:
        """Whether nothing is to be written for these records: a file that is imported again waits for no writer."""
        if with_labels and any(record.labels for record in records):
            return False
        with self._reading() as connection:
            stored = self._stored_ids(connection, [record.trace.id for record in records])
        standing = [stored.get(record.trace.id, (0, "", False)) for record in records]
        return [content for _, content, purged in standing if not purged] == list(hashes)

    @staticmethod
    def _stored_ids(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, str, bool]]:
        """Trace id → (key, content hash, whether it is purged)."""
        columns = (TraceRow.trace_id, TraceRow.id, TraceRow.content_hash, TraceRow.purged_at.is_not(None))
        rows = connection.execute(select(*columns).where(among(connection, TraceRow.trace_id, ids))).tuples()
        return {trace_id: (pk, content, bool(purged)) for trace_id, pk, content, purged in rows}

    def _forget_purged(self, connection: Connection, hashes: Sequence[str]) -> frozenset[str]:
        """Those of the contents that were purged and that no trace has any more. A purge by any process took texts
        away, so what this one remembers to be in the store is forgotten."""
        newest = connection.scalar(select(func.max(PurgeRow.id))) or 0
        if newest != self._purge:
            self._stored_texts.clear()
            self._purge = newest
        if not newest:
            return frozenset()
        query = select(TraceRow.content_hash, TraceRow.purged_at.is_not(None))
        query = query.where(among(connection, TraceRow.content_hash, hashes))
        rows = connection.execute(query).tuples().all()
        return frozenset(content for content, purged in rows if purged) - {c for c, purged in rows if not purged}

    def _add_texts(self, connection: Connection, keys: Mapping[str, bytes]) -> None:
        """Adds the texts that the store lacks. Only writers who hold the lock of `serialise` add any."""
        texts = {key: text for text, key in keys.items() if key not in self._stored_texts}
        for batch in batches(list(texts), 5_000):
            stored = connection.scalars(select(TextRow.digest).where(among(connection, TextRow.digest, batch)))
            for key in stored.all():
                del texts[bytes(key)]
        insert_many(connection, TextRow, [{"digest": key, "text": text} for key, text in texts.items()])

    def _remember(self, texts: Iterable[bytes], *, most: int = 50_000) -> None:
        """Only after the commit: a text of a transaction that was rolled back is not in the store."""
        self._stored_texts.update(dict.fromkeys(texts))
        while len(self._stored_texts) > most:
            self._stored_texts.popitem(last=False)


def _bound(after: tuple[datetime | None, int]) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return sa.literal(after[0], table(TraceRow).c.timestamp.type), sa.literal(after[1])


class _SortedOut(NamedTuple):
    """New records and those that come back from a purge with their hashes, lines and ids of conflicts and of what stays
    purged, and the labels of what is in the store now."""

    fresh: list[tuple[Record, str]]
    restored: list[tuple[Record, str]]
    conflicts: list[tuple[int, str]]
    purged: list[tuple[int, str]]
    labels: list[Label]


def _sort_out(
    records: Sequence[Record],
    hashes: Sequence[str],
    stored: Mapping[str, tuple[int, str, bool]],
    gone: frozenset[str],
    *,
    again: bool,
) -> _SortedOut:
    """`gone` contents were purged and stay so; `again`: a purged trace comes back with the content that it had."""
    contents = {trace_id: content for trace_id, (_, content, _) in stored.items()}
    absent = {trace_id for trace_id, (_, _, purged) in stored.items() if purged}
    result = _SortedOut([], [], [], [], [])
    for record, content in zip(records, hashes, strict=True):
        trace_id = record.trace.id
        standing = contents.get(trace_id)
        if not again and (trace_id in absent or (standing is None and content in gone)):
            result.purged.append((record.line, trace_id))
            continue
        if standing is None:
            contents[trace_id] = content
            result.fresh.append((record, content))
        elif standing != content:
            result.conflicts.append((record.line, trace_id))
            continue
        elif trace_id in absent:
            absent.discard(trace_id)
            result.restored.append((record, content))
        result.labels.extend(record.labels)
    return result


def _drop_purged_scores(connection: Connection, hashes: Sequence[str]) -> None:
    """Contents that come back are scored again where a purge left no value."""
    for config in connection.scalars(select(ConfigRow.id)).all():
        scores = (ScoreRow.config_id == config, ScoreRow.content_hash.in_(hashes), ScoreRow.value.is_(None))
        connection.execute(sa.delete(ScoreRow).where(*scores, ScoreRow.reason == PURGED))
