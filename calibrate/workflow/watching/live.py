"""Live thresholds: what each promises, what is known of it now, and what it needs. One answer for pages and commands.

What is known now of a precision comes from the newest labels that say anything of it: those of a recheck of this
threshold, else those that it was chosen on, as they stand today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from calibrate.thresholds.ensembles import EnsembleEntry
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.thresholds.states import Judged
from calibrate.types import Interval, Segments, StateReason, Strength, Tier
from calibrate.workflow.releasing.entries import points_of
from calibrate.workflow.releasing.history import promised_precision, read_release, releases_alike
from calibrate.workflow.watching import recheck as rechecking
from calibrate.workflow.watching.drift_report import DetectorDrift, DriftState, Report
from calibrate.workflow.watching.recheck_plan import look, traffic_of
from db import Store
from db.attempts import Recheck
from db.points import SavedPoint
from db.releases import Release

CHECK_AFTER = timedelta(days=28)
"""How long a live threshold may go without a look at its precision: traffic and models change by the month."""
MONTH = timedelta(days=30)
# Which of a detector's lines stands for it, the most pressing first; then what is known of the most traffic.
_PRESSING = (DriftState.MOVED, DriftState.RECALIBRATE)
_OF_JUDGED = (StateReason.RECHECK_FELL, StateReason.OVERTURNED)  # their counts are of other labels than their figure


class Due(StrEnum):
    """What a live threshold asks people to do."""

    CHOOSE = "choose"  # it is known to be bad
    RECALIBRATE = "recalibrate"  # a recheck found it below its target, or its detector changed
    RECHECK = "recheck"  # one is under way, its scores moved, or nobody has looked for CHECK_AFTER
    GATE = "gate"  # the same, and no segment of it has flagged traces to recheck: test it on a sample
    SCORE = "score"  # the traffic since the release lacks its scores


class Because(StrEnum):
    """Why it asks for that."""

    BAD = "bad"
    FELL = "fell"
    CHANGED = "changed"
    UNDER_WAY = "under way"
    MOVED = "moved"
    OVERDUE = "overdue"
    UNSCORED = "unscored"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A precision as it is known now. `hits` of `flagged` definite labels are hallucinated; where these are not known
    (None), it is from `labels` labels, flagged or not, `positives` of them hallucinated. `since` and `until` bound the
    traffic that was labelled, None where it has no such bound. `recheck`: the labels are of one, which is `open` while
    it goes on."""

    precision: Interval
    flagged: int | None
    hits: int | None
    labels: int
    positives: int
    since: datetime | None
    until: datetime | None
    recheck: bool = False
    open: bool = False


@dataclass(frozen=True, slots=True)
class ModelSeen:
    """A model of the traffic since the release; `unseen`: the release was made without it."""

    name: str
    traces: int
    unseen: bool


@dataclass(frozen=True)
class LiveThreshold:
    """One threshold, or one ensemble, that may flag in production.

    `strength` is that of the promise, as long as nothing is known against it. `checked_at` is when somebody last looked
    at its precision: at its release, or, `rechecked`, in a recheck; `stale`: longer ago than CHECK_AFTER. `drift` sums
    up `lines`, the drift report's of this detector. `flags` counts flagged traces by day, of the last MONTH of traffic,
    up to the last day that was decided; empty where none was. `changes`: what differs between the detector as it was
    released and as it would run today. With thresholds per segment, told apart `by` this, a recheck is of one:
    `segment` is the one to recheck now, None where none can be; the detector was looked at when the last of them was.
    """

    name: str
    tier: Tier
    ensemble: bool
    limit: str | None
    promised: float | None
    strength: Strength
    judged: Judged | None
    estimate: Estimate
    checked_at: datetime
    rechecked: bool
    stale: bool
    under_way: bool
    lines: tuple[DetectorDrift, ...]
    flags: Mapping[str, int]
    changes: tuple[str, ...] = ()
    by: str | None = None
    segment: str | None = None

    @property
    def drift(self) -> DriftState | None:
        """What is known of its scores; None where the report says nothing of it."""
        if not self.lines:
            return None
        states = {line.state for line in self.lines}
        pressing = next((state for state in _PRESSING if state in states), None)
        return pressing or max(self.lines, key=lambda line: line.traces).state

    @property
    def models(self) -> tuple[ModelSeen, ...]:
        """The models of the traffic since the release, most traffic first."""
        return tuple(ModelSeen(line.model, line.traces, line.unseen) for line in self.lines)

    @property
    def because(self) -> Because | None:
        """The most pressing reason to do something about it; None where there is none."""
        return next(self._reasons(), None)

    @property
    def due(self) -> Due | None:
        """What to do about it now."""
        due = _DUE[self.because] if self.because else None
        return Due.GATE if due == Due.RECHECK and self.by is not None and self.segment is None else due

    def _reasons(self) -> Iterator[Because]:
        if self.judged is not None and self.judged.state.known_bad:
            yield Because.FELL if self.judged.state.why == StateReason.RECHECK_FELL else Because.BAD
        if self.changes:
            yield Because.CHANGED
        if self.under_way:
            yield Because.UNDER_WAY
        # A recheck answers what moved scores ask, as long as it is not old itself.
        if self.drift == DriftState.MOVED and (self.stale or not self.rechecked):
            yield Because.MOVED
        if self.stale and self.promised is not None:
            yield Because.OVERDUE
        if self.drift in (DriftState.NOT_SCORED, DriftState.PARTLY_SCORED):
            yield Because.UNSCORED


_DUE = {
    Because.BAD: Due.CHOOSE,
    Because.FELL: Due.RECALIBRATE,
    Because.CHANGED: Due.RECALIBRATE,
    Because.UNDER_WAY: Due.RECHECK,
    Because.MOVED: Due.RECHECK,
    Because.OVERDUE: Due.RECHECK,
    Because.UNSCORED: Due.SCORE,
}


def live_thresholds(
    store: Store,
    *,
    judged: Sequence[Judged],
    report: Report | None,
    changes: Mapping[str, Sequence[str]],
    now: datetime,
) -> tuple[LiveThreshold, ...]:
    """Every threshold and ensemble of the live release that may flag, the one that needs most first.

    `judged` is what is known against each, `report` the drift report, `changes` what differs from the release in the
    detectors that changed.
    """
    release = next(iter(store.releases.list(limit=1)), None)
    if release is None:
        return ()
    file = read_release(release)
    entries = {name: entry for name, entry in sorted(file.detectors.items()) if entry.tier != "off"}
    build = _Builder(store, release, file, {state.name: state for state in judged}, report, now)
    rows = [build.detector(name, entry, changes.get(name, ())) for name, entry in entries.items()]
    rows += [build.ensemble(name, entry) for name, entry in file.live_ensembles]
    return tuple(sorted(rows, key=_urgency))


def _urgency(row: LiveThreshold) -> tuple[int, str]:
    because = row.because
    return list(Because).index(because) if because else len(Because), row.name


class _Builder:
    """What the rows have in common, read once."""

    def __init__(
        self,
        store: Store,
        release: Release,
        file: ThresholdsFile,
        judged: Mapping[str, Judged],
        report: Report | None,
        now: datetime,
    ) -> None:
        self.store, self.release, self.file, self.judged, self.now = store, release, file, judged, now
        self.lines = report.lines if report else ()
        alike = releases_alike(store, release)
        self.began, self.versions = alike[-1].released_at, {row.version for row in alike}
        self.points = points_of(store, file, until=release.released_at)
        newest = store.traces.summary().last
        since = newest - MONTH if newest else self.began
        self.last_day = store.decisions.last_day(since=since)
        self.flags = store.decisions.flags_per_day(since=since)

    def detector(self, name: str, entry: DetectorEntry, changes: Sequence[str]) -> LiveThreshold:
        rechecks = [recheck for recheck in self.store.rechecks.of(name) if recheck.version in self.versions]
        open_ones = [row for row in rechecks if row.outcome is None and row.version == self.release.version]
        checks = self._last_checks(rechecks, entry)
        checked_at, promised = min(checks.values()), promised_precision(entry)
        judged = self.judged.get(name)
        strength: Strength = "measured" if judged and judged.state.known_bad else entry.strength
        row = LiveThreshold(
            name=name, tier=entry.tier, ensemble=False, limit=entry.limits, promised=promised,
            strength=strength, judged=judged,
            estimate=self._of_recheck(rechecks, self.points.get(name)) or self._of_labels(name, entry, judged),
            checked_at=checked_at, rechecked=checked_at != self.began, stale=self.now - checked_at > CHECK_AFTER,
            under_way=bool(open_ones),
            lines=tuple(line for line in self.lines if line.detector == name), flags=self._flags(name),
            changes=tuple(changes), by=entry.segments.by if entry.segments else None,
        )  # fmt: skip
        if entry.segments is None or row.due != Due.GATE:
            return row
        under_way = traffic_of(open_ones[0])[1] if row.because == Because.UNDER_WAY else None
        return replace(row, segment=under_way or self._find_segment(name, entry.segments, checks))

    def _flags(self, name: str) -> Mapping[str, int]:
        """By day, up to the last day that was decided: quiet days after the last flag count too."""
        return ({self.last_day: 0} if self.last_day else {}) | self.flags.get(name, {})

    def _last_checks(self, rechecks: Sequence[Recheck], entry: DetectorEntry) -> dict[str | None, datetime]:
        """When each segment was last looked at; of a detector without segments, when it was, as that of None."""
        checks: dict[str | None, datetime] = dict.fromkeys(
            entry.segments.thresholds if entry.segments else [None], self.began
        )
        for recheck in rechecks:
            segment = traffic_of(recheck)[1]
            if recheck.finished_at is not None and segment in checks:
                checks[segment] = max(checks[segment], recheck.finished_at)
        return checks

    def _find_segment(self, name: str, segments: Segments, checks: Mapping[str | None, datetime]) -> str | None:
        """The segment that nobody has looked at for longest, of those that have flagged traces to draw; of several the
        one with most labels. None where none has any."""
        own = segments.thresholds
        return next(
            (
                segment
                for segment in sorted(own, key=lambda segment: (checks[segment], -own[segment].n, segment))
                if look(self.store, name, version=self.release.version, segment=segment, now=self.now).flagged
            ),
            None,
        )

    def ensemble(self, name: str, entry: EnsembleEntry) -> LiveThreshold:
        figures = entry.metrics
        estimate = Estimate(figures.precision, None, None, figures.n, figures.positives, None, self.release.released_at)
        return LiveThreshold(
            name=name, tier="signal" if entry.cuts.page is None else "page", ensemble=True, limit=None, promised=None,
            strength="measured", judged=self.judged.get(name), estimate=estimate, checked_at=self.began,
            rechecked=False, stale=False, under_way=False, lines=(), flags=self._flags(name),
        )  # fmt: skip

    def _of_recheck(self, rechecks: Sequence[Recheck], point: SavedPoint | None) -> Estimate | None:
        """The newest recheck of all traffic that has a definite label, if it is newer than the threshold."""
        for recheck in rechecks:
            if traffic_of(recheck) != (None, None) or (point is not None and recheck.started_at < point.chosen_at):
                continue
            state = rechecking.peek(self.store, recheck)
            if counted := state.hallucinated + state.clean:
                where = state.plan.where
                return Estimate(
                    state.standing.estimate, counted, state.hallucinated, state.counted, state.hallucinated,
                    where.since, where.until, recheck=True, open=not state.done,
                )  # fmt: skip
        return None

    def _of_labels(self, name: str, entry: DetectorEntry, judged: Judged | None) -> Estimate:
        """The labels that the threshold was chosen on, as they stand now where that is known."""
        point, metrics = self.points.get(name), entry.metrics
        since, until = (point.data.since, point.data.until or point.chosen_at) if point else (None, None)
        precision, flagged, hits = metrics.precision, None, None
        if judged is not None and judged.state.why not in _OF_JUDGED and judged.state.flagged:
            flagged, hits = judged.state.flagged, judged.state.hits
            if not entry.policy.startswith("recall") and judged.state.figure.value is not None:
                precision = judged.state.figure
        until = until or self.release.released_at
        return Estimate(precision, flagged, hits, metrics.n, metrics.positives, since, until)
