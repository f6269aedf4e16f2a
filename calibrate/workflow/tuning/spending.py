"""What a detector's scores took: time, calls to a chat endpoint, money; and whether they say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select

from calibrate.types import Sample, Usage
from db import Store
from db.scores import Config
from db.tables import GoldRow, MemberRow, ScoreRow, TraceRow

SEEN = 200  # scores that are looked at for evidence


@dataclass(frozen=True)
class Spent:
    """What a scored trace took. `milliseconds` is the median; `cost_per_1000` in US dollars, None where a price is not
    known; `calls` are requests to a chat endpoint, those answered from the cache too; `explains`: scores say why."""

    milliseconds: float | None
    cost_per_1000: float | None
    calls: float
    explains: bool


def spent_by(store: Store, config: Config, sample: Sample | None) -> Spent:
    """From the scores of the labelled traces, or those of a sample: the time of those with a value, the calls and the
    money of all, for each trace with a value."""
    query = select(ScoreRow.status, ScoreRow.seconds, ScoreRow.usage)
    query = query.join(TraceRow, TraceRow.content_hash == ScoreRow.content_hash)
    query = query.join(GoldRow, GoldRow.trace_pk == TraceRow.id).where(ScoreRow.config_id == config.id)
    if sample is not None:
        query = query.join(MemberRow, MemberRow.trace_pk == TraceRow.id).where(MemberRow.sample_id == sample.id)
    seen = select(ScoreRow.evidence).where(ScoreRow.config_id == config.id, ScoreRow.status == "scored").limit(SEEN)
    with store.engine.connect() as connection:
        rows = connection.execute(query).tuples().all()
        explains = any(connection.scalars(seen))
    seconds = [took for status, took, _ in rows if status == "scored"]
    calls, cost = _asked([used for _, _, used in rows if used], len(seconds))
    return Spent(1000 * float(np.median(seconds)) if seconds else None, cost, calls, explains)


def _asked(usage: Sequence[Sequence[Any]], scored: int) -> tuple[float, float | None]:
    """Calls a trace, and dollars per 1,000 traces. An answer from the cache counts as dear as one that was paid for:
    on new traffic there is no cache."""
    total = sum((Usage(*one) for one in usage), Usage())
    asked = total.requests + total.cached
    calls = asked / scored if scored else 0.0
    if not asked:
        return calls, 0.0
    if total.cost is None or not total.requests:
        return calls, None
    return calls, 1000 * calls * total.cost / total.requests
