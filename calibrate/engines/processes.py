"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_any
from types import ModuleType

from calibrate.backends.weights import threads
from calibrate.engines.parallel import Outcome, Worker
from calibrate.engines.run import Pairs, Tally
from calibrate.errors import TouchstoneError

AHEAD = 2  # tasks per worker: the one it works on, and the next

Result = tuple[Mapping[str, Tally], float]


class ProcessPool:
    """`workers` processes, each with the Worker that `make_worker` makes there.

    The processes are forked from a server that has imported what they need: they start at once, and share that memory.
    """

    def __init__(self, make_worker: Callable[[], Worker], workers: int, *, preload: str) -> None:
        self._make_worker, self.workers, self._preload = make_worker, workers, preload
        self._futures: dict[Future[Result], Pairs] = {}
        self._executor = self._start()

    @property
    def room(self) -> int:
        return AHEAD * self.workers

    def submit(self, pairs: Pairs) -> None:
        try:
            with _no_main():
                future = self._executor.submit(_work, pairs)  # starts a process while there are too few
        except BrokenProcessPool as error:  # a worker died since the last look; `wait` will start others
            future = Future()
            future.set_exception(error)
        self._futures[future] = pairs

    def wait(self, seconds: float) -> list[Outcome]:
        done, _ = wait(self._futures, timeout=seconds, return_when=FIRST_COMPLETED)
        outcomes = [self._outcome(future) for future in done]
        if any(outcome.tallies is None for outcome in outcomes):
            # The executor gives up all its tasks, and the processes that live, when one process dies.
            self._executor.shutdown(wait=True, cancel_futures=True)
            outcomes += [self._outcome(future) for future in list(self._futures)]
            self._executor = self._start()
        return outcomes

    def close(self) -> None:
        processes = list((self._executor._processes or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._futures:  # somebody will not wait for them
            for process in processes:
                process.terminate()
        for process in processes:
            process.join()

    def _outcome(self, future: Future[Result]) -> Outcome:
        pairs = self._futures.pop(future)
        try:
            tallies, seconds = future.result()
        except BrokenProcessPool:
            return Outcome(pairs, None)
        return Outcome(pairs, tallies, seconds)

    def _start(self) -> ProcessPoolExecutor:
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        context = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload([self._preload])
        threads_each = max(1, threads() // self.workers)
        return ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=_prepare, initargs=(self._make_worker, threads_each)
        )


@contextmanager
def _no_main() -> Iterator[None]:
    """Let a process that starts not run the program's own script again, as it would to have its `__main__`: nothing of
    a worker is defined there, and a script that scores would score once more in each worker."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_worker: Worker | None = None
_problem: TouchstoneError | None = None


def _prepare(make_worker: Callable[[], Worker], threads_each: int) -> None:
    global _worker, _problem
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches every process; the parent decides
    threading.Thread(target=_end_with_parent, name="end with the parent", daemon=True).start()
    os.environ["TOUCHSTONE_THREADS"] = str(threads_each)
    try:
        _worker = make_worker()
    except Exception as error:
        _problem = _as_sentence(error)


def _work(pairs: Pairs) -> Result:
    if _worker is None:
        raise _problem or TouchstoneError("the worker process was not prepared")
    began = time.perf_counter()
    try:
        tallies = _worker(pairs)
    except Exception as error:
        raise _as_sentence(error) from error
    return tallies, time.perf_counter() - began


def _as_sentence(error: Exception) -> TouchstoneError:
    """The error as one that can be passed between processes, whatever it holds."""
    return TouchstoneError(str(error) if isinstance(error, TouchstoneError) else f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_any([parent.sentinel])
        os._exit(1)
