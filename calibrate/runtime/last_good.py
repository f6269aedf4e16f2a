"""The last good thresholds file, kept on this machine for a start while its server is down."""

from __future__ import annotations

import contextlib
import logging
import os
import time

from calibrate.errors import BadInput, TouchstoneError
from calibrate.runtime.validation import describe_type
from calibrate.thresholds.files import THRESHOLDS, read_bytes, stage_bytes

log = logging.getLogger("touchstone")
PRIVATE = 0o600
_UNITS = (("days", 86400 * 2), ("h", 3600 * 2), ("min", 60 * 2))


class LastGood:
    """A copy of a release, byte for byte, whose time stamp says when its source last had it.

    Parameters
    ----------
    path : str or path
        A file of its own for each source. Only a thresholds file is replaced.

    Raises
    ------
    BadInput
        For a path that cannot be one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            kind = describe_type(path) if path else "empty"
            raise BadInput(f"cache is {kind}; give the path of a file to keep the last good thresholds in")
        self.path = os.fspath(path)
        folder = os.path.dirname(os.path.realpath(self.path))
        if not os.path.isdir(folder):
            raise BadInput(f"cache={self.path!r}: there is no folder {folder!r}; make it first")
        if self.exists() and not self._is_ours():
            raise BadInput(f"cache={self.path!r}: it exists and is no thresholds file; name another file")
        self._complained = False

    def exists(self) -> bool:
        """Whether there is anything at the path."""
        return os.path.exists(self.path)

    def read(self) -> tuple[bytes, str]:
        """Read the copy.

        Returns
        -------
        (bytes, str)
            And how long ago its source had it: "3 h".

        Raises
        ------
        BadThresholds
            If there is none, or it cannot be read.
        """
        content = read_bytes(self.path, self.path)
        return content, _describe_age(time.time() - os.stat(self.path).st_mtime)

    def keep(self, content: bytes) -> None:
        """Replace the copy, atomically and synced to the disk, for this user alone. A failure is logged once."""
        try:
            with stage_bytes(content, self.path, mode=PRIVATE) as pending:
                pending.commit()
            self._complained = False
        except TouchstoneError as error:
            if not self._complained:
                log.warning("%s. Without a cache, this process cannot start while its source is down", error)
            self._complained = True

    def touch(self) -> None:
        """Note that the source has the same file still."""
        with contextlib.suppress(OSError):  # it is gone or not ours to write: the next new release says so
            os.utime(self.path)

    def _is_ours(self) -> bool:
        try:
            with open(self.path, "rb") as stream:
                content = stream.read(THRESHOLDS.most)
        except OSError:
            return False
        return not content or THRESHOLDS.matches(content)


def _describe_age(seconds: float) -> str:
    for unit, least in _UNITS:
        if seconds >= least:
            return f"{int(seconds * 2 / least)} {unit}"
    return f"{max(0, int(seconds))} s"
