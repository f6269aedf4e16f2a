"""What a recalibration is based on: the live release's detectors as they would run today, and the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.external import is_external
from calibrate.errors import BadInput
from calibrate.runtime.planning import revision_of
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.scoring import utc_now
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workflow.evidence.basis import Caution, choose_basis, samples_with_labels
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.releasing import history
from calibrate.workflow.sampling.sizing import FEW
from calibrate.workflow.watching import recheck as rechecks
from calibrate.workspace import using
from db import Store
from db.releases import Release
from db.runs import Run
from db.scores import Config


@dataclass(frozen=True)
class Due:
    """A detector of the live release as it would run today. `changes` lists what differs from the release, as "version
    1 → 2"; empty where nothing does. `missing` says why it cannot run here. `waiting` of the labelled traces lack a
    score of it."""

    name: str
    entry: DetectorEntry
    detector: Detector | None
    config: Config | None
    changes: tuple[str, ...]
    missing: str | None
    waiting: int


@dataclass(frozen=True)
class Plan:
    """What a recalibration is based on: the live release, its detectors, and the labels.

    The labels are of `sample`, which may be several as one, or (None) all there are. `new_labels` of them are unknown
    to the release, and so are `new_models`. `caution`: why they do not describe
    the traffic, so that nothing is chosen on them.
    `fallen`: the rechecks that found its precision below the target.
    """

    release: Release
    file: ThresholdsFile
    sample: Sample | None
    due: tuple[Due, ...]
    labels: int
    new_labels: int
    new_models: tuple[str, ...]
    caution: Caution | None
    fallen: tuple[rechecks.State, ...]

    @property
    def sample_names(self) -> tuple[str, ...] | None:
        return self.sample.names if self.sample else None

    @property
    def upgraded(self) -> tuple[Due, ...]:
        """The detectors that are no longer what the release was made with."""
        return tuple(due for due in self.due if due.changes)

    @property
    def waiting(self) -> int:
        """The scores that are missing before thresholds can be chosen."""
        return sum(due.waiting for due in self.due)


def plan(store: Store, *, sample: str | Sequence[str] | None = None, params: Mapping[str, Any] | None = None) -> Plan:
    """Find out what there is to recalibrate. Computes no score.

    `params` are for those detectors that have a parameter of that name; without, they stay those of the release.
    Without a `sample` the labels are the newest sample's if it is newer than the release's, else those of the release.
    Raises BadInput where nothing is released, and for a parameter that no detector has.
    """
    release = next(iter(store.releases.list()), None)
    if release is None:
        raise BadInput("nothing is released yet, so there is nothing to recalibrate: `choose` and `release` come first")
    file = history.read_release(release)
    detectors = tuple(due_of(store, name, entry, params or {}) for name, entry in sorted(file.detectors.items()))
    for name in params or {}:
        if not any(due.detector and name in registry.config_of(due.detector) for due in detectors):
            raise BadInput(f"none of {', '.join(file.detectors)} has a parameter {name!r}; `detectors` lists them")
    basis = choose_basis(store, sample or _choose_samples(store, release, file))
    rows = count_labels(store, NOBODY, basis.sample).rows
    flagged_only = set() if basis.sample else store.labels.of_flagged_only()
    models = {row.model for row in rows if row.model and row.pk not in flagged_only} - set(file.data.models)
    fresh = store.labels.decided_since(release.released_at)
    return Plan(
        release=release,
        file=file,
        sample=basis.sample,
        due=detectors,
        labels=len(rows),
        new_labels=sum(row.pk in fresh for row in rows),
        new_models=tuple(sorted(models)),
        caution=basis.caution,
        fallen=rechecks.fallen(store, release.version),
    )


def queue(store: Store, plan: Plan, *, budget: float | None = None) -> Run | None:
    """Queue the run that gives every labelled trace its new scores; None where none is missing. `budget`: US dollars
    that its requests to a chat endpoint may cost; None for no limit.
    """
    if budget is not None and not 0 <= budget < float("inf"):
        raise BadInput(f"the budget cannot be {budget}; it is a number of US dollars, 0 or more")
    specs = [
        {"name": due.name, "params": registry.config_of(due.detector)}
        for due in plan.due
        if due.detector is not None and due.waiting
    ]
    options = None if budget is None else {"budget": budget}
    scope = detect.scope_of(labelled=True)
    return store.runs.queue(specs, scope, options=options, now=utc_now()) if specs else None


def _choose_samples(store: Store, release: Release, file: ThresholdsFile) -> list[str] | None:
    """The samples whose labels count: the release's, or the newest where it is newer; None for every label."""
    released = [name for name in history.sample_names(file.data) if store.samples.get(name)]
    guides = (sample for sample in samples_with_labels(store) if len(count_labels(store, NOBODY, sample).rows) >= FEW)
    newest = next(guides, None)
    if newest is None or newest.name in released:
        return released or None
    # Points of several samples name none; and where labels of no sample chose, an older sample is no better guide.
    several = not released and bool(file.data.samples)
    return [newest.name] if several or newest.created_at > release.released_at else released or None


def find_changes(store: Store, file: ThresholdsFile) -> dict[str, tuple[str, ...]]:
    """What differs between the detectors of a release and what would run today, of those that differ. Writes nothing,
    as everybody's home page says it; a detector that cannot run here is left out."""
    changes = {}
    for name, entry in file.detectors.items():
        with suppress(BadInput), using(workspace_of(store)):
            detector = _make_today(name, entry, {})
            if is_external(detector) or not detector.unavailable():
                params, revision = registry.config_of(detector), revision_of(detector)
                changes[name] = differences(entry, Config(0, name, detector.version, params, revision))
    return {name: differs for name, differs in changes.items() if differs}


def _make_today(name: str, entry: DetectorEntry, params: Mapping[str, Any]) -> Detector:
    """A parameter that the detector no longer has goes, and one that is new takes its default."""
    names = {parameter.name for parameter in registry.parameters(registry.get(name))}
    values = {key: value for key, value in {**entry.params, **params}.items() if key in names}
    return registry.make(name, values)


def due_of(store: Store, name: str, entry: DetectorEntry, params: Mapping[str, Any]) -> Due:
    """The released detector with the parameters of its entry, but for `params` that it has."""
    try:
        detector = _make_today(name, entry, params)
    except BadInput as error:  # not installed here, or a value that it no longer takes
        return Due(name, entry, None, None, (), str(error), 0)
    with using(workspace_of(store)):
        missing = None if is_external(detector) else detector.unavailable()
    if missing:
        return Due(name, entry, detector, None, (), missing, 0)
    config = store.scores.get_config(detect.config_id(store, detector))
    if is_external(detector):  # what it lacks, nobody can compute
        return Due(name, entry, detector, config, differences(entry, config), None, 0)
    waiting = len(store.traces.lacking(TraceFilter(label="labelled"), [config.id]))
    return Due(name, entry, detector, config, differences(entry, config), None, waiting)


def differences(entry: DetectorEntry, config: Config) -> tuple[str, ...]:
    """List how a detector differs from its entry in the release, as "version 1 → 2"."""
    pairs: list[tuple[str, Any, Any]] = [("version", entry.version, config.version)]
    pairs.append(("revision", entry.revision or "none", config.revision or "none"))
    for name in sorted({*entry.params, *config.params}):
        pairs.append((name, entry.params.get(name, "none"), config.params.get(name, "none")))
    return tuple(f"{name} {_shorten(before)} → {_shorten(after)}" for name, before, after in pairs if before != after)


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:24]}…{text[-12:]}"
