"""Pools of traces to draw samples from, as arrays, as the store was at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import aliased

from calibrate.types import FlagWhen, Moment, TraceFilter
from db.engine import Aggregate
from db.tables import ConfigRow, LabelRow, MemberRow, SampleRow, ScoreRow, TraceRow
from db.tables.filters import conditions, value_of
from db.tables.mapping import batches
from db.tables.numbers import read_numbers

CHUNK = 20_000  # rows fetched at once
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Flagged:
    """Which traces a threshold flags. `fresh`: only those without a label, and in no sample, at that moment; `apart`:
    only those in none of these samples."""

    config_id: int
    threshold: float
    flag_when: FlagWhen
    fresh: bool
    apart: tuple[int, ...] = ()


class Pools(Aggregate):
    def moment(self) -> Moment:
        """The present state of the store."""
        newest = select(func.max(ScoreRow.scored_at)).where(ScoreRow.config_id == ConfigRow.id).correlate(ConfigRow)
        times = select(newest.scalar_subquery().label("at")).select_from(ConfigRow).subquery()
        with self._reading() as connection:
            trace, label, sample = (
                connection.scalar(select(func.max(row.id))) or 0 for row in (TraceRow, LabelRow, SampleRow)
            )
            time = connection.scalar(select(func.max(times.c.at)))
        return Moment(trace, label, sample, time or NEVER)

    def keys(self, where: TraceFilter, at: Moment) -> NDArray[np.int64]:
        """The keys of the matching traces, in key order."""
        return self._keys(select(TraceRow.id).where(*_then(where, at)))

    def flagged(self, where: TraceFilter, at: Moment, cut: Flagged) -> NDArray[np.int64]:
        """The keys of the matching traces that the cut flags, in key order."""
        return self._keys(_flagged(select(TraceRow.id), cut, at).where(*_then(where, at)))

    def count_flagged(self, where: TraceFilter, at: Moment, cut: Flagged) -> int:
        return self._scalar(_flagged(select(func.count(TraceRow.id)), cut, at).where(*_then(where, at))) or 0

    def values(self, where: TraceFilter, at: Moment, by: str) -> tuple[NDArray[np.int64], list[str]]:
        """The keys of the matching traces, in key order, and each one's value of `by` (model, operation, attribute)."""
        query = select(TraceRow.id, value_of(by)).where(*_then(where, at)).order_by(TraceRow.id)
        rows = [tuple(row) for chunk in self._chunks(query) for row in chunk]
        return np.array([row[0] for row in rows], dtype=np.int64), [str(row[1]) for row in rows]

    def scores(
        self,
        where: TraceFilter,
        at: Moment,
        configs: Sequence[int],
        *,
        on_rows: Callable[[int], None] = lambda rows: None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The keys of the matching traces, in key order, and their scores: one column a configuration, NaN for none.

        `on_rows` is told now and then how many are read; it ends the reading by raising.
        """
        each = [aliased(ScoreRow) for _ in configs]
        columns: list[Any] = [TraceRow.id, *(score.value for score in each)]
        query: sa.Select[*tuple[Any, ...]] = select(*columns).select_from(TraceRow).where(*_then(where, at))
        for config, score in zip(configs, each, strict=True):
            match = sa.and_(score.config_id == config, score.content_hash == TraceRow.content_hash)
            query = query.outerjoin(score, sa.and_(match, score.scored_at <= at.time))
        with self._reading() as connection:
            keys, scores = read_numbers(connection, query, on_rows)
        # Sorted here: a database that may choose its own order joins a million rows faster.
        order = np.argsort(keys)
        return keys[order], scores[order]

    def count_scored(self, where: TraceFilter, configs: Sequence[int], *, pks: Sequence[int] | None = None) -> int:
        """How many matching traces, or of them those with these keys, have a score of at least one of the
        configurations."""
        if not configs:
            return 0
        score = select(ScoreRow.config_id).where(ScoreRow.config_id.in_(configs), ScoreRow.value.is_not(None))
        score = score.where(ScoreRow.content_hash == TraceRow.content_hash).correlate(TraceRow)
        query = select(func.count()).select_from(TraceRow).where(*conditions(where), score.exists())
        if pks is None:
            return self._scalar(query) or 0
        return sum(self._scalar(query.where(TraceRow.id.in_(batch))) or 0 for batch in batches(pks, 900))

    def among(self, where: TraceFilter, last: int | None, pks: Sequence[int]) -> list[int]:
        """Those of the traces that are in a pool: a filter and the last trace key of that time (None: any key)."""
        inside: list[int] = []
        for batch in batches([pk for pk in pks if last is None or pk <= last], 900):
            inside += self._scalars(select(TraceRow.id).where(TraceRow.id.in_(batch), *conditions(where)))
        return inside

    def _keys(self, query: sa.Select[*tuple[Any, ...]]) -> NDArray[np.int64]:
        with self._reading() as connection:
            return np.sort(read_numbers(connection, query)[0])

    def _chunks(self, query: sa.Select[*tuple[Any, ...]]) -> Iterator[Sequence[sa.Row[*tuple[Any, ...]]]]:
        with self._reading() as connection:
            streamed = connection.execution_options(stream_results=True, max_row_buffer=CHUNK).execute(query)
            yield from streamed.partitions(CHUNK)


def _then(where: TraceFilter, at: Moment) -> list[ColumnElement[bool]]:
    return [*conditions(where), TraceRow.id <= at.trace]


def _flagged(query: sa.Select[*tuple[Any, ...]], cut: Flagged, at: Moment) -> sa.Select[*tuple[Any, ...]]:
    match = sa.and_(ScoreRow.config_id == cut.config_id, ScoreRow.content_hash == TraceRow.content_hash)
    past = ScoreRow.value >= cut.threshold if cut.flag_when == "above" else ScoreRow.value <= cut.threshold
    query = query.join(ScoreRow, match).where(past, ScoreRow.scored_at <= at.time)
    if cut.apart:
        apart = select(MemberRow.sample_id).where(MemberRow.trace_pk == TraceRow.id, MemberRow.sample_id.in_(cut.apart))
        query = query.where(~apart.correlate(TraceRow).exists())
    if not cut.fresh:
        return query
    label = select(LabelRow.id).where(LabelRow.trace_pk == TraceRow.id, LabelRow.id <= at.label)
    member = select(MemberRow.sample_id).where(MemberRow.trace_pk == TraceRow.id, MemberRow.sample_id <= at.sample)
    return query.where(~label.correlate(TraceRow).exists(), ~member.correlate(TraceRow).exists())
