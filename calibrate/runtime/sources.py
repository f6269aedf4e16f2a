"""Where a thresholds file comes from: a path, http(s), or what fsspec knows. A source fetches bytes, or None for
"as before"; after an error it fetches the whole again."""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

from calibrate.errors import BadInput, BadThresholds
from calibrate.runtime.given import kind_of
from calibrate.thresholds.files import MAX_BYTES, content_of, filesystem, local_path, said_by, scheme_of, shown

TIMEOUT = 10.0
"""Seconds that a server may be silent, and that its whole answer may take."""

SETTLED = 2.0
"""Seconds after which a file system's clock tells one write of a file from the next."""


class Source(Protocol):
    """`name` is for the log: no password, no token."""

    name: str

    def fetch(self) -> bytes | None:
        """What it holds, or None where that is what it held the last time. Raises BadThresholds or BadInput."""
        ...


def source_of(path_or_url: str | os.PathLike[str], *, token: str | None = None) -> Source:
    """Raises BadInput for what can be no source."""
    if not isinstance(path_or_url, (str, bytes, os.PathLike)):
        raise BadInput(f"a thresholds file cannot be {kind_of(path_or_url)}; give its path or its URL")
    place = os.fsdecode(os.fspath(path_or_url))
    if not place:
        raise BadInput("the path of the thresholds file is empty; give its path or its URL")
    scheme = scheme_of(place)
    if scheme in ("http", "https"):
        return _Http(place, token)
    if token is not None:
        raise BadInput(f"{shown(place)}: a token is for an http(s) URL; leave it out here")
    return _Path(local_path(place)) if scheme in (None, "file") else _Remote(place)


class _Path:
    def __init__(self, path: str) -> None:
        self.name, self._stamp = path, None

    def fetch(self) -> bytes | None:
        stamp, before = _stamp(self.name), self._stamp
        if stamp is not None and stamp == before:
            return None
        self._stamp = None
        content = content_of(self.name, self.name)
        self._stamp = stamp
        return content


def _stamp(path: str) -> Any:
    """Changes whenever the file does; None where that cannot be told."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    settled = time.time() - found.st_mtime > SETTLED
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev) if settled else None


class _Http:
    def __init__(self, url: str, token: str | None) -> None:
        if shown(url) != url.split("?")[0]:
            raise BadInput(f"{shown(url)}: a password in a URL ends in logs; give a token (token=…)")
        if token is not None and not isinstance(token, str):
            raise BadInput(f"the token is {kind_of(token)}; give a text")
        if token is not None and not (token.isascii() and token.isprintable() and token):
            raise BadInput("the token cannot be sent: it has line breaks or other than ASCII characters, or is empty")
        self.name, self._url, self._token = shown(url), url, token
        self._etag: str | None = None

    def fetch(self) -> bytes | None:
        from http.client import HTTPException  # this and ssl take 60 ms to import
        from urllib.error import HTTPError
        from urllib.request import urlopen

        etag, self._etag = self._etag, None
        began = time.monotonic()
        try:
            with urlopen(self._request(etag), timeout=TIMEOUT) as answer:
                content = self._whole(answer, began + TIMEOUT)
                self._etag = answer.headers.get("ETag")
                return content
        except HTTPError as error:
            error.close()
            if error.code != 304 or etag is None:
                raise BadThresholds(f"{self.name}: {_refusal(error.code, token=self._token is not None)}") from None
        except (OSError, ValueError, HTTPException) as error:
            why = getattr(error, "reason", error)  # an exception or a text
            said = said_by(why) if isinstance(why, Exception) else str(why)
            raise BadThresholds(f"{self.name}: cannot be read: {said}") from None
        self._etag = etag
        return None

    def _request(self, etag: str | None) -> Any:
        from urllib.request import Request

        request = Request(self._url, headers={"Accept": "application/json", "User-Agent": "touchstone"})
        if etag is not None:
            request.add_header("If-None-Match", etag)
        if self._token is not None:  # unredirected: to nobody that this server may point to
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return request

    def _whole(self, answer: Any, until: float) -> bytes:
        """The body. A server that trickles is given up, and so is one that never ends."""
        content = bytearray()
        while piece := answer.read1(2**16):
            content += piece
            if len(content) > MAX_BYTES:
                raise BadThresholds(f"{self.name}: larger than {MAX_BYTES // 2**20} MB, so it is no thresholds file")
            if time.monotonic() > until:
                raise BadThresholds(f"{self.name}: not whole after {TIMEOUT:g} seconds")
        return bytes(content)


def _refusal(code: int, *, token: bool) -> str:
    if code in (401, 403):
        return f"the server refuses the token ({code})" if token else f"the server wants a token ({code}): token=…"
    if code == 404:
        return "the server has no such file (404); is a release active there?"
    return f"the server answers {code}"


class _Remote:
    """Read whole each time: how to ask for changes differs from one file system to the next."""

    def __init__(self, url: str) -> None:
        self.name, self._url = shown(url), url

    def fetch(self) -> bytes | None:
        system, path = filesystem(self._url)  # each time: after a fork an older one is of no use
        try:
            system.invalidate_cache()
            content: bytes = system.cat_file(path, 0, MAX_BYTES + 1)
        except FileNotFoundError:
            raise BadThresholds(f"{self.name}: no such file; release there first") from None
        except Exception as error:  # each file system has errors of its own
            raise BadThresholds(f"{self.name}: cannot be read: {said_by(error)}") from None
        return content_of(content, self.name)
