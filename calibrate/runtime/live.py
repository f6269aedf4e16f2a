"""Follow a thresholds file: a release made while a program runs takes effect in it.

A daemon thread fetches the file, because fetching may wait for a disk or a server and a decision must not. Threads do
not survive a fork; in the child the first read of `Live.current` starts one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Sequence
from typing import overload

from calibrate.errors import TouchstoneError
from calibrate.runtime.intake import Intake
from calibrate.runtime.last_good import LastGood
from calibrate.runtime.sources import source_of
from calibrate.runtime.validation import check_number
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.signing import KeyPlace, read_public_keys

log = logging.getLogger("touchstone")


@overload
def load(
    path_or_url: str | os.PathLike[str],
    *,
    reload_every: None = None,
    token: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    allow_older: bool = False,
    verify_key: KeyPlace | Sequence[KeyPlace] | None = None,
) -> ThresholdsFile: ...
@overload
def load(
    path_or_url: str | os.PathLike[str],
    *,
    reload_every: float,
    token: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    allow_older: bool = False,
    verify_key: KeyPlace | Sequence[KeyPlace] | None = None,
) -> Live: ...
def load(
    path_or_url: str | os.PathLike[str],
    *,
    reload_every: float | None = None,
    token: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    allow_older: bool = False,
    verify_key: KeyPlace | Sequence[KeyPlace] | None = None,
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
    cache : str or path, optional
        A file, one for each source, that keeps the last good release. A process starts with it, and says so at WARNING,
        while the source is down or has nothing that may be used.
    allow_older : bool, optional
        Take a release whose version is lower than the last one used, here or as the cache has it.
    verify_key : str, path or sequence of them, optional
        Public Ed25519 keys in PEM, as files or as text. Only a release that one of them signed is taken.

    Returns
    -------
    ThresholdsFile or Live
        A Live if `reload_every` is given.

    Raises
    ------
    BadThresholds
        If the file is missing or must not be used, and there is no cache to start with.
    BadInput
        For an impossible URL, interval, token, cache or key.
    """
    if reload_every is not None:
        return Live(
            path_or_url, every=reload_every, token=token, cache=cache, allow_older=allow_older, verify_key=verify_key
        )
    return _make_intake(path_or_url, token, cache, allow_older, verify_key).first()[0]


def _make_intake(
    path_or_url: str | os.PathLike[str],
    token: str | None,
    cache: str | os.PathLike[str] | None,
    allow_older: bool,
    verify_key: KeyPlace | Sequence[KeyPlace] | None,
) -> Intake:
    source = source_of(path_or_url, token=token)
    last_good = None if cache is None else LastGood(cache)
    return Intake(source, last_good=last_good, keys=read_public_keys(verify_key), allow_older=allow_older)


class Live:
    """The newest valid release of a source. If a newer one is invalid or the source is gone, the last valid one stays.

    The logger "touchstone" reports each new problem, each recovery and each new version once.

    Parameters
    ----------
    path_or_url : str or path
        As for `load`.
    every : float
        Seconds between two looks, above 0.
    token, cache, allow_older, verify_key : optional
        As for `load`.

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

    def __init__(
        self,
        path_or_url: str | os.PathLike[str],
        *,
        every: float,
        token: str | None = None,
        cache: str | os.PathLike[str] | None = None,
        allow_older: bool = False,
        verify_key: KeyPlace | Sequence[KeyPlace] | None = None,
    ) -> None:
        check_number("reload_every", every, "pause")
        self._intake = _make_intake(path_or_url, token, cache, allow_older, verify_key)
        self._file, self.problem = self._intake.first()
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
            file = self._intake.next()
            if file is not None:
                self._replace(file)
        except TouchstoneError as error:
            self._report(str(error))
        except Exception as error:  # fsspec's file systems raise errors of their own; the valid file stays
            self._report(f"{self._intake.name}: {type(error).__name__}")

    def _replace(self, file: ThresholdsFile) -> None:
        before, self._file = self._file, file
        if file.version != before.version:
            log.info("%s: version %d is taken in place of %d", self._intake.name, file.version, before.version)
        elif file != before:
            log.warning("%s: another version %d is taken in place of the last", self._intake.name, file.version)
        if self.problem is not None:
            self.problem = None
            log.warning("%s: it is good again, version %d", self._intake.name, file.version)

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
