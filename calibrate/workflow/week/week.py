"""The week: where it stands and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.thresholds.states import Judged
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.releasing.entries import points_of
from calibrate.workflow.releasing.history import promised_precision, read_release, releases_alike
from calibrate.workflow.releasing.unknown_models import UnknownModel, unknown_models
from calibrate.workflow.traces.stated_samples import is_hand_picked
from calibrate.workflow.week.next_steps import Open, Step, order_steps
from db import Store
from db.labels import Place
from db.releases import Release
from db.runs import ENDED, Run

WINDOW = timedelta(days=14)
CHECK_AFTER = timedelta(days=28)
"""How long a live threshold may go without a look at its precision: traffic and models change by the month."""


@dataclass(frozen=True)
class Week:
    """The state of the loop for the newest sample of the traffic. `at_hand` are its labels and what they say of the
    traffic. `aside` is a newer one, drawn to certify or to be labelled twice, that this labeller has not done yet.
    `live` is what is known now of the live thresholds, `disputes` counts labels that contradict each other,
    `checks_due` names live thresholds whose precision is due for a recheck. `steps` are open, in order."""

    name: str
    traces: int
    new_this_week: int
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
    live: tuple[Judged, ...] = ()
    disputes: int = 0
    checks_due: tuple[str, ...] = ()

    @property
    def next(self) -> Step:
        return self.steps[0]

    @property
    def known_bad(self) -> tuple[Judged, ...]:
        """The live thresholds and ensembles that are known to be bad."""
        return tuple(judged for judged in self.live if judged.state.known_bad)

    @property
    def labelled(self) -> int:
        """Members of the sample with a gold verdict of any kind."""
        return sum(self.gold.values())

    @property
    def left(self) -> int:
        """Members of the sample without a gold verdict."""
        return self.sample.size - self.labelled if self.sample else 0


def week(store: Store, *, name: str, labeller: str, now: datetime, live: Sequence[Judged] | None = None) -> Week:
    """What the home page says. `name` is the ISO week's. `live`: `judge_live`, where the caller has it."""
    samples = [sample for sample in store.samples.list() if not is_hand_picked(sample)]
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
    done = next((run for run in runs if run.status in ENDED), None)
    state = Week(
        name=name,
        traces=traces,
        new_this_week=store.traces.count(TraceFilter(since=monday(now), undated=False)) if traces else 0,
        sample=sample,
        aside=newest if left else None,
        gold=store.labels.gold_counts(sample.id) if sample else store.labels.gold_counts(),
        at_hand=labels_at_hand(store, sample),
        place=store.labels.place(sample.id, labeller) if sample else None,
        run=runs[0] if runs else None,
        scored_detectors=tuple(sorted(done.counts)) if done else (),
        silent_detectors=silent(done) if done else (),
        saved_points=tuple(sorted(points)),
        release=releases[0] if releases else None,
        unknown_models=unknown_models(store, releases[0]) if releases else (),
        live=tuple(judge_live(store) if live is None else live),
        disputes=store.labels.gold_counts().get("disputed", 0),
        checks_due=find_checks_due(store, releases[0], now) if releases else (),
    )
    return replace(state, steps=order_steps(_find_open(state, now)))


def judge_live(store: Store) -> tuple[Judged, ...]:
    """What is known now of every threshold and ensemble of the live release that may flag."""
    releases = store.releases.list(limit=1)
    if not releases:
        return ()
    file = read_release(releases[0])
    return tuple(known_bad.judge_live(store, file, points_of(store, file, until=releases[0].released_at)))


def find_checks_due(store: Store, release: Release, now: datetime) -> tuple[str, ...]:
    """The live detectors that promise a precision and whose precision nobody has looked at for CHECK_AFTER, neither
    when their threshold was released nor in a recheck; and those whose recheck is under way."""
    alike, due = {row.version: row for row in releases_alike(store, release)}, []
    for name, entry in sorted(read_release(release).detectors.items()):
        if entry.tier == "off" or promised_precision(entry) is None:
            continue
        rechecks = [recheck for recheck in store.rechecks.of(name) if recheck.version in alike]
        looked = [row.released_at for row in alike.values()][-1:]
        looked += [recheck.finished_at for recheck in rechecks if recheck.finished_at is not None]
        under_way = any(recheck.outcome is None and recheck.version == release.version for recheck in rechecks)
        if under_way or now - max(looked) > CHECK_AFTER:
            due.append(name)
    return tuple(due)


def silent(run: Run) -> tuple[str, ...]:
    """The detectors of a run that could score no trace at all."""
    return tuple(sorted(name for name, tally in run.counts.items() if not tally["scored"] + tally["reused"]))


def monday(now: datetime) -> datetime:
    """The start of the ISO week, UTC."""
    day = now.astimezone(UTC).date()
    return datetime.combine(day - timedelta(days=day.weekday()), time(), UTC)


def _find_open(state: Week, now: datetime) -> Open:
    sample = state.sample
    left = state.left if sample and state.place and state.place.position is not None else 0
    return Open(
        imported=bool(state.traces),
        bad=len(state.known_bad),
        disputes=state.disputes,
        drawn=sample is not None,
        unlabelled=max(left, 0) + (state.aside is not None),
        scored=bool(state.scored_detectors),
        chosen=bool(state.saved_points),
        released=state.release is not None and sample is not None and state.release.released_at >= sample.created_at,
        checks=len(state.checks_due),
        current=sample is not None and sample.created_at >= monday(now),
    )
