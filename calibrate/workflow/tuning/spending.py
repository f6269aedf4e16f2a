"""What a detector's scores took: time, calls to a chat endpoint, money; and whether they say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.types import Sample, Usage
from db import Store
from db.scores import Config


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
    ids = [part.id for part in sample.parts or (sample,)] if sample else [None]
    costs = [cost for key in ids for cost in store.scores.costs(config.id, sample_id=key)]
    seconds = [cost.seconds for cost in costs if cost.status == "scored"]
    calls, dollars = _per_trace([cost.usage for cost in costs if cost.usage], len(seconds))
    milliseconds = 1000 * float(np.median(seconds)) if seconds else None
    return Spent(milliseconds, dollars, calls, store.scores.has_evidence(config.id))


def _per_trace(usage: Sequence[Usage], scored: int) -> tuple[float, float | None]:
    """Calls a trace, and dollars per 1,000 traces. An answer from the cache counts as dear as one that was paid for:
    on new traffic there is no cache."""
    total = sum(usage, Usage())
    calls_made = total.requests + total.cached
    calls = calls_made / scored if scored else 0.0
    if not calls_made:
        return calls, 0.0
    if total.cost is None or not total.requests:
        return calls, None
    return calls, 1000 * calls * total.cost / total.requests
