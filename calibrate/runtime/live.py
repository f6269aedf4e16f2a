"""A thresholds file that follows its source: a release made while a program runs takes effect in it.

A daemon thread looks, not whoever decides: looking may wait for a disk or a server, and an answer on its way to a user
must not. `Live.current` is an attribute. Threads do not survive a fork; in the child the first `current` starts one.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import weakref
from typing import overload

from calibrate.errors import TouchstoneError
from calibrate.runtime.given import check_number
from calibrate.runtime.sources import source_of
from calibrate.thresholds.files import read
from calibrate.thresholds.model import ThresholdsFile

log = logging.getLogger("touchstone")


@overload
def load(
    path_or_url: str | os.PathLike[str], *, reload_every: None = None, token: str | None = None
) -> ThresholdsFile: ...
@overload
def load(path_or_url: str | os.PathLike[str], *, reload_every: float, token: str | None = None) -> Live: ...
def load(
    path_or_url: str | os.PathLike[str], *, reload_every: float | None = None, token: str | None = None
) -> ThresholdsFile | Live:
    """The release at a path, an http(s) URL, or any URL that fsspec knows where that is installed ("s3://…").

    `reload_every` (seconds) gives a `Live` that goes on looking; without it the file is read once. `token` is sent as
    a bearer token to an http(s) URL. Raises BadThresholds for a file that is not there or must not be used, BadInput
    for a URL or an interval that cannot be.
    """
    if reload_every is not None:
        return Live(path_or_url, every=reload_every, token=token)
    source = source_of(path_or_url, token=token)
    return read(source.fetch() or b"", name=source.name)


class Live:
    """The newest good release of a source. Where a newer one is bad or the source is gone, the last good one stays.

    Says through the logger "touchstone", once each: what is wrong, that it is good again, that a version was taken.
    """

    problem: str | None
    """What is wrong with the newest file, or why it cannot be had; None when it was good."""

    def __init__(self, path_or_url: str | os.PathLike[str], *, every: float, token: str | None = None) -> None:
        """Reads the file, and raises what `load` raises. From then on nothing here raises."""
        check_number("reload_every", every, "pause")
        self._source = source_of(path_or_url, token=token)
        content = self._source.fetch() or b""
        self._file = read(content, name=self._source.name)
        self._seen = hashlib.sha256(content).digest()
        self.problem = None
        self._every = every
        self._closed = threading.Event()
        self._looking, self._starting = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        _alive.add(self)
        self._start()

    @property
    def current(self) -> ThresholdsFile:
        """The release to decide by. Takes no lock and waits for nothing."""
        if self._thread is None:  # in a forked child
            self._start()
        return self._file

    def refresh(self) -> None:
        """Look now, in this thread, rather than at the next beat. Returns at once where another thread is looking."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._look()
        finally:
            self._looking.release()

    def close(self) -> None:
        """Stop looking. `current` stays as it is."""
        self._closed.set()
        _alive.discard(self)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> None:
        try:
            content = self._source.fetch()
            if content is not None:
                self._take(content)
        except TouchstoneError as error:
            self._tell(str(error))
        except Exception as error:  # whatever a filesystem of others may raise: the good file stays
            self._tell(f"{self._source.name}: {type(error).__name__}")

    def _take(self, content: bytes) -> None:
        digest = hashlib.sha256(content).digest()
        if digest != self._seen:
            before, file = self._file.version, read(content, name=self._source.name)
            self._file, self._seen = file, digest
            log.info("%s: version %d is taken in place of %d", self._source.name, file.version, before)
        if self.problem is not None:
            self.problem = None
            log.warning("%s: it is good again, version %d", self._source.name, self._file.version)

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s. Version %d stays in use", problem.rstrip("."), self._file.version)
        self.problem = problem

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._closed.is_set():
                return
            made = threading.Thread(target=_beat, args=(weakref.ref(self),), name="touchstone-thresholds", daemon=True)
            self._thread = made
            with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter ends: the file stays
                made.start()

    def _forked(self) -> None:
        self._looking, self._starting = threading.Lock(), threading.Lock()  # the parent's may have been held
        self._closed = _copy(self._closed)
        self._thread = None


def current(thresholds: ThresholdsFile | Live) -> ThresholdsFile:
    """The release to decide by, of either."""
    return thresholds.current if isinstance(thresholds, Live) else thresholds


def _copy(event: threading.Event) -> threading.Event:
    fresh = threading.Event()
    if event.is_set():
        fresh.set()
    return fresh


def _beat(reference: weakref.ref[Live]) -> None:
    """Looks every so often, for as long as somebody holds the Live."""
    while (live := reference()) is not None:
        closed, every = live._closed, live._every
        del live
        if closed.wait(every):
            return
        if (live := reference()) is not None:
            live.refresh()


_alive: weakref.WeakSet[Live] = weakref.WeakSet()


def _after_fork() -> None:
    for live in list(_alive):
        live._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
