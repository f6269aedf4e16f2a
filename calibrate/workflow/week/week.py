"""The week: where it stands and what comes next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.thresholds.states import Judged
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.label_counts import find_gap
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.releasing.unknown_models import UnknownModel, unknown_models
from calibrate.workflow.traces.stated_samples import is_hand_picked
from calibrate.workflow.watching.live import Due, LiveThreshold
from calibrate.workflow.week.next_steps import Open, Step, order_steps
from calibrate.workflow.week.standing import UNRELEASED, Standing, look
from db import Store
from db.labels import Place
from db.releases import Release
from db.runs import ENDED, Run

WINDOW = timedelta(days=14)


@dataclass(frozen=True)
class Week:
    """The state of the loop for the newest sample of the traffic. `at_hand` are its labels and what they say of the
    traffic; `gap` names it where labels wait behind a trace that nobody has labelled. `aside` is a newer one, drawn to
    certify or to be labelled twice, that this labeller has not done yet. `live` is where the live thresholds stand,
    `disputes` counts labels that contradict each other, `proposals` releases that wait for a second person; `fresh`: a
    trace came in within WINDOW. `steps` are open, in order."""

    name: str
    traces: int
    new_this_week: int
    fresh: bool
    sample: Sample | None
    aside: Sample | None
    gold: dict[str, int]
    at_hand: LabelsAtHand
    place: Place | None
    run: Run | None
    scored_detectors: tuple[str, ...]
    silent_detectors: tuple[str, ...]
    saved_points: tuple[str, ...]
    release: Release | None
    unknown_models: tuple[UnknownModel, ...]
    steps: tuple[Step, ...] = ("import",)
    live: Standing = UNRELEASED
    disputes: int = 0
    proposals: int = 0
    gap: str | None = None

    @property
    def next(self) -> Step:
        return self.steps[0]

    @property
    def known_bad(self) -> tuple[Judged, ...]:
        """The live thresholds and ensembles that are known to be bad."""
        return self.live.known_bad

    @property
    def checks_due(self) -> tuple[LiveThreshold, ...]:
        """The live thresholds whose precision somebody should look at, or choose anew; known bad ones apart."""
        due = (Due.RECHECK, Due.GATE, Due.RECALIBRATE)
        bad = {judged.name for judged in self.known_bad}
        return tuple(row for row in self.live.thresholds if row.due in due and row.name not in bad)

    @property
    def labelled(self) -> int:
        """Members of the sample with a gold verdict of any kind."""
        return sum(self.gold.values())

    @property
    def left(self) -> int:
        """Members of the sample without a gold verdict."""
        return self.sample.size - self.labelled if self.sample else 0


def week(
    store: Store,
    *,
    name: str,
    labeller: str | None,
    now: datetime,
    live: Standing | None = None,
    unknown: tuple[UnknownModel, ...] | None = None,
) -> Week:
    """Where the week stands for a labeller, or (None) for the team. `name` is the ISO week's. `live`: `standing.look`,
    and `unknown`: the models that the live release does not know, where the caller has them."""
    samples = [sample for sample in store.samples.list() if not is_hand_picked(sample)]
    sample = next((drawn for drawn in samples if speaks_for_all(drawn)), None)
    newest = samples[0] if samples and samples[0] is not sample else None
    if newest is not None and any(recheck.sample_id == newest.id for recheck in store.rechecks.of()):
        newest = None  # a recheck says itself how many labels it takes
    left = newest is not None and _is_left(store, newest, labeller)
    traces = store.traces.count(TraceFilter())
    # A run over everything has scored the sample before it was drawn by those scores.
    runs = [
        run for run in store.runs.recent()
        if sample is None or run.created_at >= sample.created_at or run.scope.get("all")
    ]  # fmt: skip
    points = {n: p for n, p in store.points.latest().items() if sample is None or p.chosen_at >= sample.created_at}
    releases = store.releases.list()
    done = next((run for run in runs if run.status in ENDED), None)
    if unknown is None:
        unknown = unknown_models(store, releases[0]) if releases else ()
    state = Week(
        name=name,
        traces=traces,
        new_this_week=store.traces.count(TraceFilter(since=monday(now), undated=False)) if traces else 0,
        fresh=store.traces.count(TraceFilter(since=now - WINDOW), limit=1) > 0,
        sample=sample,
        aside=newest if left else None,
        gold=store.labels.gold_counts(sample.id) if sample else store.labels.gold_counts(),
        at_hand=labels_at_hand(store, sample),
        place=store.labels.place(sample.id, labeller) if sample and labeller is not None else None,
        run=runs[0] if runs else None,
        scored_detectors=tuple(sorted(done.counts)) if done else (),
        silent_detectors=silent(done) if done else (),
        saved_points=tuple(sorted(points)),
        release=releases[0] if releases else None,
        unknown_models=unknown,
        live=look(store, now=now) if live is None else live,
        disputes=store.labels.gold_counts().get("disputed", 0),
        proposals=len(store.proposals.list(waiting=True)),
        gap=sample.name if sample and find_gap(store, sample) else None,
    )
    return replace(state, steps=order_steps(_find_open(state, now)))


def _is_left(store: Store, sample: Sample, labeller: str | None) -> bool:
    if labeller is None:
        return sum(store.labels.gold_counts(sample.id).values()) < sample.size
    return store.labels.place(sample.id, labeller).position is not None


def silent(run: Run) -> tuple[str, ...]:
    """The detectors of a run that could score no trace at all."""
    return tuple(sorted(name for name, tally in run.counts.items() if not tally["scored"] + tally["reused"]))


def monday(now: datetime) -> datetime:
    """The start of the ISO week, UTC."""
    day = now.astimezone(UTC).date()
    return datetime.combine(day - timedelta(days=day.weekday()), time(), UTC)


def _find_open(state: Week, now: datetime) -> Open:
    sample = state.sample
    theirs = state.place is None or state.place.position is not None
    # A label that waits is in no figure until somebody labels the trace before it, whoever is to.
    left = state.left if sample and (theirs or state.gap) else 0
    return Open(
        imported=bool(state.traces),
        bad=len(state.known_bad),
        disputes=state.disputes,
        drawn=sample is not None,
        unlabelled=max(left, 0) + (state.aside is not None),
        scored=bool(state.scored_detectors),
        chosen=bool(state.saved_points),
        released=state.release is not None
        and sample is not None
        and state.release.released_at >= sample.created_at
        and not state.proposals,
        checks=len(state.checks_due) + len(state.unknown_models),
        current=sample is not None and sample.created_at >= monday(now),
    )
