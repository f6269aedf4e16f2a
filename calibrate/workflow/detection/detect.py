"""Detect: run detectors over traces, here or in a worker process."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.external import is_external
from calibrate.engines.choice import EngineChoice, choose_engine
from calibrate.engines.run import Job, Pairs, Tally
from calibrate.errors import BadInput, StoreError, TouchstoneError
from calibrate.runtime.planning import revision_of
from calibrate.types import TraceFilter
from calibrate.workflow.detection.heartbeat import beating
from calibrate.workflow.detection.outcomes import failures, has_scores
from calibrate.workflow.detection.scoring import Claim, score_everywhere, utc_now
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import using
from db import Store
from db.runs import Run, RunStatus

CHUNK = 4096  # keys looked up at once; the traces behind them are loaded fewer at a time


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def scope_of(*, sample: str | None = None, labelled: bool = False, everything: bool = False) -> dict[str, Any]:
    """Choose the traces of a run. Raises BadInput unless exactly one of the three is given."""
    if (sample is not None) + labelled + everything != 1:
        raise BadInput("say which traces: --sample NAME, --labelled or --all, one of them")
    if sample is not None:
        return {"sample": sample}
    return {"labelled": True} if labelled else {"all": True}


def queue(
    store: Store,
    names: Sequence[str],
    scope: Mapping[str, Any],
    *,
    params: Mapping[str, Any] | None = None,
    budget: float | None = None,
    again: bool = False,
    engine: EngineChoice | None = None,
) -> Run:
    """Check a run and queue it: the detectors exist, the parameters fit, the sample exists.

    names: detector names, or ["all"]. params: values for those detectors that have a parameter of that name.
    budget: US dollars that its requests to a chat endpoint may cost; None for no limit.
    again: score only the traces on which the detector failed before.
    engine: where it executes; None for what the environment says.

    Of all detectors, those that cannot run here are left out. Raises BadInput, with the remedy, where none of the named
    ones can run.
    """
    if budget is not None and not 0 <= budget < float("inf"):
        raise BadInput(f"the budget cannot be {budget}; it is a number of US dollars, 0 or more")
    chosen = chosen_of(names, params)
    traces_of(store, scope)
    unavailable = unavailable_here(store, chosen)
    if names == ["all"]:
        chosen = [detector for detector in chosen if detector.name not in unavailable]
    elif len(unavailable) == len(chosen):
        raise BadInput(
            "; ".join(f"{', '.join(names)} cannot run: {why}" for why, names in by_reason(unavailable).items())
        )
    specs = [{"name": detector.name, "params": registry.config_of(detector)} for detector in chosen]
    return store.runs.queue(specs, scope, options=options_of(budget=budget, again=again, engine=engine), now=utc_now())


def options_of(
    *, budget: float | None = None, again: bool = False, engine: EngineChoice | None = None
) -> dict[str, Any]:
    """A run's options, as the store keeps them."""
    options: dict[str, Any] = {} if budget is None else {"budget": budget}
    return options | ({"again": "failed"} if again else {}) | (engine.to_json() if engine else {})


def chosen_of(
    names: Sequence[str], params: Mapping[str, Any] | None = None, *, imported: bool = False
) -> list[Detector]:
    """The detectors that a run is for, as `queue` takes them. Raises BadInput for what cannot be run.

    Those whose scores are imported are run by nobody; with `imported` they are listed too.
    """
    if not names:
        raise BadInput("name at least one detector, or `all`")
    if "all" in names and len(names) > 1:
        raise BadInput("`all` stands alone: it means every detector; leave out the other names")
    if names == ["all"]:
        names = [name for name in registry.names() if imported or not is_external(registry.get(name))]
    chosen = [registry.make(name, _select_params(name, params or {})) for name in dict.fromkeys(names)]
    for detector in chosen:
        if is_external(detector) and not imported:
            raise BadInput(f"{detector.name} is not run: {detector.unavailable()}")
    for param in params or {}:
        if not any(param in registry.config_of(detector) for detector in chosen):
            raise BadInput(f"none of {', '.join(names)} has a parameter {param!r}; `detectors` lists them")
    return chosen


def unavailable_here(store: Store, detectors: Sequence[Detector]) -> dict[str, str]:
    """Why detectors cannot run in this process, and the remedy, by their names. Loads no model."""
    with using(workspace_of(store)):
        return {d.name: why for d in detectors if (why := d.unavailable()) is not None}


def by_reason(unavailable: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of detectors that cannot run, by the reason: one remedy, however many wait for it."""
    names: dict[str, list[str]] = {}
    for name, why in unavailable.items():
        names.setdefault(why, []).append(name)
    return names


def work(
    store: Store, *, run_id: int | None = None, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Run | None:
    """Claim a waiting run (or one whose worker died) and carry it out, as `carry_out` does. None when nothing waits."""
    claimed = claim(store, run_id=run_id)
    return None if claimed is None else carry_out(store, claimed, on_progress=on_progress)


def claim(store: Store, *, run_id: int | None = None) -> Run | None:
    """Take a waiting run, or one whose worker died; None when nothing waits."""
    free_dead(store)
    return store.runs.claim(worker_name(), now=utc_now(), run_id=run_id)


def carry_out(
    store: Store,
    claimed: Run,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    gives_back: bool = False,
) -> Run:
    """Carry out a run that this process has claimed.

    `on_progress` is called with the (trace, detector) pairs that are done and their total. On Ctrl-C the run is
    stopped, or with `gives_back` waits for another worker; its scores so far are in the store.
    """
    worker = worker_name()
    try:
        workspace = workspace_of(store, budget=(claimed.options or {}).get("budget"))
        with beating(store, claimed.id, worker), using(workspace):
            finished = _score(store, claimed, worker, on_progress)
        status: RunStatus = "stopped"
        if finished:
            status = "incomplete" if failures(store.runs.get(claimed.id)) else "done"
        store.runs.finish(claimed.id, worker, status, now=utc_now())
    except KeyboardInterrupt:
        if gives_back:
            with suppress(StoreError):  # without its heartbeat it is free soon
                store.runs.requeue(claimed.id, worker, now=utc_now())
        else:
            store.runs.finish(claimed.id, worker, "stopped", now=utc_now())
        raise
    except TouchstoneError as error:
        store.runs.finish(claimed.id, worker, "failed", now=utc_now(), error=str(error))
    except Exception as error:
        store.runs.finish(claimed.id, worker, "failed", now=utc_now(), error=f"{type(error).__name__}: {error}")
        raise
    return store.runs.get(claimed.id)


def free_dead(store: Store) -> list[int]:
    """Queue again the runs whose worker on this machine has died. Returns their ids."""
    freed = []
    for waiting in store.runs.recent():
        host, _, pid = (waiting.worker or "").rpartition(":")
        if waiting.status == "running" and host == socket.gethostname() and not _is_alive(int(pid)):
            store.runs.requeue(waiting.id, str(waiting.worker), now=utc_now())
            freed.append(waiting.id)
    return freed


def _score(store: Store, claimed: Run, worker: str, show: Callable[[int, int], None]) -> bool:
    """Score the traces of a claimed run. Returns False if it was stopped before its end."""
    detectors = [registry.make(spec["name"], spec["params"]) for spec in claimed.detectors]
    idle = {d.name: why for d in detectors if (why := d.unavailable()) is not None}
    jobs = [_make_job(store, detector) for detector in detectors if detector.name not in idle]
    total_traces, _ = traces_of(store, claimed.scope)
    total = total_traces * len(jobs)
    # Nothing is kept for these: once the model is there, the traces are to be scored.
    unavailable = {name: Tally(unavailable=why) for name, why in idle.items()}
    options = claimed.options or {}
    again, going = options.get("again") == "failed", True

    def on_progress(done: int, tallies: Mapping[str, Tally]) -> bool:
        nonlocal going
        show(done, total)
        counts = {name: _progress(tally, total_traces) for name, tally in {**tallies, **unavailable}.items()}
        going = store.runs.progress(claimed.id, worker, total=total, done=done, counts=counts, now=utc_now())
        return going

    if not on_progress(0, {}):
        return False
    tallies = score_everywhere(
        store,
        jobs,
        total_traces,
        lambda lane: _what_lacks(store, claimed.scope, lane),
        engine=EngineChoice.from_json(options) if "engine" in options else choose_engine(),
        claim=Claim(claimed.id, worker),
        only_failed=again,
        on_progress=on_progress,
    )
    if going:
        for job in jobs:
            tally = tallies[job.detector.name]
            tally.reused = 0 if again else total_traces - tally.n_attempted
            broken = tally.failed and not tally.scored
            tally.failed_on_all = bool(broken) and not has_scores(store, claimed.scope, job.config_id)
        on_progress(total, tallies)
    return going


def _what_lacks(store: Store, scope: Mapping[str, Any], jobs: Sequence[Job]) -> tuple[int, Iterable[Pairs]]:
    """The traces to look at, and how many there are. Of a large store only those that lack a score of some job."""
    if "sample" in scope:
        return traces_of(store, scope)
    lacking = store.traces.lacking(_make_filter(scope), [job.config_id for job in jobs])
    return len(lacking), store.traces.hashes(lacking, chunk=CHUNK)


def _progress(tally: Tally, total: int) -> dict[str, object]:
    """A detector's tally, and how many of its traces are done."""
    return {**tally.to_json(), "done": min(total, tally.n_finished), "of": total}


def config_id(store: Store, detector: Detector) -> int:
    """The key under which the store keeps this detector's scores."""
    params = registry.config_of(detector)
    with using(workspace_of(store)):
        revision = revision_of(detector)
    return store.scores.config(detector.name, detector.version, params, revision, now=utc_now()).id


def _make_job(store: Store, detector: Detector) -> Job:
    return Job(detector, config_id(store, detector))


def _select_params(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    fields = {parameter.name for parameter in registry.parameters(registry.get(name))}
    return {key: value for key, value in params.items() if key in fields}


def traces_of(store: Store, scope: Mapping[str, Any]) -> tuple[int, Iterator[Sequence[tuple[int, str]]]]:
    if "sample" in scope:
        sample = store.samples.get(scope["sample"])
        if sample is None:
            raise no_sample(store, scope["sample"])
        keys = store.samples.keys(sample.id)
        return len(keys), (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))
    where = _make_filter(scope)
    return store.traces.count(where), store.traces.keys(where, chunk=CHUNK)


def _make_filter(scope: Mapping[str, Any]) -> TraceFilter:
    return TraceFilter(label="labelled") if scope.get("labelled") else TraceFilter()


def no_sample(store: Store, name: str) -> BadInput:
    names = [repr(sample.name) for sample in store.samples.list()]
    return BadInput(
        f"there is no sample {name!r}; "
        f"{'the newest are' if len(names) > 10 else 'the samples are'}: {', '.join(names[:10]) or 'none yet'}"
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Tell whether it has ended and waits to be reaped, which in a container may be never. Linux only."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False
