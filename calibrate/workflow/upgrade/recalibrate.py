"""Recalibrate: choose thresholds again, by the same policies, after a detector or a model changed.

The labels stay: a detector's new version is run on the traces that have gold labels already. Its old scores stay too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.intervals.sweep_intervals import Figures, figures
from calibrate.thresholds import Change, diff
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.thresholds.signing import Signer
from calibrate.thresholds.states import Judged, states_in
from calibrate.types import OperatingPoint, Segments
from calibrate.workflow.certification.attempts import Overturned, overturned
from calibrate.workflow.evidence import loading, traffic
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing import approval as approving
from calibrate.workflow.releasing import regression_guard
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.by_segment import as_released
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.releasing.impact import Impact, impact
from calibrate.workflow.releasing.regression_guard import Check
from calibrate.workflow.releasing.release import Out
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.segments import Segmented, segment_labels
from calibrate.workflow.upgrade.planning import Due, Plan
from db import Store
from db.points import SavedPoint
from db.releases import Proposal, Release, ReleaseRequest

SAME = "same"


@dataclass(frozen=True)
class Stays:
    """Why a detector keeps its threshold. It cannot run here, or nothing can be chosen: `error` then says why. Nothing
    of it changed, and its certificate holds, or is `overturned` by its labels. No threshold meets its policy: `nearest`
    is what comes nearest."""

    reason: Literal["cannot run", "no choice", "certificate holds", "certificate overturned", "unmet"]
    error: str = ""
    nearest: OperatingPoint | None = None
    overturned: Overturned | None = None


@dataclass(frozen=True)
class Redone:
    """One detector, before and after, on the same labels.

    `stood` is what the release's threshold does on the old scores there; None where those are not kept. `point` is the
    new one, with the figures of the new `segments` where the detector had thresholds per segment and they gain again;
    without it `stays` says why the detector stays as it is. `remark` is what to know of the point: it has no
    certificate any more, or was set by hand for other scores.
    """

    due: Due
    before: Evidence | None
    after: Evidence | None
    stood: Figures | None
    point: OperatingPoint | None
    stays: Stays | None = None
    remark: Literal["certificate lost", "set by hand"] | None = None
    segments: Segments | None = None

    @property
    def drops_segments(self) -> bool:
        """Whether the new point has one threshold for all where the release has thresholds per segment."""
        return self.point is not None and self.due.entry.segments is not None and self.segments is None


@dataclass(frozen=True)
class Outcome:
    """`changes` are what the candidate changes against the live release; none: there is nothing to release. `impact`
    says what that does to flags a day, and what gets worse. `left_out` are ensembles of the live release that were made
    from scores which have changed."""

    plan: Plan
    redone: tuple[Redone, ...]
    candidate: ThresholdsFile | None
    changes: tuple[Change, ...]
    impact: Impact | None
    left_out: tuple[str, ...]

    @property
    def worse(self) -> tuple[Check, ...]:
        """The points that are worse than the live ones on the same labels."""
        return self.impact.worse if self.impact else ()

    @property
    def known_bad(self) -> tuple[Judged, ...]:
        """The thresholds of the candidate that are known to be bad, and have no reason yet."""
        states = states_in(self.candidate) if self.candidate and self.changes else ()
        return tuple(judged for judged in states if judged.state.known_bad and not judged.reason)

    @property
    def needs_reason(self) -> bool:
        return bool(self.worse) or bool(self.known_bad)


def redo(store: Store, plan: Plan, *, policy: str = SAME) -> tuple[Redone, ...]:
    """Choose every detector's point again, by the policy of its entry or by `policy` for all."""
    chosen = None if policy == SAME else parse(policy)
    return tuple(_redo(store, plan, due, chosen) for due in plan.due)


def look(store: Store, plan: Plan, redone: Sequence[Redone], *, by: str, now: datetime) -> Outcome:
    """Work out what a release of the new points would hold and change. Stores nothing."""
    request = _make_request(plan, by=by)
    left_out = tuple(sorted(set(plan.file.ensembles) - set(request.ensembles)))
    proposed = _make_proposals(store, redone, by=by, now=now)
    if not proposed:
        return Outcome(plan, tuple(redone), None, (), None, left_out)
    points = {**store.points.latest(), **proposed}
    candidate = build_candidate(store, request, points=points, previous=plan.file, now=now)
    changes = tuple(diff(plan.file, candidate))
    effect = impact(store, plan.file, candidate, points) if changes else None
    return Outcome(plan, tuple(redone), candidate, changes, effect, left_out)


def release(
    store: Store,
    outcome: Outcome,
    *,
    note: str,
    reason: str = "",
    by: str,
    now: datetime,
    out: Out | None = None,
    approval: bool = False,
    sign: Signer = None,
) -> Release | Proposal:
    """Save the new points and release them, or with `approval` propose them to a second person.

    Raises BadInput, and keeps nothing, where nothing changes, somebody released in the meantime, or without a `reason`
    where a point is worse than the live one on the same labels.
    """
    plan = outcome.plan
    if outcome.candidate is None or not outcome.changes:
        raise BadInput(f"nothing changes against v{plan.release.version}: it stands as it is")
    if outcome.worse and not reason:
        raise regression_guard.refusal(outcome.worse, "Take another policy, or say why it shall be so: `--reason TEXT`")
    newest = store.releases.list(limit=1)[0].version
    if newest != plan.release.version:
        raise BadInput(f"version {newest} was released in the meantime: look at what it changed, then go on")
    request = _make_request(plan, note=note, reason=reason, by=by)
    proposed = _make_proposals(store, outcome.redone, reason=reason, by=by, now=now)
    points = {**store.points.latest(), **proposed}
    if approval:
        result: Release | Proposal = approving.propose(store, request, now=now, expect=newest + 1, points=points)
    else:
        result = releasing.release(store, request, now=now, out=out, expect=newest + 1, points=points, sign=sign)
    for point in proposed.values():  # now that nothing can refuse them: a later release takes what is saved
        store.points.save(point)
    return result


def _make_proposals(
    store: Store, redone: Sequence[Redone], *, reason: str = "", by: str, now: datetime
) -> dict[str, SavedPoint]:
    """The new points, not saved yet."""
    proposals = {}
    for row in redone:
        if row.point is not None and row.after is not None:
            saved = operating_points.saved_point(store, row.after, row.point, reason=reason, by=by, now=now)
            proposals[row.due.name] = replace(saved, data=replace(saved.data, segments=row.segments))
    return proposals


def _redo(store: Store, plan: Plan, due: Due, policy: Policy | None) -> Redone:
    before = _load_old_scores(store, plan, due)
    stood = _figures_before(store, due.entry, before) if before and not before.sweep.missing else None
    if due.config is None:
        return Redone(due, before, None, stood, None, Stays("cannot run", error=str(due.missing)))
    after = loading.load_evidence(store, due.name, sample=plan.sample_names, config=due.config)
    if due.entry.strength == "certified" and not due.changes and policy is None:
        lost = overturned(store, due.name, due.entry.guarantee) if due.entry.guarantee else None
        stays = Stays("certificate overturned", overturned=lost) if lost else Stays("certificate holds")
        return Redone(due, before, after, stood, None, stays)
    try:
        point = _choose_point(store, after, policy or parse(due.entry.policy), due.entry)
    except BadInput as error:
        return Redone(due, before, after, stood, None, Stays("no choice", error=str(error)))
    if not point.feasible:
        return Redone(due, before, after, stood, None, Stays("unmet", nearest=point))
    again = _choose_segments(store, after, point, due.entry)
    if again is not None and again.own_point is not None:
        return Redone(due, before, after, stood, again.own_point, None, _find_remark(due, point), again.segments)
    return Redone(due, before, after, stood, point, None, _find_remark(due, point))


def _figures_before(store: Store, entry: DetectorEntry, before: Evidence) -> Figures:
    data, threshold = as_released(store, entry, before)
    return figures(data.sweep, threshold)


def _choose_point(store: Store, data: Evidence, policy: Policy, entry: DetectorEntry) -> OperatingPoint:
    """Choose a point with the guarantee of its entry, its error shared among as many looks; for a certified one a bound
    if the labels allow it, else measured.
    """
    stood, looks = entry.strength, operating_points.looks_of(entry.guarantee)
    pool = (traffic.scored_traffic if policy.kind == "alerts" else traffic.counted_traffic)(store, data)
    if stood == "measured" or policy.kind != "precision":
        return operating_points.choose_point(data, policy, pool=pool)
    point = operating_points.choose_point(data, policy, strength="bounded", pool=pool, looks=looks)
    return point if point.feasible or stood == "bounded" else operating_points.choose_point(data, policy, pool=pool)


def _choose_segments(store: Store, data: Evidence, point: OperatingPoint, entry: DetectorEntry) -> Segmented | None:
    """Thresholds per segment for a detector that has them, by the policy of its new point; None where they do not gain
    on these labels, the policy chooses none, or a guarantee is of one threshold."""
    if entry.segments is None or point.guarantee is not None:
        return None
    try:
        segmented = segment_labels(store, data, parse(point.policy), by=entry.segments.by)
    except BadInput:
        return None
    return segmented if segmented.offered else None


def _find_remark(due: Due, point: OperatingPoint) -> Literal["certificate lost", "set by hand"] | None:
    if due.entry.strength == "certified":
        return "certificate lost"
    return "set by hand" if due.changes and point.policy.startswith("manual") else None


def _load_old_scores(store: Store, plan: Plan, due: Due) -> Evidence | None:
    """The same labels with the scores that the release was made with."""
    config = regression_guard.config_of(store, due.name, due.entry) if due.name in registry.names() else None
    if config is None:
        return None
    data = loading.load_evidence(store, due.name, sample=plan.sample_names, config=config)
    return data if any(row.value is not None for row in data.rows) else None


def _make_request(plan: Plan, *, note: str = "", reason: str = "", by: str) -> ReleaseRequest:
    """All that is live, without ensembles that were made from scores which have changed."""
    changed = {due.name for due in plan.upgraded}
    ensembles = [name for name, entry in plan.file.ensembles.items() if not changed & set(entry.members)]
    return ReleaseRequest(
        detectors=sorted(plan.file.detectors), ensembles=sorted(ensembles), note=note, reason=reason, by=by
    )
