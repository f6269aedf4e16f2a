"""What of a source may be used: a valid release, signed where that is asked for, and none older than the last one."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from calibrate.errors import BadThresholds
from calibrate.runtime.last_good import LastGood
from calibrate.runtime.sources import Source
from calibrate.thresholds.files import read
from calibrate.thresholds.model import ThresholdsFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

log = logging.getLogger("touchstone")


class Intake:
    """Takes releases from a source, one after another.

    Parameters
    ----------
    source : Source
    last_good : LastGood, optional
        Where the last good file is kept between two processes.
    keys : sequence of Ed25519PublicKey
        Where there are any, one of them must have signed a release.
    allow_older : bool
        Whether a release may be older than the last one.

    Attributes
    ----------
    name : str
        Of the source, for the log.
    """

    def __init__(
        self,
        source: Source,
        *,
        last_good: LastGood | None = None,
        keys: tuple[Ed25519PublicKey, ...] = (),
        allow_older: bool = False,
    ) -> None:
        self.name = source.name
        self._source, self._last_good, self._keys, self._allow_older = source, last_good, keys, allow_older
        self._digest = b""
        self._version = 0

    def first(self) -> tuple[ThresholdsFile, str | None]:
        """Take the release to start with.

        Returns
        -------
        (ThresholdsFile, str or None)
            With what is wrong with the source, where it is the last good file.

        Raises
        ------
        BadThresholds
            If there is none that may be used.
        """
        if self._last_good is None:
            return self._take(self._source.fetch() or b""), None
        try:
            content, age = self._last_good.read()
            before: ThresholdsFile | None = read(content, name=self._last_good.path, keys=self._keys)
        except BadThresholds as error:
            before, problem = None, str(error)
            if self._last_good.exists():
                log.warning("%s. This last good file is not used", problem.rstrip("."))
        self._version = 0 if before is None else before.version
        try:
            return self._take(self._source.fetch() or b""), None
        except BadThresholds as error:
            if before is None:
                raise
            self._digest = hashlib.sha256(content).digest()
            reason = str(error)
            log.warning(
                "%s. Version %d is used instead: the last good file, %s, which was right %s ago",
                reason.rstrip("."), before.version, self._last_good.path, age,
            )  # fmt: skip
            return before, reason

    def next(self) -> ThresholdsFile | None:
        """Take a release that is not the one in use; None where there is none.

        Raises
        ------
        BadThresholds
            For a source that cannot be read, or a release that must not be used.
        """
        content = self._source.fetch()
        if content is None or hashlib.sha256(content).digest() == self._digest:
            if self._last_good is not None:
                self._last_good.touch()
            if content is None:
                return None
        return self._take(content)

    def _take(self, content: bytes) -> ThresholdsFile:
        file = read(content, name=self.name, keys=self._keys)
        if file.version < self._version:
            if not self._allow_older:
                raise BadThresholds(
                    f"{self.name}: version {file.version} is older than {self._version}, which was used before; a "
                    f"roll back has a new number (allow_older=True takes it all the same)"
                )
            log.warning("%s: version %d is taken, and is older than %d", self.name, file.version, self._version)
        digest = hashlib.sha256(content).digest()
        if digest != self._digest and self._last_good is not None:
            self._last_good.keep(content)
        self._digest, self._version = digest, file.version
        return file
