"""Recalibrate: after a detector or a model changed, the thresholds anew under the policies they were chosen by.

The labels stay: a detector's new version is run on the traces that have gold labels already. Its old scores stay too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.choosing.policies import Policy, parse
from calibrate.stats.intervals.sweep_intervals import Figures, figures
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.thresholds import Change, diff
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import OperatingPoint, Sample, Strength
from calibrate.workflow.certification import attempts
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import evidence, loading, traffic
from calibrate.workflow.evidence.loading import Uneven
from calibrate.workflow.releasing import approval as approving
from calibrate.workflow.releasing import history, regression_guard
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.releasing.impact import Impact, impact
from calibrate.workflow.releasing.regression_guard import Check
from calibrate.workflow.releasing.release import Out
from calibrate.workflow.sampling.sizing import FEW
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.upgrade.models_seen import NOBODY
from calibrate.workflow.upgrade.upgraded import Due as Due
from calibrate.workflow.upgrade.upgraded import due_of
from calibrate.workflow.watching import recheck as rechecks
from db import Store
from db.proposals import Proposal, ReleaseRequest
from db.releases import Release, SavedPoint
from db.runs import Run

SAME = "same"


@dataclass(frozen=True)
class Plan:
    """What a recalibration would go by: the live release, its detectors, and the labels: a sample, several as one, or
    (None) all there are. `new_labels` of its `labels` are unknown to the release, and so are `new_models`. `caution`:
    what to know of labels that stand for the traffic and were not drawn to. `fallen`: the rechecks that found its
    precision below the target."""

    release: Release
    file: ThresholdsFile
    sample: Sample | None
    due: tuple[Due, ...]
    labels: int
    new_labels: int
    new_models: tuple[str, ...]
    uneven: Uneven | None
    fallen: tuple[rechecks.State, ...]

    @property
    def asked(self) -> list[str] | None:
        """The names of the samples."""
        return list(attempts.first_names(self.sample)) or None

    @property
    def upgraded(self) -> tuple[Due, ...]:
        """The detectors that are no longer what the release was made with."""
        return tuple(one for one in self.due if one.changes)

    @property
    def waiting(self) -> int:
        """The scores that are missing before thresholds can be chosen."""
        return sum(one.waiting for one in self.due)


@dataclass(frozen=True)
class Redone:
    """One detector, before and after, on the same labels. `stood` is what the release's threshold does on the old
    scores there; None where those are not kept. `point` is the new one; without it `why` says why the detector stays as
    it is. `remark` is what to know of the point."""

    due: Due
    before: evidence.Evidence | None
    after: evidence.Evidence | None
    stood: Figures | None
    point: OperatingPoint | None
    why: str | None = None
    remark: str | None = None


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
    def needs_reason(self) -> bool:
        return bool(self.worse) or (self.plan.uneven is not None and bool(self.changes))


def plan(store: Store, *, sample: str | Sequence[str] | None = None, params: Mapping[str, Any] | None = None) -> Plan:
    """What stands to be recalibrated. Computes no score.

    `params` are for those detectors that have a parameter of that name; without, they stay those of the release.
    Without a `sample` the labels are the newest sample's if it is newer than the release's, else those of the release.
    Raises BadInput where nothing is released, and for a parameter that no detector has.
    """
    release = next(iter(store.releases.list()), None)
    if release is None:
        raise BadInput("nothing is released yet, so there is nothing to recalibrate: `choose` and `release` come first")
    file = history.read_release(release)
    names = _as_list(sample) if sample else _labels_of(store, release, file)
    due = tuple(due_of(store, name, entry, params or {}) for name, entry in sorted(file.detectors.items()))
    for name in params or {}:
        if not any(one.detector and name in registry.config_of(one.detector) for one in due):
            raise BadInput(f"none of {', '.join(file.detectors)} has a parameter {name!r}; `detectors` lists them")
    drawn = loading.resolve_sample(store, names)
    rows = loading.gold_rows(store, NOBODY, drawn)
    flagged_only = set() if drawn else store.labels.of_flagged_only()
    models = {row.model for row in rows if row.model and row.pk not in flagged_only} - set(file.data.models)
    fresh = store.labels.decided_since(release.released_at)
    new = sum(row.pk in fresh for row in rows)
    known = loading.uneven_labels(store, drawn), rechecks.fallen(store, release.version)
    return Plan(release, file, drawn, due, len(rows), new, tuple(sorted(models)), *known)


def queue(store: Store, plan: Plan, *, budget: float | None = None) -> Run | None:
    """Puts the run in the store that gives every labelled trace its new scores; None where none is missing. `budget`:
    US dollars that its requests to a chat endpoint may cost; None for no limit."""
    if budget is not None and not 0 <= budget < float("inf"):
        raise BadInput(f"the budget cannot be {budget}; it is a number of US dollars, 0 or more")
    specs = [
        {"name": one.name, "params": registry.config_of(one.detector)}
        for one in plan.due
        if one.detector is not None and one.waiting
    ]
    options = None if budget is None else {"budget": budget}
    scope = detect.scope_of(labelled=True)
    return store.runs.queue(specs, scope, options=options, now=detect.utc_now()) if specs else None


def redo(store: Store, plan: Plan, *, policy: str = SAME) -> tuple[Redone, ...]:
    """Chooses every detector's point anew, under the policy of its entry or under `policy` for all."""
    chosen = None if policy == SAME else parse(policy)
    return tuple(_redo(store, plan, one, chosen) for one in plan.due)


def look(store: Store, plan: Plan, redone: Sequence[Redone], *, by: str, now: datetime) -> Outcome:
    """What a release of the new points would hold and change. Keeps nothing."""
    request = _request(plan, by=by)
    left_out = tuple(sorted(set(plan.file.ensembles) - set(request.ensembles)))
    proposed = _proposed(store, redone, by=by, now=now)
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
) -> Release | Proposal:
    """Keeps the new points and releases them, or with `approval` proposes them to a second person.

    Raises BadInput, and keeps nothing, where nothing changes, somebody released in the meantime, or without a `reason`
    where a point is worse than the live one on the same labels, or the labels were not drawn to stand for the traffic.
    """
    plan = outcome.plan
    if outcome.candidate is None or not outcome.changes:
        raise BadInput(f"nothing changes against v{plan.release.version}: it stands as it is")
    if plan.uneven is not None and not reason:
        chosen, total, designs = plan.uneven.chosen, plan.uneven.total, ", ".join(plan.uneven.designs)
        raise BadInput(
            f"{chosen:,} of these {total:,} labels were not drawn at random (designs: {designs}): take other labels "
            "(`--sample`), or say why it shall be so: `--reason TEXT`"
        )
    if outcome.worse and not reason:
        raise regression_guard.refusal(outcome.worse, "Take another policy, or say why it shall be so: `--reason TEXT`")
    newest = store.releases.list(limit=1)[0].version
    if newest != plan.release.version:
        raise BadInput(f"version {newest} was released in the meantime: look at what it changed, then go on")
    request = _request(plan, note=note, reason=reason, by=by)
    proposed = _proposed(store, outcome.redone, by=by, now=now)
    points = {**store.points.latest(), **proposed}
    if approval:
        result: Release | Proposal = approving.propose(store, request, now=now, expect=newest + 1, points=points)
    else:
        result = releasing.release(store, request, now=now, out=out, expect=newest + 1, points=points)
    for point in proposed.values():  # now that nothing can refuse them: a later release takes what is saved
        store.points.save(point)
    return result


def _proposed(store: Store, redone: Sequence[Redone], *, by: str, now: datetime) -> dict[str, SavedPoint]:
    """The new points, not saved yet."""
    return {
        row.due.name: operating_points.saved_point(store, row.after, row.point, by=by, now=now)
        for row in redone
        if row.point is not None and row.after is not None
    }


def _as_list(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _labels_of(store: Store, release: Release, file: ThresholdsFile) -> list[str] | None:
    """The samples whose labels count: the release's, or the newest where it is newer; None for every label."""
    stood = [name for name in history.sample_names(file.data) if store.samples.get(name)]
    newest = next((one for one in store.samples.list() if speaks_for_all(one) and _definite(store, one) >= FEW), None)
    if newest is None or newest.name in stood:
        return stood or None
    # Points of several samples name none; and where labels of no sample chose, an older sample is no better guide.
    several = not stood and bool(file.data.samples)
    return [newest.name] if several or newest.created_at > release.released_at else stood or None


def _definite(store: Store, sample: Sample) -> int:
    gold = store.labels.gold_counts(sample.id)
    return gold.get("clean", 0) + gold.get("hallucinated", 0)


def _redo(store: Store, plan: Plan, due: Due, policy: Policy | None) -> Redone:
    before = _before(store, plan, due)
    stood = figures(before.sweep, due.entry.threshold) if before and not before.sweep.missing else None
    if due.config is None:
        return Redone(due, before, None, stood, None, f"it cannot run here: {due.missing}")
    after = loading.load_evidence(store, due.name, sample=plan.asked, config=due.config)
    if due.entry.strength == "certified" and not due.changes and policy is None:
        return Redone(due, before, after, stood, None, "nothing of it changed, and its certificate stands")
    try:
        point = _point(store, after, policy or parse(due.entry.policy), due.entry.strength)
    except BadInput as error:
        return Redone(due, before, after, stood, None, str(error))
    if not point.feasible:
        return Redone(due, before, after, stood, None, str(point.why))
    return Redone(due, before, after, stood, point, None, _remark(due, point))


def _point(store: Store, data: evidence.Evidence, policy: Policy, stood: Strength) -> OperatingPoint:
    """As sure as the entry was; what was certified is bounded where the labels allow it, else measured."""
    pool = traffic.scored_traffic(store, data) if policy.kind == "alerts" else None
    if stood == "measured" or policy.kind != "precision":
        return operating_points.choose_point(data, policy, pool=pool)
    point = operating_points.choose_point(data, policy, strength="bounded")
    return point if point.feasible or stood == "bounded" else operating_points.choose_point(data, policy)


def _remark(due: Due, point: OperatingPoint) -> str | None:
    if due.entry.strength == "certified":
        return (
            "its certificate was for the old scores and cannot be carried over: the new threshold is "
            f"{point.strength}; `certify {due.name}` is next"
        )
    if due.changes and point.policy.startswith("manual"):
        return (
            "its threshold was set by hand for the old scores and is kept as it is: look whether it still means the "
            "same, or choose by a rule (`--policy precision>=0.7`)"
        )
    return None


def _before(store: Store, plan: Plan, due: Due) -> evidence.Evidence | None:
    """The same labels with the scores that the release was made with."""
    config = regression_guard.config_of(store, due.name, due.entry) if due.name in registry.names() else None
    if config is None:
        return None
    found = loading.load_evidence(store, due.name, sample=plan.asked, config=config)
    return found if any(row.value is not None for row in found.rows) else None


def _request(plan: Plan, *, note: str = "", reason: str = "", by: str) -> ReleaseRequest:
    """All that is live, without ensembles that were made from scores which have changed."""
    changed = {due.name for due in plan.upgraded}
    ensembles = [name for name, entry in plan.file.ensembles.items() if not changed & set(entry.members)]
    return ReleaseRequest(
        detectors=sorted(plan.file.detectors), ensembles=sorted(ensembles), note=note, reason=reason, by=by
    )
