"""Which detectors can run on the traces at hand, known by looking at fields and settings: no model runs, nothing is
sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.external import is_external
from calibrate.errors import TouchstoneError
from calibrate.runtime.planning import revision_of
from calibrate.workflow.detection import detectors as step
from calibrate.workflow.detection.detectors import Coverage, Plan
from calibrate.workflow.detection.outcomes import Failure, failures
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import using
from db import Store
from db.runs import Run
from db.scores import Config


class Group(StrEnum):
    """Whether a detector can run now; if not, what stands in its way, or that its scores come from elsewhere."""

    READY = "ready"
    LACKS = "traces lack"
    SETUP = "needs setup"
    IMPORTED = "imported"  # nobody runs it


class Standing(StrEnum):
    """How far the scores of a detector are, as it would run now."""

    NEVER = "never run"
    CHANGED = "changed"  # its model, prompt or list is another than that of the scores
    SETTINGS = "other settings"  # scored with other parameters
    WAITING = "waiting"  # some traces were not asked about yet
    FAILED = "failed"  # nothing is left but what failed
    DONE = "done"


@dataclass(frozen=True)
class Readiness:
    """What is known of one detector before it runs over the `total` traces of a scope.

    `able` of them it may score: they have every field that it reads, and as far as it was run it neither abstained nor
    met a refusal. `lacks` counts, by field, the traces without it. `how` says how to set it up. `silent` is why it
    scored nothing although it was run on all. `failure` is that of its newest run, where it failed on every trace;
    `run` has the number of that run. `settings` are those parameters of `detector` that differ from the usual ones,
    where it cannot run with these and has scores with others.
    """

    detector: Detector
    group: Group
    total: int
    able: int
    lacks: Mapping[str, int]
    how: str | None
    standing: Standing
    coverage: Coverage
    plan: Plan
    silent: str | None = None
    failure: Failure | None = None
    run: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_due(self) -> bool:
        """Whether a run is suggested: it can run, has no scores yet or stale ones, and costs nothing."""
        wants = self.standing not in (Standing.DONE, Standing.FAILED)
        return self.group == Group.READY and wants and self.failure is None and not step.asks_chat(self.detector)


@dataclass(frozen=True)
class Total:
    """What a run of several detectors would take; `untimed` of them were never measured, `unpriced` have no price."""

    seconds: float = 0.0
    untimed: int = 0
    cost: float = 0.0
    asks: int = 0
    unpriced: int = 0


@dataclass
class _Facts:
    """What the store holds of a scope, read once for all detectors."""

    total: int
    fields: Counter[frozenset[str]]
    tallies: Mapping[int, Any]
    configs: Mapping[str, list[Config]] = field(default_factory=dict)
    runs: Sequence[Run] = ()


def readiness(
    store: Store, scope: Mapping[str, Any], detectors: Sequence[Detector] | None = None
) -> tuple[Readiness, ...]:
    """Look at every detector, or at these with their parameters, in the order of their titles.

    One that cannot run as it comes, for want of a model, and that has scores by a model that its parameters named, is
    looked at with those parameters.

    Raises BadInput for an unknown sample.
    """
    chosen = [registry.make(name) for name in registry.names()] if detectors is None else detectors
    selection = step.make_selection(store, scope)
    tallies = store.coverage.tallies(**selection)
    configs: dict[str, list[Config]] = {}
    for config in store.scores.get_configs(list(tallies)).values():
        configs.setdefault(config.name, []).append(config)
    facts = _Facts(
        step.size_of(store, scope), store.coverage.fields(**selection), tallies, configs, store.runs.recent(step.RUNS)
    )
    with using(workspace_of(store)):
        rows = [_look(store, scope, detector, facts) for detector in chosen]
    return tuple(sorted(rows, key=lambda row: row.detector.title.casefold()))


def total_of(rows: Sequence[Readiness]) -> Total:
    """Add up what a run of these would take."""
    asking = [row.plan.estimate for row in rows if row.plan.estimate is not None]
    costs = [estimate.cost for estimate in asking]
    return Total(
        seconds=sum(row.plan.seconds or 0.0 for row in rows),
        untimed=sum(row.plan.seconds is None for row in rows),
        cost=sum(cost or 0.0 for cost in costs),
        asks=len(asking),
        unpriced=sum(cost is None for cost in costs),
    )


def by_cause(rows: Sequence[Readiness]) -> dict[str, list[Readiness]]:
    """The detectors that need setup, by what they need: one cause, however many wait for it."""
    causes: dict[str, list[Readiness]] = {}
    for row in rows:
        if row.group == Group.SETUP:
            causes.setdefault(row.how or "", []).append(row)
    return causes


def by_field(rows: Sequence[Readiness]) -> dict[str, list[Readiness]]:
    """The detectors that these traces cannot feed, by the field that fewest traces have; "" where they have all of
    them, and yet nothing could be scored."""
    fields: dict[str, list[Readiness]] = {}
    for row in rows:
        if row.group == Group.LACKS:
            missing = max(sorted(row.lacks), key=lambda name: row.lacks[name]) if row.lacks else ""
            fields.setdefault(missing, []).append(row)
    return fields


def _look(store: Store, scope: Mapping[str, Any], detector: Detector, facts: _Facts) -> Readiness:
    detector, settings = _as_scored(detector, facts)
    needs = detector.needs | getattr(type(detector), "also_needs", frozenset())
    complete = sum(n for present, n in facts.fields.items() if needs <= present)
    lacks = {need: sum(n for present, n in facts.fields.items() if need not in present) for need in sorted(needs)}
    status = step.status_here(detector)
    mine = facts.configs.get(detector.name, [])
    config = None if status.how else _find_config(detector, mine)
    covered = step.make_coverage(facts.total, *([facts.tallies[config.id].counts] if config else []))
    silent = _why_silent(covered) if config and complete else None
    group = Group.SETUP if status.how else Group.READY
    if not complete or silent:
        group = Group.LACKS
    if status.state == "imported":
        group = Group.IMPORTED
    failure = _failure_of(facts.runs, detector) if not covered.scored else None
    plan = Plan(covered.to_do)
    if group == Group.READY and covered.to_do:
        plan = step.plan(store, detector, scope, covered)
    return Readiness(
        detector=detector,
        group=group,
        total=facts.total,
        able=covered.scored if group == Group.IMPORTED else min(complete, covered.scored + covered.to_do),
        lacks={name: n for name, n in lacks.items() if n},
        how=status.how,
        standing=_standing(detector, config, mine, covered),
        coverage=covered,
        plan=plan,
        silent=silent,
        failure=failure[1] if failure else None,
        run=failure[0] if failure else None,
        settings=settings,
    )


def _as_scored(detector: Detector, facts: _Facts) -> tuple[Detector, Mapping[str, Any]]:
    """The detector, or the one that its newest scores here are of, with what sets that apart."""
    usual = registry.config_of(detector)
    configs = facts.configs.get(detector.name, [])
    scored = [config for config in configs if any(key[0] == "scored" for key in facts.tallies[config.id].counts)]
    if not scored or detector.unavailable() is None or registry.config_of(registry.make(detector.name)) != usual:
        return detector, {}
    for config in sorted(scored, key=lambda config: facts.tallies[config.id].last, reverse=True):
        try:
            other = registry.make(config.name, config.params)
        except TouchstoneError:  # a parameter that this version lacks
            continue
        if other.unavailable() is None:
            return other, {name: value for name, value in config.params.items() if usual.get(name) != value}
    return detector, {}


def _find_config(detector: Detector, configs: Sequence[Config]) -> Config | None:
    """The configuration that a run now would add scores to."""
    now = (detector.version, registry.config_of(detector), revision_of(detector))
    return next((config for config in configs if (config.version, dict(config.params), config.revision) == now), None)


def _standing(detector: Detector, config: Config | None, others: Sequence[Config], covered: Coverage) -> Standing:
    if config is None:
        if not others or is_external(detector):
            return Standing.NEVER
        same = any(dict(other.params) == registry.config_of(detector) for other in others)
        return Standing.CHANGED if same else Standing.SETTINGS
    if covered.waiting:
        return Standing.WAITING
    return Standing.FAILED if covered.failed else Standing.DONE


def _why_silent(covered: Coverage) -> str | None:
    """Why a detector that was run on every trace could score none, though nothing failed."""
    if not covered.total or covered.scored or covered.to_do:
        return None
    return next(iter(covered.why), None)


def _failure_of(runs: Sequence[Run], detector: Detector) -> tuple[int, Failure] | None:
    """What the newest run with this detector says, where it failed on every trace."""
    for run in runs:
        if detector.name in run.counts:
            broken = (failure for failure in failures(run) if failure.detector == detector.name)
            failure = next(broken, None)
            return (run.id, failure) if failure else None
    return None
