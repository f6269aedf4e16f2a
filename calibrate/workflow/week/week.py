"""The week: where it stands and what comes next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Literal

from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.releasing.unknown_models import UnknownModel, unknown_models
from calibrate.workflow.sampling.sizing import prevalence_of
from db import Store
from db.labels import Place
from db.releases import Release
from db.runs import Run

Step = Literal["import", "sample", "label", "detect", "tune", "release"]
WINDOW = timedelta(days=14)


@dataclass(frozen=True)
class Week:
    """The state of the loop for the newest sample of the traffic, whose `prevalence` is weighted by its design. `aside`
    is a newer one, drawn to certify or to be labelled twice, that this labeller has not done yet. `next` is the step to
    do now."""

    name: str
    traces: int
    new_this_week: int
    sample: Sample | None
    aside: Sample | None
    gold: dict[str, int]
    prevalence: float | None
    place: Place | None
    run: Run | None
    scored_detectors: tuple[str, ...]
    silent_detectors: tuple[str, ...]
    saved_points: tuple[str, ...]
    release: Release | None
    unknown_models: tuple[UnknownModel, ...]
    next: Step

    @property
    def labelled(self) -> int:
        """Members of the sample with a gold verdict of any kind."""
        return sum(self.gold.values())


def week(store: Store, *, name: str, labeller: str, now: datetime) -> Week:
    """What the home page says. `name` is the ISO week's."""
    samples = store.samples.list()
    sample = next((drawn for drawn in samples if speaks_for_all(drawn)), None)
    newest = samples[0] if samples and samples[0] is not sample else None
    left = newest is not None and store.labels.place(newest.id, labeller).position is not None
    traces = store.traces.count(TraceFilter())
    # A run over everything has scored the sample before it was drawn by those scores.
    runs = [
        run for run in store.runs.recent()
        if sample is None or run.created_at >= sample.created_at or run.scope.get("all")
    ]  # fmt: skip
    points = {n: p for n, p in store.points.latest().items() if sample is None or p.chosen_at >= sample.created_at}
    releases = store.releases.list()
    done = next((run for run in runs if run.status == "done"), None)
    state = Week(
        name=name,
        traces=traces,
        new_this_week=store.traces.count(TraceFilter(since=monday(now), undated=False)) if traces else 0,
        sample=sample,
        aside=newest if left else None,
        gold=store.labels.gold_counts(sample.id) if sample else store.labels.gold_counts(),
        prevalence=prevalence_of(store, sample) if sample else None,
        place=store.labels.place(sample.id, labeller) if sample else None,
        run=runs[0] if runs else None,
        scored_detectors=tuple(sorted(done.counts)) if done else (),
        silent_detectors=silent(done) if done else (),
        saved_points=tuple(sorted(points)),
        release=releases[0] if releases else None,
        unknown_models=unknown_models(store, releases[0]) if releases else (),
        next="import",
    )
    return replace(state, next=_find_next_step(state))


def silent(run: Run) -> tuple[str, ...]:
    """The detectors of a run that could score no trace at all."""
    return tuple(sorted(name for name, tally in run.counts.items() if not tally["scored"] + tally["reused"]))


def monday(now: datetime) -> datetime:
    """The start of the ISO week, UTC."""
    day = now.astimezone(UTC).date()
    return datetime.combine(day - timedelta(days=day.weekday()), time(), UTC)


def _find_next_step(state: Week) -> Step:
    """The first step of the loop that is not done for the newest sample."""
    if not state.traces:
        return "import"
    if state.sample is None:
        return "sample"
    if state.place is not None and state.place.position is not None and state.labelled < state.sample.size:
        return "label"
    if state.aside is not None:
        return "label"
    if not state.scored_detectors:
        return "detect"
    if not state.saved_points:
        return "tune"
    if state.release is None or state.release.released_at < state.sample.created_at:
        return "release"
    return "sample"
