"""`POST /v1/traces`: read a request within limits, keep it, acknowledge it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from calibrate.errors import TouchstoneError
from calibrate.receiving.bodies import Refusal, check, most_bytes, too_large
from calibrate.receiving.committer import Committer
from calibrate.receiving.replies import JSON, PROTOBUF, accept, refuse
from calibrate.serve import is_allowed
from calibrate.settings import hide_secrets
from calibrate.types import Arrival, Backlog, BodyKind

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

log = logging.getLogger("touchstone")

PATH: Final = "/v1/traces"
MOST_IN_FLIGHT: Final = 192 * 1024 * 1024
"""Bytes of all bodies that are read and not yet kept."""
MOST_READ: Final = 256 * 1024 * 1024
"""Bytes that are read of a body which is refused: few clients listen before they have sent all."""
MOST_REQUESTS: Final = 100_000
BACKLOG_SECONDS: Final = 1.0  # for so long a count of the backlog is believed
LOG_SECONDS: Final = 60.0
_PACKINGS: Final = {"": False, "identity": False, "gzip": True}


class Spool(Protocol):
    """What receives need of a store."""

    def append(self, arrivals: Sequence[Arrival]) -> None:
        """Keep these, in one transaction."""

    def backlog(self, now: datetime) -> Backlog:
        """Count what is not imported yet."""


@dataclass(slots=True)
class Counts:
    """What one receiver has done since it began."""

    requests: int = 0
    spans: int = 0
    refused_spans: int = 0
    refused_requests: int = 0
    full: int = 0


class Receiver:
    """Takes requests with spans.

    `spool` keeps them; `token` is what clients must send, "" for none; a backlog of more than `most_backlog` bytes
    makes clients wait.
    """

    def __init__(
        self,
        spool: Spool,
        *,
        token: str = "",
        most_backlog: int,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.counts = Counts()
        self._spool, self._token, self._most_backlog, self._clock = spool, token, most_backlog, clock
        self._committer = Committer(self._append)
        self._threads = ThreadPoolExecutor(1, "check")  # one body in memory unpacked at a time
        self._in_flight = 0
        self._backlog = Backlog(0, 0, None, joining=False)
        self._looked_at = 0.0
        self._looking = asyncio.Lock()
        self._logged_at = time.monotonic()
        self._logged = Counts()

    def routes(self) -> list[Route]:
        """Make the route, for any ASGI application."""
        from starlette.routing import Route

        return [Route(PATH, self._receive, methods=["POST"])]

    def health(self) -> dict[str, Any]:
        """The backlog and the counts, for /healthz. Raises TouchstoneError where the store cannot be read."""
        backlog = self._spool.backlog(self._clock())
        oldest = None if backlog.oldest is None else (self._clock() - backlog.oldest).total_seconds()
        waiting = {"requests": backlog.requests, "bytes": backlog.bytes, "oldest_seconds": oldest}
        return {"backlog": waiting, "joining": backlog.joining, "received": asdict(self.counts)}

    def close(self) -> None:
        """Keep what waits, then end."""
        self._committer.close()
        self._threads.shutdown()

    async def _receive(self, request: Request) -> Response:
        from starlette.requests import ClientDisconnect
        from starlette.responses import Response

        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = kind == JSON
        try:
            response = await self._answer(request, kind, is_json=is_json)
        except Refusal as refusal:
            self.counts.refused_requests += 1
            challenge = {"WWW_Authenticate": "Bearer"} if refusal.status == 401 else {}
            retry = {"Retry_After": "5"} if refusal.status in (429, 503) else {}
            response = refuse(refusal.status, refusal.sentence, is_json=is_json, **challenge, **retry)
        except ClientDisconnect:
            self.counts.refused_requests += 1
            response = Response(status_code=400)  # nobody reads it
        self._log_now_and_then()
        return response

    async def _answer(self, request: Request, kind: str, *, is_json: bool) -> Response:
        packing = request.headers.get("content-encoding", "").strip().lower()
        reason = await self._why_not(request, kind, packing)
        most = most_bytes(is_json=is_json)
        body = await self._read(request, most, keep=reason is None)
        if reason is not None:
            raise reason
        if body is None:
            raise too_large(is_json=is_json)
        try:
            is_packed = _PACKINGS[packing]
            loop = asyncio.get_running_loop()
            checked = await loop.run_in_executor(
                self._threads, lambda: check(body, is_json=is_json, is_packed=is_packed)
            )
            usable = checked.spans - checked.refused
            if usable:
                form: BodyKind = (
                    ("json+gzip" if is_packed else "json")
                    if is_json
                    else ("protobuf+gzip" if is_packed else "protobuf")
                )
                await self._commit(Arrival(form, body, usable, checked.unpacked, self._clock()))
        finally:
            self._in_flight -= len(body)
        self.counts.requests += 1
        self.counts.spans += usable
        self.counts.refused_spans += checked.refused
        return accept(refused=checked.refused, reasons=checked.reasons, is_json=is_json)

    async def _why_not(self, request: Request, kind: str, packing: str) -> Refusal | None:
        """Why this request is refused, whatever its body holds."""
        if self._token and not is_allowed(request.headers.get("authorization", ""), self._token):
            return Refusal(401, "this needs the header Authorization: Bearer TOKEN")
        if kind not in (PROTOBUF, JSON):
            return Refusal(415, f"Content-Type {kind[:60]!r} is not taken: send {PROTOBUF} or {JSON}")
        if packing not in _PACKINGS:
            return Refusal(415, f"Content-Encoding {packing[:60]!r} is not taken: send gzip, or none")
        backlog = await self._look()
        if backlog.bytes >= self._most_backlog or backlog.requests >= MOST_REQUESTS:
            self.counts.full += 1
            waiting = f"{backlog.bytes / 1e6:.0f} MB in {backlog.requests:,} requests"
            return Refusal(429, f"the backlog is full ({waiting} wait to be imported); send it again later")
        if self._in_flight >= MOST_IN_FLIGHT:
            self.counts.full += 1
            return Refusal(429, "too many requests are being read at once; send it again later")
        return None

    async def _read(self, request: Request, most: int, *, keep: bool) -> bytes | None:
        """Read the body. None where it is too large, or is not kept: it is read even so, but not without end, as few
        clients listen before they have sent all."""
        declared = int(request.headers.get("content-length", 0))
        if declared > MOST_READ or (declared > most and "expect" in request.headers):
            return None
        parts: list[bytes] = []
        size = held = 0
        crowded = False
        try:
            async for part in request.stream():
                size += len(part)
                if size > MOST_READ:
                    break
                if keep and size <= most and not crowded:
                    parts.append(part)
                    held += len(part)
                    self._in_flight += len(part)
                    crowded = self._in_flight > 2 * MOST_IN_FLIGHT
                if size > most or crowded:
                    self._in_flight -= held
                    held = 0
                    parts.clear()
        except BaseException:
            self._in_flight -= held
            raise
        if crowded:
            raise Refusal(429, "too many requests are being read at once; send it again later")
        return b"".join(parts) if keep and size <= most else None

    async def _look(self) -> Backlog:
        """The backlog, counted anew once a second. Where the store cannot be read, the request is refused."""
        async with self._looking:
            if time.monotonic() - self._looked_at >= BACKLOG_SECONDS:
                try:
                    self._backlog = await asyncio.to_thread(self._spool.backlog, self._clock())
                except TouchstoneError as error:
                    raise Refusal(503, hide_secrets(str(error))) from None
                self._looked_at = time.monotonic()
        return self._backlog

    async def _commit(self, arrival: Arrival) -> None:
        try:
            await self._committer.commit(arrival)
        except TouchstoneError as error:
            raise Refusal(503, hide_secrets(str(error))) from None
        backlog = self._backlog
        self._backlog = Backlog(
            backlog.requests + 1, backlog.bytes + len(arrival.body), backlog.oldest, backlog.joining
        )

    def _append(self, arrivals: Sequence[Arrival]) -> None:
        self._spool.append(arrivals)

    def _log_now_and_then(self) -> None:
        """Say at most once a minute what was refused since the last time."""
        now = time.monotonic()
        if now - self._logged_at < LOG_SECONDS:
            return
        before, counts = self._logged, self.counts
        full, refused = counts.full - before.full, counts.refused_requests - before.refused_requests
        if spans := counts.refused_spans - before.refused_spans:
            log.warning("spans refused that cannot be used: %d; their clients heard why", spans)
        if full:
            log.warning("requests told to come back later: %d; the backlog is full", full)
        if refused > full:
            log.warning("requests refused: %d; their clients heard why", refused - full)
        self._logged_at, self._logged = now, Counts(**asdict(counts))
