"""Models that answer traffic now but have no answer among the live release's labels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from calibrate.types import TraceFilter
from calibrate.workflow.releasing.history import read_release, releases_alike
from db import Store
from db.releases import Release
from db.tables.filters import NONE

NEWEST = timedelta(days=1)
MIN_SHARE = 0.01  # a model with a smaller share of the traffic is not reported


@dataclass(frozen=True, slots=True)
class UnknownModel:
    """A model that answers traffic now and of which the release's labels hold nothing. `share` is of the `total` traces
    since `since`; `appeared` the day (UTC) of its first trace, None where it was there before."""

    name: str
    traces: int
    total: int
    since: datetime
    appeared: date | None

    @property
    def share(self) -> float:
        return self.traces / self.total


def unknown_models(store: Store, release: Release) -> tuple[UnknownModel, ...]:
    """The models of the traffic that the release's labels know nothing of, most traffic first: of the traffic since the
    release and of the newest day, which a release or a roll back of just now would put out of sight."""
    released = set(read_release(release).data.models)
    newest = next((line.timestamp for line in store.traces.page(TraceFilter(undated=False), limit=1).lines), None)
    began = releases_alike(store, release)[-1].released_at
    since = began if newest is None else min(began, newest - NEWEST)
    counts = store.traces.facet(TraceFilter(since=since, undated=False), "model")
    total = sum(counts.values())
    unknown = []
    for name, traces in counts.items():
        if name in released or name == NONE or traces < MIN_SHARE * total:
            continue
        old = store.traces.count(TraceFilter(until=since, undated=False, models=(name,)), limit=1)
        days = store.traces.per_day(TraceFilter(since=since, undated=False, models=(name,)))
        unknown.append(UnknownModel(name, traces, total, since, None if old else date.fromisoformat(min(days))))
    return tuple(unknown)
