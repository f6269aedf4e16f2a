"""Questions about a pool of traces to draw from, as arrays and as the store stood at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import aliased

from calibrate.types import FlagWhen, TraceFilter
from db.mapping import batches
from db.tables import ConfigRow, LabelRow, MemberRow, SampleRow, ScoreRow, TraceRow
from db.traces import conditions, value_of

CHUNK = 20_000  # rows fetched at once
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """What the store held: traces, labels and samples up to these keys, scores up to this time. What comes later is
    not in a pool, so that a sample can be topped up from the very traces it was drawn from."""

    trace: int
    label: int
    sample: int
    time: datetime

    def to_json(self) -> dict[str, Any]:
        return {"trace": self.trace, "label": self.label, "sample": self.sample, "time": self.time.isoformat()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Moment:
        time = datetime.fromisoformat(document["time"])
        return cls(int(document["trace"]), int(document["label"]), int(document["sample"]), time)


@dataclass(frozen=True)
class Flagged:
    """Which traces a threshold flags. `fresh`: only those without a label, and in no sample, at that moment; `apart`:
    only those in none of these samples."""

    config_id: int
    threshold: float
    flag_when: FlagWhen
    fresh: bool
    apart: tuple[int, ...] = ()


def moment(engine: Engine) -> Moment:
    """The store as it stands."""
    newest = select(func.max(ScoreRow.scored_at)).where(ScoreRow.config_id == ConfigRow.id)
    with engine.connect() as connection:
        trace, label, sample = (
            connection.scalar(select(func.max(row.id))) or 0 for row in (TraceRow, LabelRow, SampleRow)
        )
        time = connection.scalar(select(func.max(newest.correlate(ConfigRow).scalar_subquery())))
    return Moment(trace, label, sample, time or NEVER)


def keys(engine: Engine, where: TraceFilter, at: Moment) -> NDArray[np.int64]:
    """The keys of the matching traces, in key order."""
    return _keys(engine, select(TraceRow.id).where(*_then(where, at)))


def flagged(engine: Engine, where: TraceFilter, at: Moment, cut: Flagged) -> NDArray[np.int64]:
    """The keys of the matching traces that the cut flags, in key order."""
    return _keys(engine, _flagged(select(TraceRow.id), cut, at).where(*_then(where, at)))


def count_flagged(engine: Engine, where: TraceFilter, at: Moment, cut: Flagged) -> int:
    with engine.connect() as connection:
        return connection.scalar(_flagged(select(func.count(TraceRow.id)), cut, at).where(*_then(where, at))) or 0


def values(engine: Engine, where: TraceFilter, at: Moment, by: str) -> tuple[NDArray[np.int64], list[str]]:
    """The keys of the matching traces, in key order, and the value of `by` (model, operation, attribute) of each."""
    query = select(TraceRow.id, value_of(by)).where(*_then(where, at)).order_by(TraceRow.id)
    rows = [tuple(row) for chunk in _chunks(engine, query) for row in chunk]
    return np.array([row[0] for row in rows], dtype=np.int64), [str(row[1]) for row in rows]


def scores(
    engine: Engine, where: TraceFilter, at: Moment, configs: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The keys of the matching traces, in key order, and their scores: one column a configuration, NaN for none."""
    each = [aliased(ScoreRow) for _ in configs]
    columns: list[Any] = [TraceRow.id, *(score.value for score in each)]
    query: sa.Select[Any] = select(*columns).select_from(TraceRow).where(*_then(where, at))
    for config, score in zip(configs, each, strict=True):
        match = sa.and_(score.config_id == config, score.content_hash == TraceRow.content_hash)
        query = query.outerjoin(score, sa.and_(match, score.scored_at <= at.time))
    parts = [np.array([tuple(row) for row in chunk], dtype=np.float64) for chunk in _chunks(engine, query)]
    found = np.concatenate(parts) if parts else np.empty((0, 1 + len(configs)))
    # Sorted here: a database that may choose its own order joins a million rows faster.
    found = found[np.argsort(found[:, 0])]
    return found[:, 0].astype(np.int64), found[:, 1:]


def count_scored(engine: Engine, where: TraceFilter, configs: Sequence[int]) -> int:
    """How many matching traces have a score of at least one of the configurations."""
    if not configs:
        return 0
    score = select(ScoreRow.config_id).where(ScoreRow.config_id.in_(configs), ScoreRow.value.is_not(None))
    score = score.where(ScoreRow.content_hash == TraceRow.content_hash).correlate(TraceRow)
    with engine.connect() as connection:
        query = select(func.count()).select_from(TraceRow).where(*conditions(where), score.exists())
        return connection.scalar(query) or 0


def among(engine: Engine, where: TraceFilter, last: int | None, pks: Sequence[int]) -> list[int]:
    """Those of the traces that are in a pool: a filter and the last trace key there was (None: not known)."""
    found: list[int] = []
    with engine.connect() as connection:
        for some in batches([pk for pk in pks if last is None or pk <= last], 900):
            found += connection.scalars(select(TraceRow.id).where(TraceRow.id.in_(some), *conditions(where)))
    return found


def _then(where: TraceFilter, at: Moment) -> list[ColumnElement[bool]]:
    return [*conditions(where), TraceRow.id <= at.trace]


def _flagged(query: sa.Select[Any], cut: Flagged, at: Moment) -> sa.Select[Any]:
    match = sa.and_(ScoreRow.config_id == cut.config_id, ScoreRow.content_hash == TraceRow.content_hash)
    past = ScoreRow.value >= cut.threshold if cut.flag_when == "above" else ScoreRow.value <= cut.threshold
    query = query.join(ScoreRow, match).where(past, ScoreRow.scored_at <= at.time)
    if cut.apart:
        there = select(MemberRow.sample_id).where(MemberRow.trace_pk == TraceRow.id, MemberRow.sample_id.in_(cut.apart))
        query = query.where(~there.correlate(TraceRow).exists())
    if not cut.fresh:
        return query
    label = select(LabelRow.id).where(LabelRow.trace_pk == TraceRow.id, LabelRow.id <= at.label)
    member = select(MemberRow.sample_id).where(MemberRow.trace_pk == TraceRow.id, MemberRow.sample_id <= at.sample)
    return query.where(~label.correlate(TraceRow).exists(), ~member.correlate(TraceRow).exists())


def _keys(engine: Engine, query: sa.Select[Any]) -> NDArray[np.int64]:
    parts = [np.array([key for (key,) in chunk], dtype=np.int64) for chunk in _chunks(engine, query)]
    return np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)


def _chunks(engine: Engine, query: sa.Select[*tuple[Any, ...]]) -> Iterator[Sequence[sa.Row[*tuple[Any, ...]]]]:
    with engine.connect() as connection:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=CHUNK).execute(query)
        yield from streamed.partitions(CHUNK)
