"""The traffic that labels stand for: a detector's scores of all of it, and how much comes a day."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.choosing.pool import Pool
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.evidence import Evidence
from db import Store

NOT_RUN = 0.05  # the share of a window without a score above which its flags are not counted
DAY = timedelta(days=1)


def scored_traffic(store: Store, data: Evidence) -> Pool:
    """The detector's scores of the traffic in the sample's window, or in the store, and how many traces come a day.

    Raises BadInput while it was not run on nearly all of it: what was chosen to be labelled is not like the rest.
    """
    where = _window_of(data)
    total, waiting = store.traces.count(where), len(store.traces.lacking(where, [data.config.id]))
    if waiting > NOT_RUN * total:
        raise BadInput(
            f"{data.config.name} was run on {total - waiting:,} of the window's {total:,} traces, too few to say what "
            f"it flags a day: score all (`{registry.how_to_score(data.config.name)}`, or the Detect page)"
        )
    run = store.scores.window(data.config.id, where)
    values = run[~np.isnan(run)]
    # What could not be scored, and refusals, are traffic that is not flagged.
    scores = np.append(values, np.full(max(0, total - waiting - len(values)), np.nan))
    return Pool(scores, traffic_per_day(store, data.sample))


def counted_traffic(store: Store, data: Evidence) -> Pool | None:
    """The same where flags can be counted; None where the detector was run on too little of the traffic."""
    try:
        pool = scored_traffic(store, data)
    except BadInput:
        return None
    return pool if len(pool.scores) else None


def _window_of(data: Evidence) -> TraceFilter:
    return replace(data.sample.filter if data.sample else TraceFilter(), label="any")


def traffic_per_day(store: Store, sample: Sample | None) -> float | None:
    """Traces a day in the sample's window (or the whole store); None for undated traffic.

    Counted over the time from the first trace to the last, as the first and the last date are seldom whole days. Of
    traffic within one day, its number.
    """
    where = replace(sample.filter if sample else TraceFilter(), undated=False, label="any")
    span = store.traces.span(where)
    if span is None:
        return None
    n, first, last = span
    # n traces have n - 1 pauses between them.
    return n / max(1.0, (last - first) / DAY * n / max(1, n - 1))
