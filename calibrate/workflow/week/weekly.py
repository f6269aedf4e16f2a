"""Weekly: what of the week needs nobody. Scores what came in, draws the sample to label, and looks for drift.

Run twice in a week it does the second time only what is missing, so that cron may run it every night.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.errors import BadInput
from calibrate.run import Job, Tally, run
from calibrate.stats.sampling import designs
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.detectors import asks_chat
from calibrate.workflow.releasing.history import live_release, releases_alike
from calibrate.workflow.sampling import sample as sampler
from calibrate.workflow.upgrade import recalibrate
from calibrate.workflow.watching import drift
from calibrate.workflow.week.week import WINDOW
from calibrate.workspace import using
from db import Store


@dataclass(frozen=True)
class Scored:
    """What a detector of the release did with the traces that lacked its score; `why` says why it was not run."""

    detector: str
    scored: int = 0
    missing: int = 0
    why: str | None = None


@dataclass(frozen=True)
class Weekly:
    """What was done. `drawn`: the sample of this `week` was drawn now; False where it was there, `sample` None where
    there was nothing to draw from. `report` is None before the first release. `next` says what is for people to do."""

    week: str
    now: datetime
    version: int | None
    scored: tuple[Scored, ...]
    sample: Sample | None
    drawn: bool
    report: drift.Report | None
    next: tuple[str, ...]


def weekly(store: Store, *, size: int, by: str, now: datetime) -> Weekly:
    """Scores the traffic with the live release's detectors, draws this week's sample and reports on drift.

    Detectors that ask a chat endpoint are not run: what they may spend is for people to say. Raises BadInput for a size
    that no sample has.
    """
    name, file = designs.default_name(now), live_release(store)
    scored = _score(store, file, now) if file else ()
    sample, drawn = _draw(store, name, size=size, now=now)
    report = drift.drift(store, now=now) if file else None
    done = Weekly(name, now, file.version if file else None, scored, sample, drawn, report, ())
    return replace(done, next=tuple(_next(store, done, by=by)))


def _score(store: Store, file: ThresholdsFile, now: datetime) -> tuple[Scored, ...]:
    """Every trace of the window and since the release, so that a sample can go by scores and drift sees all."""
    began = releases_alike(store, store.releases.list()[0])[-1].released_at
    where = TraceFilter(since=min(now - WINDOW, began), undated=False)
    with using(detect.workspace_of(store)):
        return tuple(_one(store, name, entry, where) for name, entry in sorted(file.detectors.items()))


def _one(store: Store, name: str, entry: DetectorEntry, where: TraceFilter) -> Scored:
    try:
        detector = registry.make(name, entry.params)
    except BadInput as error:
        return Scored(name, why=str(error))
    if why := _left_to_people(detector, entry) or detector.unavailable():
        return Scored(name, why=why)
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


def _left_to_people(detector: Detector, entry: DetectorEntry) -> str | None:
    if asks_chat(detector):
        return f"it asks a chat endpoint: `detect {detector.name} --sample NAME --budget USD` says what it may spend"
    if entry.sampling and entry.sampling.rate < 1:
        return f"production runs it on {entry.sampling} only"
    return None


def _without(tally: Tally) -> int:
    return tally.abstained + tally.failed


def _draw(store: Store, name: str, *, size: int, now: datetime) -> tuple[Sample | None, bool]:
    """This week's sample, and whether it was drawn now."""
    if found := store.samples.get(name):
        return found, False
    where = TraceFilter(since=designs.window_start(WINDOW, now), undated=False)
    if not store.traces.count(where, limit=1):
        return None, False
    design = sampler.usual_design(store, where)
    try:
        return sampler.draw(store, name, size=size, design=design, where=where, seed=None, now=now), True
    except BadInput:
        if found := store.samples.get(name):  # another one drew it in this moment
            return found, False
        raise


def _next(store: Store, done: Weekly, *, by: str) -> Iterator[str]:
    """What is for people to do, most pressing first."""
    if done.report and done.report.moved:
        yield done.report.next
    if done.version is not None and (upgraded := recalibrate.plan(store).upgraded):
        names = ", ".join(one.name for one in upgraded)
        yield f"choose thresholds anew with `recalibrate`: {names} changed since v{done.version}"
    if done.sample is None:
        yield "import what your app has logged: no dated trace came in the last 14 days"
    else:
        left = done.sample.size - sum(store.labels.gold_counts(done.sample.id).values())
        if left:
            yield f"label {left:,} of {done.sample.size:,} traces of {done.sample.name} (the Label page)"
    if done.version is None:
        yield "run detectors over the labels, `choose` thresholds and `release` them: nothing is released yet"


def document(done: Weekly) -> Mapping[str, object]:
    """All of it as JSON, but for the report's lines."""
    report = done.report
    return {
        "week": done.week,
        "version": done.version,
        "scored": {one.detector: {"scored": one.scored, "missing": one.missing, "why": one.why} for one in done.scored},
        "sample": done.sample.name if done.sample else None,
        "size": done.sample.size if done.sample else None,
        "drawn": done.drawn,
        "verdict": report.verdict if report else None,
        "moved": [
            {"detector": one.detector, "model": one.model, "verdict": one.verdict} for one in report.moved
        ] if report else [],
        "next": list(done.next),
    }  # fmt: skip
