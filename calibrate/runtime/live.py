"""Follow a thresholds file: a release made while a program runs takes effect in it.

A daemon thread fetches the file, because fetching may wait for a disk or a server and a decision must not. Threads do
not survive a fork; in the child the first read of `Live.current` starts one.
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
from calibrate.runtime.sources import source_of
from calibrate.runtime.validation import check_number
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
    """Read a thresholds file.

    Parameters
    ----------
    path_or_url : str or path
        A path, an http(s) URL, or any URL that fsspec knows ("s3://…") where that is installed.
    reload_every : float, optional
        Seconds between two looks for a newer release, above 0. Without it the file is read once.
    token : str, optional
        Sent as a bearer token to an http(s) URL.

    Returns
    -------
    ThresholdsFile or Live
        A Live if `reload_every` is given.

    Raises
    ------
    BadThresholds
        If the file is missing or must not be used.
    BadInput
        For an impossible URL, interval or token.
    """
    if reload_every is not None:
        return Live(path_or_url, every=reload_every, token=token)
    source = source_of(path_or_url, token=token)
    return read(source.fetch() or b"", name=source.name)


class Live:
    """The newest valid release of a source. If a newer one is invalid or the source is gone, the last valid one stays.

    The logger "touchstone" reports each new problem, each recovery and each new version once.

    Parameters
    ----------
    path_or_url : str or path
        As for `load`.
    every : float
        Seconds between two looks, above 0.
    token : str, optional
        Sent as a bearer token to an http(s) URL.

    Attributes
    ----------
    problem : str or None
        What is wrong with the newest file, or why it cannot be read. None if it was valid.

    Raises
    ------
    BadThresholds, BadInput
        As `load` does, when constructed. Nothing here raises afterwards.
    """

    problem: str | None

    def __init__(self, path_or_url: str | os.PathLike[str], *, every: float, token: str | None = None) -> None:
        check_number("reload_every", every, "pause")
        self._source = source_of(path_or_url, token=token)
        content = self._source.fetch() or b""
        self._file = read(content, name=self._source.name)
        self._digest = hashlib.sha256(content).digest()
        self.problem = None
        self._every = every
        self._closed = threading.Event()
        self._looking, self._starting = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        _alive.add(self)
        self._start()

    @property
    def current(self) -> ThresholdsFile:
        """The release to decide by, a ThresholdsFile. Takes no lock and waits for nothing."""
        if self._thread is None:  # in a forked child
            self._start()
        return self._file

    def refresh(self) -> None:
        """Look for a newer release now, in this thread. Returns at once if another thread is doing so."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._fetch_once()
        finally:
            self._looking.release()

    def close(self) -> None:
        """Stop looking for newer releases. `current` stays as it is."""
        self._closed.set()
        _alive.discard(self)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fetch_once(self) -> None:
        try:
            content = self._source.fetch()
            if content is not None:
                self._replace(content)
        except TouchstoneError as error:
            self._report(str(error))
        except Exception as error:  # fsspec's file systems raise errors of their own; the valid file stays
            self._report(f"{self._source.name}: {type(error).__name__}")

    def _replace(self, content: bytes) -> None:
        digest = hashlib.sha256(content).digest()
        if digest != self._digest:
            before, file = self._file.version, read(content, name=self._source.name)
            self._file, self._digest = file, digest
            log.info("%s: version %d is taken in place of %d", self._source.name, file.version, before)
        if self.problem is not None:
            self.problem = None
            log.warning("%s: it is good again, version %d", self._source.name, self._file.version)

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s. Version %d stays in use", problem.rstrip("."), self._file.version)
        self.problem = problem

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._closed.is_set():
                return
            thread = threading.Thread(
                target=_refresh_regularly, args=(weakref.ref(self),), name="touchstone-thresholds", daemon=True
            )
            self._thread = thread
            with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter is exiting: the file stays
                thread.start()

    def _reset_after_fork(self) -> None:
        # A thread of the parent may have held its locks at the moment of the fork.
        self._looking, self._starting = threading.Lock(), threading.Lock()
        self._closed = _copy_event(self._closed)
        self._thread = None


def current(thresholds: ThresholdsFile | Live) -> ThresholdsFile:
    """Return the release to decide by.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live

    Returns
    -------
    ThresholdsFile
    """
    return thresholds.current if isinstance(thresholds, Live) else thresholds


def _copy_event(event: threading.Event) -> threading.Event:
    fresh = threading.Event()
    if event.is_set():
        fresh.set()
    return fresh


def _refresh_regularly(reference: weakref.ref[Live]) -> None:
    """Refresh at every interval for as long as somebody references the Live."""
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
        live._reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
