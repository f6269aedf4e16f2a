"""Fetch a thresholds file from a path, an http(s) URL, or any URL that fsspec knows."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from calibrate.errors import BadInput, BadThresholds
from calibrate.runtime.validation import describe_type
from calibrate.thresholds.files import (
    MAX_BYTES,
    describe_error,
    filesystem,
    local_path,
    read_bytes,
    scheme_of,
)
from calibrate.urls import redact

if TYPE_CHECKING:
    from calibrate.runtime.fetch_deadline import FetchDeadline

TIMEOUT = 10.0
"""Seconds that a server may be silent, and that its whole response may take."""

SETTLED = 2.0
"""Seconds after a write from which on the next write is sure to have another time stamp."""


class Source(Protocol):
    """`name` is for the log: it holds no password and no token."""

    name: str

    def fetch(self) -> bytes | None:
        """Fetch the content; None if it has not changed since the last successful fetch.

        Raises BadThresholds or BadInput. The next fetch after an error returns the whole content.
        """
        ...


def source_of(path_or_url: str | os.PathLike[str], *, token: str | None = None) -> Source:
    """Choose the source for a path or URL.

    Parameters
    ----------
    path_or_url : str or path
        A path, an http(s) URL, or any URL that fsspec knows.
    token : str, optional
        Sent as a bearer token to an http(s) URL.

    Returns
    -------
    Source
        Nothing is fetched yet.

    Raises
    ------
    BadInput
        For what is neither a path nor a URL, or for a token where none is sent.
    """
    if not isinstance(path_or_url, (str, bytes, os.PathLike)):
        raise BadInput(f"a thresholds file cannot be {describe_type(path_or_url)}; give its path or its URL")
    place = os.fsdecode(os.fspath(path_or_url))
    if not place:
        raise BadInput("the path of the thresholds file is empty; give its path or its URL")
    scheme = scheme_of(place)
    if scheme in ("http", "https"):
        return _Http(place, token)
    if token is not None:
        raise BadInput(f"{redact(place)}: a token is for an http(s) URL; leave it out here")
    return _Path(local_path(place)) if scheme in (None, "file") else _Remote(place)


class _Path:
    def __init__(self, path: str) -> None:
        self.name, self._stamp = path, None

    def fetch(self) -> bytes | None:
        stamp, before = _stamp(self.name), self._stamp
        if stamp is not None and stamp == before:
            return None
        self._stamp = None
        content = read_bytes(self.name, self.name)
        self._stamp = stamp
        return content


def _stamp(path: str) -> Any:
    """A value that changes whenever the file does; None if that is not certain yet."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    settled = time.time() - status.st_mtime > SETTLED
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev) if settled else None


class _Http:
    def __init__(self, url: str, token: str | None) -> None:
        if redact(url) != url.split("?")[0].split("#")[0]:
            raise BadInput(f"{redact(url)}: a password in a URL ends up in logs; give a token (token=…)")
        if token is not None and not isinstance(token, str):
            raise BadInput(f"the token is {describe_type(token)}; give a text")
        if token is not None and not (token.isascii() and token.isprintable() and token):
            raise BadInput("the token cannot be sent: it is empty, or has line breaks or characters beyond ASCII")
        self.name, self._url, self._token = redact(url), url, token
        self._etag: str | None = None

    def fetch(self) -> bytes | None:
        from http.client import HTTPException  # this and ssl take 60 ms to import
        from urllib.error import HTTPError

        from calibrate.runtime.fetch_deadline import FetchDeadline

        etag, self._etag = self._etag, None
        deadline = FetchDeadline(TIMEOUT)
        try:
            with deadline, _opener(self.name, deadline).open(self._request(etag), timeout=TIMEOUT) as answer:
                content = self._whole(answer)
                if deadline.passed:  # what was cut off looks like an end
                    raise TimeoutError
                self._etag = answer.headers.get("ETag")
                return content
        except HTTPError as error:
            error.close()
            if error.code != 304 or etag is None:
                raise BadThresholds(f"{self.name}: {_refusal(error.code, token=self._token is not None)}") from None
        except (OSError, ValueError, HTTPException) as error:
            if deadline.passed:
                raise BadThresholds(f"{self.name}: not complete after {TIMEOUT:g} seconds") from None
            why = getattr(error, "reason", error)  # an exception or a text
            reason = describe_error(why) if isinstance(why, Exception) else str(why)
            raise BadThresholds(f"{self.name}: cannot be read: {reason}") from None
        self._etag = etag
        return None

    def _request(self, etag: str | None) -> Any:
        from urllib.request import Request

        request = Request(self._url, headers={"Accept": "application/json", "User-Agent": "touchstone"})
        if etag is not None:
            request.add_header("If-None-Match", etag)
        if self._token is not None:  # unredirected: no other server gets the token
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return request

    def _whole(self, answer: Any) -> bytes:
        """Read the body. Gives up on a server that sends too much."""
        content = bytearray()
        while piece := answer.read1(2**16):
            content += piece
            if len(content) > MAX_BYTES:
                raise BadThresholds(f"{self.name}: larger than {MAX_BYTES // 2**20} MB, so it is no thresholds file")
        return bytes(content)


def _opener(name: str, deadline: FetchDeadline) -> Any:
    """What opens URLs as usual, until the deadline, but follows no redirect from https to http: there anybody may
    answer."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class StaySecure(HTTPRedirectHandler):
        def redirect_request(self, request: Any, *others: Any) -> Any:
            target = str(others[-1])
            if request.type == "https" and not target.lower().startswith("https:"):
                place = redact(target)[:200]
                raise BadThresholds(f"{name}: it redirects from https to {place}, which is not followed")
            return super().redirect_request(request, *others)

    return build_opener(StaySecure, *deadline.handlers())


def _refusal(code: int, *, token: bool) -> str:
    if code in (401, 403):
        return f"the server refuses the token ({code})" if token else f"the server wants a token ({code}): token=…"
    if code == 404:
        return "the server has no such file (404); is a release active there?"
    return f"the server answers {code}"


class _Remote:
    """Any URL that fsspec knows. Fetched in full each time: file systems differ in how they report changes."""

    def __init__(self, url: str) -> None:
        self.name, self._url = redact(url), url

    def fetch(self) -> bytes | None:
        system, path = filesystem(self._url)  # each time: one from before a fork does not work
        try:
            system.invalidate_cache()
            content: bytes = system.cat_file(path, 0, MAX_BYTES + 1)
        except FileNotFoundError:
            raise BadThresholds(f"{self.name}: no such file; release there first") from None
        except Exception as error:  # file systems raise errors of their own
            raise BadThresholds(f"{self.name}: cannot be read: {describe_error(error)}") from None
        return read_bytes(content, self.name)
