"""Detectors: whether each can run here, what it has scored of the traces at hand, what a run would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np

from calibrate import registry
from calibrate.backends import files
from calibrate.backends.chat import Estimate, chat
from calibrate.backends.text.refusals import find_refusal
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.external import is_external
from calibrate.engines.choice import EngineChoice, choose_engine
from calibrate.errors import BadInput
from calibrate.runtime.planning import revision_of
from calibrate.types import Sample, TraceFilter, Usage
from calibrate.workflow.detection.detect import config_id, no_sample, scope_of
from calibrate.workflow.detection.scoring import count_workers
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import use, using
from db import Store
from db.runs import ENDED, Run
from db.scores import Config

State = Literal["ready", "no model needed", "missing", "imported"]
REASONS = 20
RUNS = 100  # the newest runs in which a detector's speed is looked for
FEWEST = 5  # traces of a run that did not go to its end, from which its speed is taken
ENOUGH_REQUESTS = 1_500  # requests that an estimate is made from; the rest is taken to be like them


@dataclass(frozen=True)
class Coverage:
    """The traces of a scope by what a detector's configuration made of them; `why` counts the reasons of the rest."""

    total: int
    scored: int = 0
    abstained: int = 0
    failed: int = 0
    refusals: int = 0
    why: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        return self.scored / self.total if self.total else None

    @property
    def waiting(self) -> int:
        """The traces that were not asked about yet."""
        return self.total - self.scored - self.abstained - self.refusals - self.failed

    @property
    def to_do(self) -> int:
        """What a run would compute: the traces not asked about yet, and those that failed."""
        return self.waiting + self.failed


@dataclass(frozen=True)
class LeftAlone:
    """What a run of only what failed left as it was: traces without a score and those that it could not judge.

    `elsewhere` counts the failures of its newest other configuration, where it has any: of `revision` with `params`.
    """

    detector: Detector
    waiting: int
    abstained: int
    elsewhere: int = 0
    revision: str = ""
    same_params: bool = True


@dataclass(frozen=True)
class Measured:
    """What the newest run that scored anything with the detector took. `seconds` are of a worker, with loading and
    saving; `rate` is in scored traces a second of a worker; `memory` is what one held, in bytes, 0 where not known."""

    run: int
    scored: int
    seconds: float
    usage: Usage
    at: datetime
    memory: int = 0

    @property
    def rate(self) -> float:
        return self.scored / self.seconds


@dataclass(frozen=True)
class Status:
    """Whether a detector can run here: `how` says how to get what is missing, `revision` which model it has."""

    state: State
    how: str | None = None
    revision: str = ""


@dataclass(frozen=True)
class Overview:
    """One detector: its newest configuration on these traces, and what that covers."""

    detector: Detector
    status: Status
    config: Config | None
    coverage: Coverage
    measured: Measured | None


@dataclass(frozen=True)
class Plan:
    """What a run over the `traces` that are missing would take; None where nobody knows.

    A worker scores `rate` traces a second and holds `memory` bytes; the run is `speedup` times as fast. `estimate` is
    what it would ask of a chat endpoint, estimated from `looked_at` of the traces.
    """

    traces: int
    rate: float | None = None
    estimate: Estimate | None = None
    looked_at: int = 0
    speedup: int = 1
    memory: int | None = None

    @property
    def seconds(self) -> float | None:
        return self.traces / (self.rate * self.speedup) if self.rate else None


def put_in_place(store: Store) -> None:
    """Use the team's files and baselines in this process from now on."""
    use(workspace_of(store))


def scope_at_hand(store: Store, sample: str | None) -> dict[str, Any]:
    """The sample; without one the labelled traces; without labels every trace."""
    if sample is not None:
        return scope_of(sample=sample)
    return scope_of(labelled=True) if store.labels.gold_counts() else scope_of(everything=True)


def overview(store: Store, scope: Mapping[str, Any]) -> list[Overview]:
    """Every detector there is, by name."""
    newest: dict[str, tuple[datetime, int]] = {}
    tallies = store.coverage.tallies(**make_selection(store, scope))
    configs = store.scores.get_configs(list(tallies))
    for key, tally in tallies.items():
        name = configs[key].name
        newest[name] = max(newest.get(name, (tally.last, key)), (tally.last, key))
    total, runs = size_of(store, scope), store.runs.recent(RUNS)
    rows = []
    with using(workspace_of(store)):
        for name in registry.names():
            config = configs[newest[name][1]] if name in newest else None
            covered = make_coverage(total, tallies[config.id].counts) if config else Coverage(total)
            detector = registry.make(name)
            rows.append(Overview(detector, status_here(detector), config, covered, measured(runs, name)))
    return rows


def status(store: Store, detector: Detector) -> Status:
    """Whether the detector can run here. Loads no model."""
    with using(workspace_of(store)):
        return status_here(detector)


def coverage(store: Store, detector: Detector, scope: Mapping[str, Any]) -> Coverage:
    """What the detector with exactly these parameters, models and files has made of the traces."""
    tallies = store.coverage.tallies(**make_selection(store, scope), config_id=config_id(store, detector))
    return make_coverage(size_of(store, scope), *(tally.counts for tally in tallies.values()))


def left_alone(store: Store, detector: Detector, scope: Mapping[str, Any]) -> LeftAlone:
    """What a run of only what failed has left, and whether the failures belong to another configuration."""
    covered, own = coverage(store, detector, scope), config_id(store, detector)
    left = LeftAlone(detector, covered.waiting, covered.abstained + covered.refusals)
    others = {config.id: config for config in store.scores.configs(detector.name) if config.id != own}
    tallies = store.coverage.tallies(**make_selection(store, scope)) if others and covered.waiting else {}
    newest = max((key for key in tallies if key in others), key=lambda key: tallies[key].last, default=None)
    if newest is None:
        return left
    failed = sum(n for (status, _), n in tallies[newest].counts.items() if status == "failed")
    same_params = dict(others[newest].params) == registry.config_of(detector)
    return replace(left, elsewhere=failed, revision=others[newest].revision, same_params=same_params)


def status_here(detector: Detector) -> Status:
    """Whether the detector can run with the workspace in use. Loads no model."""
    if is_external(detector):
        return Status("imported", None, detector.revision())
    if why := detector.unavailable():
        return Status("missing", why)
    revision = detector.revision()
    return Status("ready" if revision else "no model needed", None, revision)


def is_current(store: Store, config: Config) -> bool:
    """Check whether a run with these parameters would reuse the stored scores.

    False if the model, the prompt, a list or the detector itself has changed.
    """
    try:
        detector = registry.make(config.name, config.params)
    except BadInput:  # a parameter that the detector no longer has
        return False
    with using(workspace_of(store)):
        now = (detector.version, registry.config_of(detector), revision_of(detector))
    return now == (config.version, dict(config.params), config.revision)


def size_of(store: Store, scope: Mapping[str, Any]) -> int:
    """The number of traces. Raises BadInput for an unknown sample."""
    if "sample" not in scope:
        return store.traces.count(TraceFilter(label="labelled" if scope.get("labelled") else "any"))
    return _find_sample(store, scope).size


def measured(runs: Sequence[Run], name: str, params: Mapping[str, Any] | None = None) -> Measured | None:
    """The newest of the runs that scored anything with the detector (with these parameters, where there is one)."""
    timed = [run for run in runs if _is_timed(run, run.counts.get(name) or {})]
    same = [run for run in timed if params is None or {"name": name, "params": dict(params)} in run.detectors]
    for run in same or timed:
        tally = run.counts[name]
        at = run.finished_at or run.heartbeat_at or run.created_at
        seconds = tally.get("worker_seconds") or tally["seconds"]
        return Measured(
            run.id, tally["scored"], seconds, Usage(**tally.get("usage", {})), at, tally.get("memory", 0)
        )  # fmt: skip
    return None


def _is_timed(run: Run, tally: Mapping[str, Any]) -> bool:
    """Whether a run tells the speed of a detector. One that was stopped after a few traces tells how long its model
    took to load."""
    fewest = 1 if run.status in ENDED else FEWEST
    return bool(tally.get("scored", 0) >= fewest and tally["seconds"] > 0)


def asks_chat(detector: Detector) -> bool:
    """True for a detector that sends requests to a chat endpoint."""
    return callable(getattr(detector, "requests", None))


def prompt_of(detector: Detector) -> str | None:
    """The file with the detector's wording, or None."""
    name = getattr(type(detector), "prompt", None)
    return name if name in files.names() else None


def plan(
    store: Store,
    detector: Detector,
    scope: Mapping[str, Any],
    covered: Coverage,
    *,
    again: bool = False,
    engine: EngineChoice | None = None,
) -> Plan:
    """Estimate what scoring the rest would take; with `again`, only what failed. `engine` None: that of the settings.

    Sends nothing. Raises BadInput for a price table that cannot be read.
    """
    last = measured(store.runs.recent(RUNS), detector.name, registry.config_of(detector))
    to_do = covered.failed if again else covered.to_do
    plan = Plan(
        to_do,
        last.rate if last else None,
        speedup=speedup(engine or choose_engine(), detector, to_do) or 1,
        memory=(last.memory or None) if last else None,
    )
    if not to_do or not asks_chat(detector):
        return plan
    with using(workspace_of(store)):
        pks = store.coverage.lacking(config_id(store, detector), **make_selection(store, scope), failed=again)
        estimate, looked_at = _estimate_requests(store, detector, pks, to_do)
    return replace(plan, estimate=estimate, looked_at=looked_at)


def workers_for(engine: EngineChoice, detector: Detector, n: int) -> int | None:
    """The workers that score `n` traces; 0 where the run's own process does, None where a cluster says."""
    return count_workers(engine, model=detector.revision(), asks=asks_chat(detector), n=n)


def speedup(engine: EngineChoice, detector: Detector, n: int) -> int | None:
    """How many times as fast as a worker the engine scores `n` traces; None where only a cluster knows."""
    workers = workers_for(engine, detector, n)
    if detector.revision() and engine.name == "processes":
        return 1  # a model computes on every processor in one process already
    return None if workers is None else max(1, workers)


def make_selection(store: Store, scope: Mapping[str, Any]) -> dict[str, Any]:
    """The scope as `store.coverage` takes it. Raises BadInput for an unknown sample."""
    if "sample" not in scope:
        return {"labelled": bool(scope.get("labelled"))}
    return {"sample_id": _find_sample(store, scope).id}


def _find_sample(store: Store, scope: Mapping[str, Any]) -> Sample:
    sample = store.samples.get(scope["sample"])
    if sample is None:
        raise no_sample(store, scope["sample"])
    return sample


def make_coverage(total: int, *counts: Counter[tuple[str, str | None]]) -> Coverage:
    """What these tallies of a configuration say of the traces of a scope."""
    states: Counter[str] = Counter()
    why: Counter[str] = Counter()
    for counter in counts:
        for (state, reason), n in counter.items():
            states[state] += n
            if state != "scored":
                why["a refusal" if state == "refusal" else f"{reason or 'no reason given'}"] += n
    return Coverage(
        total,
        scored=states["scored"],
        abstained=states["abstained"],
        failed=states["failed"],
        refusals=states["refusal"],
        why=dict(why.most_common(REASONS)),
    )


def _estimate_requests(store: Store, detector: Detector, pks: Sequence[int], to_do: int) -> tuple[Estimate, int]:
    """Estimate the requests of the traces to do from a random part of them with ENOUGH_REQUESTS requests."""
    looked_at = [0]

    def requests() -> Iterator[Any]:
        n = 0
        for trace in _draw_traces(store, pks):
            looked_at[0] += 1
            declines = not getattr(type(detector), "scores_refusals", False) and find_refusal(trace.answer)
            requests_of_trace = [] if declines else detector.requests(trace)  # type: ignore[attr-defined]
            yield from requests_of_trace
            n += len(requests_of_trace)
            if n >= ENOUGH_REQUESTS:
                return

    estimate = chat(getattr(detector, "model", "")).estimate(requests())
    times = to_do / looked_at[0] if looked_at[0] else 1.0
    return Estimate(
        requests=round(estimate.requests * times),
        cached=round(estimate.cached * times),
        prompt_tokens=round(estimate.prompt_tokens * times),
        completion_tokens=round(estimate.completion_tokens * times),
        cost=None if estimate.cost is None else estimate.cost * times,
    ), looked_at[0]


def _draw_traces(store: Store, pks: Sequence[int]) -> Iterator[Any]:
    order = np.random.default_rng(0).permutation(len(pks))
    for start in range(0, len(order), 20):
        yield from store.traces.load([pks[place] for place in order[start : start + 20]])
