"""The terms of a recheck, and the period of traffic that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any

from calibrate.errors import BadInput
from calibrate.stats.sampling.designs import Cut, window_start
from calibrate.thresholds.model import DetectorEntry
from calibrate.thresholds.segments import name_segment
from calibrate.types import FlagWhen, TraceFilter
from calibrate.workflow.releasing.history import read_release, releases_alike
from calibrate.workflow.sampling import sample as samples
from calibrate.workflow.watching.recheck_segment import in_segment, only_segment
from db import Store
from db.attempts import Recheck
from db.releases import Release

RECENT = timedelta(days=7)
"""The traffic that a recheck is about unless the user says since when: what comes in a week, with all its weekdays."""
INSTANT = timedelta(microseconds=1)

EVERYTHING = TraceFilter()

Since = timedelta | datetime | None


@dataclass(frozen=True)
class Plan:
    """The terms, fixed before the first label. `target`: the precision to hold, 0 to 1; `alpha`: the chance that each
    decision is wrong, however often one looks; `model`: None for all traffic; `limit` is the threshold in words;
    `where` has the period; `since_release`: traces that were flagged since the release, in the period or before it
    (None: kept by a version that did not count them). `segment`: the one that it is about and whose threshold it has,
    told apart `by` this; None where the detector has one threshold for all."""

    target: float
    alpha: float
    threshold: float
    flag_when: FlagWhen
    limit: str
    model: str | None
    where: TraceFilter
    batch: int
    seed: int
    since_release: int | None = None
    by: str | None = None
    segment: str | None = None

    @property
    def part(self) -> str | None:
        """The segment in words: "operation qa"."""
        return None if self.by is None or self.segment is None else name_segment(self.by, self.segment)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "where": self.where.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Plan:
        return cls(**{**document, "where": TraceFilter.from_json(document["where"])})


@dataclass(frozen=True)
class Traffic:
    """The traffic that a recheck would be about: `flagged` traces of it can be drawn by `cut`; `since_release`: flagged
    ones since the release, drawn before or not."""

    where: TraceFilter
    cut: Cut
    flagged: int
    since_release: int


def plan_of(recheck: Recheck) -> Plan:
    """The terms of a recheck. One that was begun before periods were fixed is of the traffic up to its beginning."""
    plan = Plan.from_json(recheck.plan)
    return plan if plan.where.until else replace(plan, where=replace(plan.where, until=recheck.started_at))


def traffic_of(recheck: Recheck) -> tuple[str | None, str | None]:
    """The model and the segment that a recheck is of; None for all."""
    return recheck.plan["model"], recheck.plan.get("segment")


def look(
    store: Store,
    detector: str,
    *,
    version: int | None = None,
    model: str | None = None,
    segment: str | None = None,
    since: Since = RECENT,
    now: datetime,
) -> Traffic:
    """Count what a recheck could draw from. Raises BadInput where nothing is released, or the detector is not in it, or
    a segment is missing or has no threshold of its own."""
    release, whole = find_entry(store, detector, version)
    entry = in_segment(detector, whole, segment)
    limits = only_segment(whole, segment)
    where, every = (traffic_since(store, release, model, start, limits) for start in (since, None))
    config = store.scores.config(detector, entry.version, entry.params, entry.revision, now=now)
    cut = Cut(config.id, entry.threshold, find_drawn(store, detector, release, where))
    return Traffic(where, cut, count_flagged(store, cut, where), count_flagged(store, replace(cut, apart=()), every))


def traffic_since(
    store: Store, release: Release, model: str | None, since: Since, limits: TraceFilter = EVERYTHING
) -> TraceFilter:
    """The dated traffic of a period that ends with the newest trace. Since when: a time, or so long before the newest
    trace, in whole days (UTC) where it is days; never before the release (the first that decides alike), which is None.
    `limits` has the segment that it is of.
    """
    if model and limits.models not in ((), (model,)):
        raise BadInput(f"no trace of model {limits.models[0]} is of model {model}: leave out --model")
    every = replace(
        limits,
        since=releases_alike(store, release)[-1].released_at,
        undated=False,
        models=(model,) if model else limits.models,
    )
    span = store.traces.span(every)
    if span is None:
        return every
    _, _, newest = span
    start = window_start(since, newest)
    if isinstance(since, timedelta) and not since % timedelta(days=1) and start is not None:
        # Seven days are the newest trace's and the six before.
        start = datetime.combine(start.date() + timedelta(days=1), time(), start.tzinfo)
    latest = [moment for moment in (every.since, start) if moment is not None]
    return replace(every, since=max(latest), until=newest + INSTANT)


def count_flagged(store: Store, cut: Cut, where: TraceFilter) -> int:
    """How many traces of a period the threshold flags, labelled or not."""
    return samples.flagged_pool(store, cut, where, fresh=False)


def find_drawn(store: Store, detector: str, release: Release, where: TraceFilter) -> tuple[int, ...]:
    """The samples of the rechecks that drew from all of this period, on the same terms: a new one is of other traces.

    They were drawn at random, so what they left over is as random. A recheck of a part of the period only would leave
    less of that part than of the rest: its traces are drawn again, and their labels count where they come.
    """
    versions = {alike.version for alike in releases_alike(store, release)}
    return tuple(
        recheck.sample_id
        for recheck in store.rechecks.of(detector)
        if recheck.version in versions and _covers(plan_of(recheck).where, where)
    )


def find_entry(store: Store, detector: str, version: int | None) -> tuple[Release, DetectorEntry]:
    """A release and what it says of a detector. Raises BadInput where there is none."""
    releases = store.releases.list()
    release = next((row for row in releases if version in (None, row.version)), None)
    if release is None:
        raise BadInput(
            f"there is no release {version} to recheck" if releases else "nothing was released yet: nothing to recheck"
        )
    file = read_release(release)
    if detector not in file.detectors:
        raise BadInput(f"{detector} is not in release {release.version}, which has {', '.join(sorted(file.detectors))}")
    return release, file.detectors[detector]


def _covers(earlier: TraceFilter, where: TraceFilter) -> bool:
    same = (earlier.models, earlier.operations, dict(earlier.attributes))
    if same != (where.models, where.operations, dict(where.attributes)) or earlier.since is None or where.since is None:
        return False
    return earlier.since <= where.since and (where.until is None or (earlier.until or where.until) >= where.until)
