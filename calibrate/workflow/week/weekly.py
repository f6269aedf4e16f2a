"""Weekly: what of the week needs nobody. Scores what came in, draws the sample to label, and looks for drift.

Run twice in a week it does the second time only what is missing, so that cron may run it every night.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from calibrate import registry
from calibrate.detectors.shared.external import is_external
from calibrate.engines.choice import choose_engine
from calibrate.engines.run import Job, Tally
from calibrate.errors import BadInput
from calibrate.stats.sampling import designs
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.detectors import asks_chat
from calibrate.workflow.detection.scoring import score_everywhere
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.releasing.history import live_release, releases_alike
from calibrate.workflow.sampling import sample as sampler
from calibrate.workflow.watching.drift_report import Report
from calibrate.workflow.week.rates import Rates, check_by, weekly_rates
from calibrate.workflow.week.week import WINDOW, Week, week
from calibrate.workspace import using
from db import Store

Progress = Callable[[str, int, int], None]


class NotRun(StrEnum):
    """Why a detector of the release was not run."""

    ASKS_CHAT = "asks chat"
    SAMPLED = "sampled"
    UNAVAILABLE = "unavailable"
    IMPORTED = "imported"


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
    there was nothing to draw from, `at_hand` what its labels say. `state` is where the week stands for the team, when
    all that is done. `rates` says how often the application hallucinated, week by week."""

    week: str
    now: datetime
    version: int | None
    scored: tuple[Scored, ...]
    sample: Sample | None
    drawn: bool
    at_hand: LabelsAtHand | None
    state: Week
    rates: Rates

    @property
    def report(self) -> Report | None:
        """The drift report; None before the first release."""
        return self.state.live.report


def weekly(
    store: Store,
    *,
    size: int,
    now: datetime,
    by: str | None = None,
    on_progress: Progress = lambda detector, done, total: None,
) -> Weekly:
    """Scores the traffic with the live release's detectors, draws this week's sample and reports on drift.

    `on_progress` is called with a detector's name and how many of the traces that it is to score are done. Detectors
    that ask a chat endpoint are not run: what they may spend is for people to say. The rates are `by` model, operation
    or an attribute where one is named. Raises BadInput for a size that no sample has.
    """
    by = check_by(store, by)  # before anything is scored or drawn
    name, file = designs.default_name(now), live_release(store)
    scored = _score(store, file, now, on_progress) if file else ()
    sample, drawn = _draw(store, name, size=size, now=now)
    at_hand = labels_at_hand(store, sample) if sample else None
    state = week(store, name=name, labeller=None, now=now)
    rates = weekly_rates(store, by=by)
    return Weekly(name, now, file.version if file else None, scored, sample, drawn, at_hand, state, rates)


def _score(store: Store, file: ThresholdsFile, now: datetime, show: Progress) -> tuple[Scored, ...]:
    """Every trace of the window and since the release, so that a sample can go by scores and drift sees all."""
    began = releases_alike(store, store.releases.list()[0])[-1].released_at
    where = TraceFilter(since=min(now - WINDOW, began), undated=False)
    with using(workspace_of(store)):
        return tuple(_score_detector(store, name, entry, where, show) for name, entry in sorted(file.detectors.items()))


def _score_detector(store: Store, name: str, entry: DetectorEntry, where: TraceFilter, show: Progress) -> Scored:
    try:
        detector = registry.make(name, entry.params)
    except BadInput as error:
        return Scored(name, not_run=NotRun.UNAVAILABLE, detail=str(error))
    if is_external(detector):
        return Scored(name, not_run=NotRun.IMPORTED)
    if asks_chat(detector):
        return Scored(name, not_run=NotRun.ASKS_CHAT)
    if entry.sampling and entry.sampling.rate < 1:
        return Scored(name, not_run=NotRun.SAMPLED, detail=str(entry.sampling))
    if missing := detector.unavailable():
        return Scored(name, not_run=NotRun.UNAVAILABLE, detail=missing)
    if entry.sampling:
        where = replace(where, attributes=entry.sampling.only_when)
    lacking = store.traces.lacking(where, [config := detect.config_id(store, detector)])

    def on_progress(done: int, _: object = None) -> bool:
        show(name, done, len(lacking))
        return True

    on_progress(0)
    tally = score_everywhere(
        store,
        [Job(detector, config)],
        len(lacking),
        lambda _: (len(lacking), store.traces.hashes(lacking, chunk=detect.CHUNK)),
        engine=choose_engine(),
        on_progress=on_progress,
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
