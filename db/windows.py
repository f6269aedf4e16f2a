"""Questions about a detector's scores in a window of traffic: how many, and some of them drawn by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import Engine, func, select

from calibrate.types import TraceFilter
from db.tables import MemberRow, SampleRow, ScoreRow, TraceRow
from db.traces import conditions, value_of


@dataclass(frozen=True)
class Drawn:
    """Some of a window's scores, NaN where there could be none, and what each trace shares with others: its group of
    sources, else its content."""

    scores: NDArray[np.float64]
    groups: tuple[str, ...]


def counts(engine: Engine, config_id: int, where: TraceFilter, *, random: bool = False) -> Mapping[str, int]:
    """How many matching traces of each model the configuration was run on, refusals left out; with `random`, of those
    that are in a sample drawn at random."""
    model = value_of("model")
    query = _scored(select(model, func.count()), config_id, where, random=random).group_by(model)
    with engine.connect() as connection:
        return dict(connection.execute(query).tuples().all())


def refusals(engine: Engine, config_id: int, where: TraceFilter) -> Mapping[str, int]:
    """How many matching traces of each model were refusals."""
    model = value_of("model")
    match = sa.and_(ScoreRow.config_id == config_id, ScoreRow.content_hash == TraceRow.content_hash)
    query = select(model, func.count()).select_from(TraceRow).join(ScoreRow, match)
    query = query.where(ScoreRow.status == "refusal", *conditions(where)).group_by(model)
    with engine.connect() as connection:
        return dict(connection.execute(query).tuples().all())


def draw(
    engine: Engine, config_id: int, where: TraceFilter, most: int, *, rng: np.random.Generator, random: bool = False
) -> Drawn:
    """At most so many of the window's traces, by chance: those whose content hashes, themselves digits of chance, come
    first after a random one. The index of scores is in their order, so no more than these need be read; traces of one
    content come together, and are one group."""
    columns = (ScoreRow.content_hash, ScoreRow.value, TraceRow.source_group)
    query = _scored(select(*columns), config_id, where, random=random)
    query = query.order_by(ScoreRow.content_hash, TraceRow.id)
    start = rng.bytes(16).hex()
    rows: list[Any] = []
    with engine.connect() as connection:
        for part in (ScoreRow.content_hash >= start, ScoreRow.content_hash < start):
            if len(rows) < most:
                rows += connection.execute(query.where(part).limit(most - len(rows))).tuples()
    scores = np.array([np.nan if value is None else value for _, value, _ in rows], dtype=np.float64)
    return Drawn(scores, tuple(content if group is None else f"group {group}" for content, _, group in rows))


def _scored(
    query: sa.Select[*tuple[Any, ...]], config_id: int, where: TraceFilter, *, random: bool
) -> sa.Select[*tuple[Any, ...]]:
    match = sa.and_(ScoreRow.config_id == config_id, ScoreRow.content_hash == TraceRow.content_hash)
    query = query.select_from(TraceRow).join(ScoreRow, match)
    query = query.where(ScoreRow.status != "refusal", *conditions(where))
    if not random:
        return query
    member = select(MemberRow.trace_pk).join(SampleRow, SampleRow.id == MemberRow.sample_id)
    return query.where(TraceRow.id.in_(member.where(SampleRow.design == "random")))
