"""Score traces with detectors where the team wants it: in this process, in worker processes, or on a Ray cluster.

Detectors go to workers in groups: those without a model together, and each model by itself. Detectors that ask a chat
endpoint stay in this process: they wait for the endpoint, and one client keeps to its limits and to the budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from calibrate import registry
from calibrate.engines.background import absolute
from calibrate.engines.choice import PAYS_FROM, EngineChoice
from calibrate.engines.parallel import Pool, Resources, Worker, run_parallel
from calibrate.engines.run import Job, Pairs, ScoreCache, Tally, run
from calibrate.errors import TouchstoneError
from calibrate.runtime.planning import revision_of
from calibrate.types import Score
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import use
from db import Store, open_store

utc_now = partial(datetime.now, UTC)
ProgressCallback = Callable[[int, dict[str, Tally]], bool]


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this process carries out, so that its workers can see when it ends."""

    run_id: int
    worker: str


@dataclass(frozen=True, slots=True)
class Lane:
    """Jobs that go to the same workers. `model` is "" for detectors without one; `asks`: they ask a chat endpoint."""

    model: str
    asks: bool
    jobs: tuple[Job, ...]


def score_everywhere(
    store: Store,
    jobs: Sequence[Job],
    total: int,
    lacking_of: Callable[[Sequence[Job]], tuple[int, Iterable[Pairs]]],
    *,
    engine: EngineChoice,
    claim: Claim | None = None,
    only_failed: bool = False,
    on_progress: ProgressCallback,
) -> dict[str, Tally]:
    """Score `total` traces with every job. `lacking_of(jobs)` lists those to look at, and how many they are; the rest
    counts as reused. `on_progress` is as in `calibrate.engines.run.run`, over all jobs.
    """
    lanes = [(lane, *lacking_of(lane.jobs)) for lane in _split(jobs, engine)]
    tallies = {job.detector.name: Tally(reused=total - n) for lane, n, _ in lanes for job in lane.jobs}
    going = True

    def show(finished: int, tallies: dict[str, Tally]) -> bool:
        nonlocal going
        going = on_progress(finished, tallies)
        return going

    for lane, n, chunks in lanes:
        began = time.monotonic()
        pool = _make_pool(store, lane, n, engine, claim, only_failed=only_failed)
        if pool is None:
            cache: ScoreCache = OnlyFailed(store) if only_failed else store.scores
            run(lane.jobs, chunks, tallies, cache=cache, load=store.traces.load, now=utc_now, on_progress=show)
        else:
            names = [job.detector.name for job in lane.jobs]
            run_parallel(pool, names, chunks, tallies, on_progress=show)
        workers = 1 if pool is None else pool.workers
        _share_out(workers * (time.monotonic() - began), [tallies[job.detector.name] for job in lane.jobs])
        if not going:
            break
    return tallies


def _share_out(worker_seconds: float, tallies: Sequence[Tally]) -> None:
    """Charge a lane's time to its detectors, by the time that each computed."""
    computed = sum(tally.seconds for tally in tallies)
    for tally in tallies:
        tally.worker_seconds = worker_seconds * tally.seconds / computed if computed else 0.0


def _split(jobs: Sequence[Job], engine: EngineChoice) -> list[Lane]:
    """The lanes of a run, in the order in which they are carried out: the quickest first."""
    if engine.name == "local":
        return [Lane("", False, tuple(jobs))]
    lanes: dict[tuple[bool, str], list[Job]] = {}
    for job in jobs:
        asks = callable(getattr(job.detector, "requests", None))
        lanes.setdefault((asks, "" if asks else job.detector.revision()), []).append(job)
    return [Lane(model, asks, tuple(group)) for (asks, model), group in sorted(lanes.items(), key=lambda item: item[0])]


def _make_pool(
    store: Store, lane: Lane, n: int, engine: EngineChoice, claim: Claim | None, *, only_failed: bool
) -> Pool | None:
    """The workers for a lane; None where this process scores it."""
    workers = count_workers(engine, model=lane.model, asks=lane.asks, n=n, is_shared=_is_shared(store))
    if workers == 0:
        return None
    specs = [Spec.of(job) for job in lane.jobs]
    make_worker = partial(make_store_worker, absolute(store.url), specs, claim, only_failed)
    if engine.name == "ray":
        from calibrate.engines.cluster import RayPool

        return RayPool(
            make_worker,
            address=engine.address,
            workers=workers,
            resources=_find_resources(lane),
            needs_one_machine=store.file is not None,
        )
    from calibrate.engines.processes import ProcessPool

    assert workers is not None
    return ProcessPool(make_worker, workers, preload=__name__)


def count_workers(engine: EngineChoice, *, model: str, asks: bool, n: int, is_shared: bool = True) -> int | None:
    """The worker processes that score `n` traces with a detector; 0 where this process does, None where a cluster says.

    `is_shared`: other processes can open the store.
    """
    if asks or not n or not is_shared or engine.name == "local":
        return 0
    if engine.name == "ray":
        return engine.workers
    if engine.name == "auto" and (model or n < PAYS_FROM):
        return 0  # a model computes on every processor already
    workers = min(engine.n_workers, n)
    return workers if workers > 1 else 0


def _is_shared(store: Store) -> bool:
    return store.url not in ("sqlite://", "sqlite:///:memory:")


def _find_resources(lane: Lane) -> Resources:
    """What a worker of the lane needs, by what its detectors say of themselves."""
    kinds = [type(job.detector) for job in lane.jobs]
    return Resources(
        uses_gpu=bool(lane.model),
        needs_gpu=any(getattr(kind, "needs_gpu", False) for kind in kinds),
        memory=max(getattr(kind, "memory", 0) for kind in kinds),
    )


@dataclass(frozen=True, slots=True)
class Spec:
    """A job as a worker makes it anew."""

    name: str
    version: str
    params: Mapping[str, Any]
    revision: str
    config_id: int

    @classmethod
    def of(cls, job: Job) -> Spec:
        detector = job.detector
        return cls(detector.name, detector.version, registry.config_of(detector), revision_of(detector), job.config_id)

    def make_job(self) -> Job:
        """The job in this process. Raises TouchstoneError where the detector is another here."""
        detector = registry.make(self.name, self.params)
        if (problem := detector.unavailable()) is not None:
            raise TouchstoneError(f"{self.name} cannot run on a worker: {problem}")
        actual, wanted = (detector.version, revision_of(detector)), (self.version, self.revision)
        if actual != wanted:
            raise TouchstoneError(
                f"{self.name} is another on a worker: version and revision {actual}, not {wanted}; install the same "
                "Touchstone and models everywhere"
            )
        return Job(detector, self.config_id)


def make_store_worker(url: str, specs: Sequence[Spec], claim: Claim | None, only_failed: bool) -> Worker:
    """Open the store in a worker, and make the function that scores a task there."""
    store = open_store(url, create=False)
    use(workspace_of(store))
    jobs = [spec.make_job() for spec in specs]
    cache: ScoreCache = OnlyFailed(store) if only_failed else store.scores

    def is_wanted(*_: object) -> bool:
        return claim is None or store.runs.is_wanted(claim.run_id, claim.worker)

    def work(pairs: Pairs) -> Mapping[str, Tally]:
        return run(jobs, [pairs], cache=cache, load=store.traces.load, now=utc_now, on_progress=is_wanted)

    return work


class OnlyFailed:
    """The store's scores for a run that scores nothing but what failed before."""

    def __init__(self, store: Store) -> None:
        self._scores = store.scores

    def statuses(self, config_id: int, hashes: Sequence[str]) -> dict[str, str]:
        failed = self._scores.failed(config_id, hashes)
        return {content: "left" for content in hashes if content not in failed}

    def save(self, config_id: int, scores: Sequence[tuple[str, Score]], *, now: datetime) -> None:
        self._scores.save(config_id, scores, now=now)
