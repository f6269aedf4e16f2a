"""The sample that the Draw page presets, for who wants to label at once."""

from __future__ import annotations

from datetime import datetime, timedelta

from calibrate.errors import BadInput
from calibrate.stats.sampling import designs
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.sampling import sample as sampler
from db import Store

WINDOW = timedelta(days=14)
SIZE = 60


def draw_usual(store: Store, *, now: datetime, size: int = SIZE) -> Sample:
    """This week's sample: the one that is there, else one of the last two weeks by the usual design, of all traces
    where nothing was logged in them. Raises BadInput for an empty store."""
    name = designs.default_name(now)
    if sample := store.samples.get(name):
        return sample
    where = TraceFilter(since=designs.window_start(WINDOW, now), undated=False)
    if not store.traces.count(where, limit=1):
        where = TraceFilter()
    design = sampler.usual_design(store, where)
    try:
        return sampler.draw(store, name, size=size, design=design, where=where, seed=None, now=now)
    except BadInput:
        if sample := store.samples.get(name):  # somebody else drew it in this moment
            return sample
        raise
