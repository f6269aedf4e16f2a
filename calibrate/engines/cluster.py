"""Workers on a Ray cluster: one actor per processor, or several per GPU for a model that has one."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calibrate.engines.parallel import Outcome, Resources, Worker
from calibrate.engines.run import Pairs, Tally
from calibrate.errors import BadInput, TouchstoneError

ROOT = Path(__file__).resolve().parents[2]
AHEAD = 2  # tasks per actor: the one it works on, and the next
GPU_SHARE = 0.5  # of a GPU per actor: one tokenises while the other computes
PATIENCE = 120.0  # seconds without a single worker, after which the run fails
_SECRET = re.compile("KEY|TOKEN|WEBHOOK|STORE|USER|ROLES")


class RayPool:
    """Actors, each with the Worker that `make_worker` makes there. A dead one is replaced; a new one joins when the
    cluster has room for it. `workers` None: as many as it has room for. `needs_one_machine`: the store is a file.
    """

    def __init__(
        self,
        make_worker: Callable[[], Worker],
        *,
        address: str,
        workers: int | None,
        resources: Resources,
        needs_one_machine: bool,
    ) -> None:
        self._ray = _connect(address)
        try:
            if needs_one_machine:
                self._check_machines()
            self._options, most = self._place(resources)
        except TouchstoneError:
            self._ray.shutdown()
            raise
        self._arguments = (make_worker, _settings())
        self._starting: dict[Any, Any] = {}  # what tells that it is ready -> actor
        self._busy: dict[Any, int] = {}  # actor -> tasks that it was given
        self._tasks: dict[Any, tuple[Any, Pairs]] = {}  # what holds the result -> actor, task
        self._last_alive = time.monotonic()
        self.workers = workers or most
        for _ in range(self.workers):
            self._start()

    @property
    def room(self) -> int:
        return AHEAD * len(self._busy)

    def submit(self, pairs: Pairs) -> None:
        actor = min(self._busy, key=self._busy.__getitem__)
        self._busy[actor] += 1
        self._tasks[actor.work.remote(list(pairs))] = (actor, pairs)

    def wait(self, seconds: float) -> list[Outcome]:
        ready, _ = self._ray.wait([*self._tasks, *self._starting], timeout=seconds)
        for reference in [reference for reference in ready if reference in self._starting]:
            self._welcome(self._starting.pop(reference), reference)
        if self._busy:
            self._last_alive = time.monotonic()
        elif time.monotonic() - self._last_alive > PATIENCE:
            has = _list_resources(self._ray.cluster_resources())
            raise TouchstoneError(
                f"no worker could be started on the Ray cluster for {PATIENCE:.0f} seconds: each asks for "
                f"{_list_resources(self._options)}, and the cluster has {has}"
            )
        return [self._outcome(reference) for reference in ready if reference in self._tasks]

    def close(self) -> None:
        for actor in [*self._busy, *self._starting.values()]:
            self._ray.kill(actor)
        self._ray.shutdown()

    def _start(self) -> None:
        actor = self._ray.remote(_Actor).options(**self._options).remote(*self._arguments)
        self._starting[actor.prepare.remote()] = actor

    def _welcome(self, actor: Any, reference: Any) -> None:
        try:
            problem = self._ray.get(reference)
        except self._ray.exceptions.RayError:  # its node went away meanwhile
            self._start()
            return
        if problem:
            raise TouchstoneError(problem)
        self._busy[actor] = 0

    def _outcome(self, reference: Any) -> Outcome:
        actor, pairs = self._tasks.pop(reference)
        try:
            tallies, seconds, problem = self._ray.get(reference)
        except self._ray.exceptions.RayError:  # the actor, its process or its node is gone
            if self._busy.pop(actor, None) is not None:
                self._start()
            return Outcome(pairs, None)
        if problem:
            raise TouchstoneError(problem)
        if actor in self._busy:
            self._busy[actor] -= 1
        return Outcome(pairs, tallies, seconds)

    def _check_machines(self) -> None:
        machines = {node["NodeManagerAddress"] for node in self._ray.nodes() if node["Alive"]}
        if len(machines) > 1:
            raise BadInput(
                f"the store is an SQLite file on one machine, and the Ray cluster has {len(machines)} machines: move "
                "the store to PostgreSQL, which all of them can reach"
            )

    def _place(self, resources: Resources) -> tuple[dict[str, Any], int]:
        """What an actor asks of the cluster, and how many of them it holds."""
        has = self._ray.cluster_resources()
        gpus = has.get("GPU", 0.0)
        if resources.needs_gpu and not gpus:
            raise BadInput("a detector needs a GPU, and no node of the Ray cluster has one; add one, or leave it out")
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0}
        if resources.memory:
            options["memory"] = resources.memory
        if gpus and (resources.uses_gpu or resources.needs_gpu):
            return options | {"num_gpus": GPU_SHARE}, max(1, int(gpus / GPU_SHARE))
        return options, max(1, int(has.get("CPU", 1.0)))


class _Actor:
    """Runs on the cluster. Problems are returned as sentences: an exception would have to be unpickled elsewhere."""

    def __init__(self, make_worker: Callable[[], Worker], settings: Mapping[str, str]) -> None:
        os.environ.update(settings)
        os.environ["TOUCHSTONE_THREADS"] = "1"
        self._make_worker = make_worker
        self._worker: Worker | None = None

    def prepare(self) -> str | None:
        try:
            self._worker = self._make_worker()
        except Exception as error:
            return _as_sentence(error)
        return None

    def work(self, pairs: Pairs) -> tuple[Mapping[str, Tally], float, str | None]:
        began = time.perf_counter()
        if self._worker is None:
            return {}, 0.0, "the worker on the Ray cluster was not prepared"
        try:
            tallies = self._worker(pairs)
        except Exception as error:
            return {}, 0.0, _as_sentence(error)
        return tallies, time.perf_counter() - began, None


def _connect(address: str) -> Any:
    """Connect to the cluster. Nodes get this program's code; what it depends on must be installed there."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise BadInput("`--engine ray` needs the package ray: install it with `pip install 'ray>=2.60,<3'`") from error
    _check_answers(address)
    code = [str(ROOT / name) for name in ("calibrate", "db")]
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, runtime_env={"py_modules": code})
    except Exception as error:
        raise _no_cluster(address, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray puts its own in place, which ends the process at once
    return ray


def _check_answers(address: str) -> None:
    """Raise TouchstoneError unless something listens there. Ray would try for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not port.isdigit():
        return  # `auto`, or a name that Ray knows
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from error


def _no_cluster(address: str, reason: str) -> TouchstoneError:
    return TouchstoneError(
        f"no Ray cluster answers at {address}: {reason}; start one with `ray start --head`, or name another with "
        "--address"
    )


def _settings() -> dict[str, str]:
    """The settings that detectors read, without secrets: a cluster shows what its actors were given."""
    names = [name for name in os.environ if name.startswith("TOUCHSTONE_") and not _SECRET.search(name)]
    return {name: os.environ[name] for name in names}


def _list_resources(resources: Mapping[str, Any]) -> str:
    amounts = {
        "CPU": resources.get("num_cpus", resources.get("CPU", 0)),
        "GPU": resources.get("num_gpus", resources.get("GPU", 0)),
        "GB of memory": round(resources.get("memory", 0) / 1e9, 1),
    }
    return ", ".join(f"{amount:g} {name}" for name, amount in amounts.items() if amount) or "nothing"


def _as_sentence(error: Exception) -> str:
    return str(error) if isinstance(error, TouchstoneError) else f"{type(error).__name__}: {error}"
