"""Ask a team's own scorer over HTTP: several requests at once, in order, retried with jitter.

Address and token come only from the environment (`calibrate.settings.http_scorer`), so no page sends traces elsewhere.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from calibrate import deadlines, settings
from calibrate.backends.chat.flow import MAX_REQUESTED_WAIT, TRIES, requested_wait, wait_before
from calibrate.errors import BadInput
from calibrate.sanitize import visible
from calibrate.settings import HttpSettings

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 4_000_000  # of a reply
FINAL = frozenset({401, 403, 404, 405})  # the same for every trace
RETRIED = frozenset({408, 409, 425, 429})  # and whatever is 500 or more
HELP = (
    "set TOUCHSTONE_HTTP_URL to the address that takes a trace (like http://localhost:9000/score), and "
    "TOUCHSTONE_HTTP_TOKEN if it wants a token"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no reply to one trace, and the remedy. Holds no token."""

    reason: str


@dataclass
class _Run:
    """The state of one call of `ask`. `halted` says why nothing more is sent; `ended` wakes those who wait."""

    until: float | None
    halted: str = ""
    ended: threading.Event = field(default_factory=threading.Event)


class _Again(Exception):
    """An attempt that may be repeated, after `wait` seconds if the endpoint asks for that."""

    def __init__(self, reason: str, *, wait: float | None = None, is_unreachable: bool = False) -> None:
        super().__init__(reason)
        self.wait, self.is_unreachable = wait, is_unreachable


class _Failed(Exception):
    """A request without a reply. `is_final`: every other one would fail too."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class HttpScorer:
    """One endpoint. Get it from `http_scorer()`; it does not connect before the first request."""

    def __init__(self, configured: HttpSettings, problem: str | None = None) -> None:
        self._settings, self._problem = configured, problem
        parts = urlsplit(configured.url)
        self.place = f"{parts.netloc}{parts.path}"  # the address holds no secret: the settings refuse one that does
        self._rng = random.Random()

    def unavailable(self) -> str | None:
        """Say why the endpoint cannot be asked, and the remedy; None if it can. Sends nothing."""
        if self._problem is not None:
            return self._problem
        if not self._settings.url:
            return f"no HTTP scorer is set; {HELP}"
        if importlib.util.find_spec("httpx") is None:
            return "the package httpx is missing; install it with `pip install httpx`"
        return None

    def ask(self, bodies: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any] | Problem]:
        """Send one request a body; yields the JSON object of each reply, in order, or why there is none."""
        if why := self.unavailable():
            for _ in bodies:
                yield Problem(why)
            return
        import httpx

        run, most = _Run(deadlines.current()), self._settings.concurrency
        source, waiting = iter(bodies), deque[Future[dict[str, Any] | Problem]]()
        token = self._settings.token
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        limits = httpx.Limits(max_connections=most)
        with (
            httpx.Client(headers=headers, timeout=self._settings.timeout, limits=limits) as client,
            ThreadPoolExecutor(most, thread_name_prefix="http-scorer") as pool,
        ):
            try:
                while True:
                    while len(waiting) < 2 * most and (body := next(source, None)) is not None:
                        waiting.append(pool.submit(self._reply, client, body, run))
                    if not waiting:
                        return
                    yield waiting.popleft().result()
            finally:
                run.halted = run.halted or "the run was stopped"
                run.ended.set()
                for future in waiting:
                    future.cancel()

    def _reply(self, client: httpx.Client, body: Mapping[str, Any], run: _Run) -> dict[str, Any] | Problem:
        """Get a reply or a problem, whatever happens."""
        try:
            return self._reply_with_retries(client, json.dumps(body).encode(), run)
        except _Failed as error:
            if error.is_final:
                run.halted = run.halted or str(error)
            return self._problem_of(str(error))
        except Exception as error:
            return self._problem_of(f"the request failed: {type(error).__name__}: {str(error)[:200]}")

    def _problem_of(self, reason: str) -> Problem:
        """Make a problem. An endpoint's text is untrusted and may repeat the token."""
        token = self._settings.token
        return Problem(visible(reason.replace(token, "[token]") if len(token) > 3 else reason))

    def _reply_with_retries(self, client: httpx.Client, content: bytes, run: _Run) -> dict[str, Any]:
        for attempt in range(1, TRIES + 1):
            if run.halted:
                raise _Failed(run.halted)
            try:
                return self._send(client, content, run)
            except _Again as error:
                trouble = error
            if (trouble.wait or 0) > MAX_REQUESTED_WAIT:
                raise _Failed(f"{trouble}, and asks to wait {trouble.wait:.0f} s; try again later")
            if attempt < TRIES:
                pause = wait_before(attempt + 1, trouble.wait, self._rng)
                run.ended.wait(min(pause, _left(run)))
        if trouble.is_unreachable:
            raise _Failed(
                f"nobody answered at {self.place} in {TRIES} tries; check TOUCHSTONE_HTTP_URL and that the server runs",
                is_final=True,
            )
        raise _Failed(f"{trouble}, {TRIES} times in a row")

    def _send(self, client: httpx.Client, content: bytes, run: _Run) -> dict[str, Any]:
        """Make one attempt. Raises _Again or _Failed."""
        import httpx

        seconds = min(self._settings.timeout, _left(run))
        if seconds <= 0:
            raise _Failed("no reply from the HTTP scorer before the deadline of the check")
        until = time.monotonic() + seconds
        try:
            with client.stream("POST", self._settings.url, content=content, timeout=seconds) as response:
                text = self._read(response, until)
        except httpx.TimeoutException:
            raise _Again(f"no reply from the HTTP scorer within {seconds:g} s (TOUCHSTONE_HTTP_TIMEOUT)") from None
        except httpx.ConnectError:
            raise _Again(f"nobody answers at {self.place}", is_unreachable=True) from None
        except httpx.HTTPError as error:
            raise _Again(f"the connection to the HTTP scorer broke ({type(error).__name__})") from None
        if response.status_code >= 300:
            raise self._trouble(response, text)
        return _parse(text)

    def _read(self, response: httpx.Response, until: float) -> bytes:
        """Read a reply to its end. A server that drips is given up in time, as one that is silent."""
        chunks, size = [], 0
        for chunk in response.iter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > MOST_BYTES:
                raise _Failed(f"the HTTP scorer's reply is longer than {MOST_BYTES:,} bytes")
            if time.monotonic() > until:
                raise _Again("the HTTP scorer's reply did not come to its end in time (TOUCHSTONE_HTTP_TIMEOUT)")
        return b"".join(chunks)

    def _trouble(self, response: httpx.Response, text: bytes) -> Exception:
        status = response.status_code
        complaint = " ".join(text[:400].decode("utf-8", "replace").split())[:200]
        says = f"the HTTP scorer at {self.place} said {status}" + (f": {complaint}" if complaint else "")
        if status in RETRIED or status >= 500:
            return _Again(says, wait=requested_wait(dict(response.headers.items()), datetime.now(UTC)))
        if status < 400:
            return _Failed(f"{says}; redirects are not followed: set TOUCHSTONE_HTTP_URL to the address itself",
                           is_final=True)  # fmt: skip
        if status in (401, 403):
            return _Failed(f"{says}; check TOUCHSTONE_HTTP_TOKEN", is_final=True)
        if status in FINAL:
            return _Failed(f"{says}; check TOUCHSTONE_HTTP_URL", is_final=True)
        return _Failed(says)


def _left(run: _Run) -> float:
    return math.inf if run.until is None else run.until - time.monotonic()


def _parse(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _Failed("the HTTP scorer's reply is not JSON") from None
    if not isinstance(document, dict):
        raise _Failed("the HTTP scorer's reply is no JSON object")
    return document


def http_scorer() -> HttpScorer:
    """Get the endpoint of the settings. Never raises: `unavailable` says what is wrong with them."""
    try:
        return HttpScorer(settings.http_scorer())
    except BadInput as error:
        return HttpScorer(HttpSettings(), str(error))
