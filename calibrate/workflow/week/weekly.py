"""Weekly: what of the week needs nobody. Scores what came in, draws the sample to label, and looks for drift.

Run twice in a week it does the second time only what is missing, so that cron may run it every night.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from calibrate import registry
from calibrate.engines.run import Job, Tally, run
from calibrate.errors import BadInput
from calibrate.stats.sampling import designs
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.thresholds.states import Judged
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection import configurations, detect
from calibrate.workflow.detection.detectors import asks_chat
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.releasing.history import live_release, releases_alike
from calibrate.workflow.sampling import sample as sampler
from calibrate.workflow.upgrade import planning
from calibrate.workflow.watching import drift
from calibrate.workflow.watching.drift_report import Report
from calibrate.workflow.week.next_steps import Open, Step, order_steps
from calibrate.workflow.week.week import WINDOW, judge_live
from calibrate.workspace import using
from db import Store


class NotRun(StrEnum):
    """Why a detector of the release was not run."""

    ASKS_CHAT = "asks chat"
    SAMPLED = "sampled"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Scored:
    """What a detector of the release did with the traces that lacked its score. `detail` of `not_run`: what is
    unavailable, or the traffic that production runs it on."""

    detector: str
    scored: int = 0
    missing: int = 0
    not_run: NotRun | None = None
    detail: str = ""


@dataclass(frozen=True)
class Weekly:
    """What was done. `drawn`: the sample of this `week` was drawn now; False where it was there, `sample` None where
    there was nothing to draw from, `unlabelled` how many of its traces have no gold label, `at_hand` what its labels
    say. `report` is None before the first release. `upgraded` are the detectors that changed since the release,
    `known_bad` live thresholds that are known to be bad, `disputes` labels that contradict each other. `has_scores`: a
    detector was run on every labelled trace; `has_points`: a threshold is saved."""

    week: str
    now: datetime
    version: int | None
    scored: tuple[Scored, ...]
    sample: Sample | None
    drawn: bool
    report: Report | None
    upgraded: tuple[str, ...]
    unlabelled: int
    at_hand: LabelsAtHand | None
    known_bad: tuple[Judged, ...] = ()
    disputes: int = 0
    has_scores: bool = False
    has_points: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is open for people, in order. A detector that drifted or changed is a live threshold in doubt."""
        moved = len(self.report.moved) if self.report else 0
        return order_steps(
            Open(
                drawn=self.sample is not None,
                bad=len(self.known_bad) + moved + len(self.upgraded),
                disputes=self.disputes,
                unlabelled=self.unlabelled,
                released=self.version is not None,
            )
        )


def weekly(store: Store, *, size: int, now: datetime) -> Weekly:
    """Scores the traffic with the live release's detectors, draws this week's sample and reports on drift.

    Detectors that ask a chat endpoint are not run: what they may spend is for people to say. Raises BadInput for a size
    that no sample has.
    """
    name, file = designs.default_name(now), live_release(store)
    scored = _score(store, file, now) if file else ()
    sample, drawn = _draw(store, name, size=size, now=now)
    report = drift.drift(store, now=now) if file else None
    upgraded = tuple(due.name for due in planning.plan(store).upgraded) if file else ()
    at_hand = labels_at_hand(store, sample) if sample else None
    unlabelled = at_hand.counts.total - at_hand.counts.labelled - at_hand.counts.waiting if at_hand else 0
    bad = tuple(judged for judged in judge_live(store) if judged.state.known_bad)
    disputes = store.labels.gold_counts().get("disputed", 0)
    version = file.version if file else None
    return Weekly(
        name, now, version, scored, sample, drawn, report, upgraded, unlabelled, at_hand, bad, disputes,
        has_scores=_has_scores(store), has_points=bool(store.points.latest()),
    )  # fmt: skip


def _has_scores(store: Store) -> bool:
    """Whether a detector was run on every labelled trace."""
    newest = (configs[-1].id for configs in configurations.configs_by_detector(store).values())
    return bool(store.labels.gold_counts()) and any(not store.coverage.lacking(id, labelled=True) for id in newest)


def _score(store: Store, file: ThresholdsFile, now: datetime) -> tuple[Scored, ...]:
    """Every trace of the window and since the release, so that a sample can go by scores and drift sees all."""
    began = releases_alike(store, store.releases.list()[0])[-1].released_at
    where = TraceFilter(since=min(now - WINDOW, began), undated=False)
    with using(detect.workspace_of(store)):
        return tuple(_score_detector(store, name, entry, where) for name, entry in sorted(file.detectors.items()))


def _score_detector(store: Store, name: str, entry: DetectorEntry, where: TraceFilter) -> Scored:
    try:
        detector = registry.make(name, entry.params)
    except BadInput as error:
        return Scored(name, not_run=NotRun.UNAVAILABLE, detail=str(error))
    if asks_chat(detector):
        return Scored(name, not_run=NotRun.ASKS_CHAT)
    if entry.sampling and entry.sampling.rate < 1:
        return Scored(name, not_run=NotRun.SAMPLED, detail=str(entry.sampling))
    if missing := detector.unavailable():
        return Scored(name, not_run=NotRun.UNAVAILABLE, detail=missing)
    if entry.sampling:
        where = replace(where, attributes=entry.sampling.only_when)
    config = detect.config_id(store, detector)
    lacking = store.traces.lacking(where, [config])
    tally = run(
        [Job(detector, config)],
        store.traces.hashes(lacking, chunk=detect.CHUNK),
        cache=store.scores,
        load=store.traces.load,
        now=detect.utc_now,
        on_progress=lambda *_: True,
    )[name]
    return Scored(name, tally.scored, _without(tally))


def _without(tally: Tally) -> int:
    return tally.abstained + tally.failed


def _draw(store: Store, name: str, *, size: int, now: datetime) -> tuple[Sample | None, bool]:
    """This week's sample, and whether it was drawn now."""
    if sample := store.samples.get(name):
        return sample, False
    where = TraceFilter(since=designs.window_start(WINDOW, now), undated=False)
    if not store.traces.count(where, limit=1):
        return None, False
    design = sampler.usual_design(store, where)
    try:
        return sampler.draw(store, name, size=size, design=design, where=where, seed=None, now=now), True
    except BadInput:
        if sample := store.samples.get(name):  # another one drew it in this moment
            return sample, False
        raise
