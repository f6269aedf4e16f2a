"""Limit the requests in flight at an endpoint, and compute the wait before a retry.

The limit adapts like TCP's window: it grows a little with every success and halves when the endpoint is overloaded.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

TRIES = 6  # the first included
GARBLED_TRIES = 3  # replies that are no completion, as a web server's page, before the endpoint is given up
FIRST_WAIT, MAX_WAIT = 0.5, 30.0  # seconds: the bound of the random wait, doubled at every try
MAX_REQUESTED_WAIT = 300.0  # seconds that an endpoint may ask us to wait; beyond that the request fails
# Seconds between the starts of two requests, somewhat more than the client's work for one. Requests that start together
# are answered together, and then compete for the processor together, round after round.
GAP = 0.003


class Throttle:
    """Lets at most `limit` requests through at once, in turn; `limit` moves between 1 and `most`. For one event loop.

    It starts at `most`, the team's setting: an endpoint that can handle that loses no time, and one that cannot reduces
    the limit within a few replies.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.in_flight = 0
        self._lingering = 0  # given up by us, but perhaps not by the endpoint
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = -math.inf
        self._closed_until = -math.inf
        self._next_start = -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for room. Yields the loop's time at which the request begins."""
        loop = asyncio.get_running_loop()
        while self.in_flight >= self._room() or loop.time() < self._closed_until:
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:  # it was this one's turn: pass it on
                    self._wake()
                raise
        self.in_flight += 1
        try:
            start = max(loop.time(), self._next_start)
            self._next_start = start + GAP
            await asyncio.sleep(start - loop.time())
            yield loop.time()
        finally:
            self.in_flight -= 1
            self._wake()

    def grow(self) -> None:
        """Record a success: as many successes as are in flight raise the limit by one."""
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        self._wake()

    def shrink(self, began: float, *, wait: float | None = None) -> None:
        """Halve the limit after an overload, but only once for requests that were in flight together.

        `began` is what `slot` yielded; `wait` are seconds for which the endpoint wants no requests.
        """
        loop = asyncio.get_running_loop()
        if began >= self._shrunk_at:
            self.limit = max(1.0, self.limit / 2)
            self._shrunk_at = loop.time()
        if wait and loop.time() + wait > self._closed_until:
            self._closed_until = loop.time() + wait
            loop.call_later(wait + 0.001, self._wake)

    def linger(self, seconds: float) -> None:
        """Leave the place of a request that was given up empty for a while.

        Its connection is closed, but not every endpoint notices: some work on it to the end.
        """
        self._lingering += 1
        asyncio.get_running_loop().call_later(seconds, self._end_lingering)

    def _end_lingering(self) -> None:
        self._lingering -= 1
        self._wake()

    def _room(self) -> int:
        """Requests that may be in flight now: at least one, which finds out whether the endpoint answers again."""
        return min(int(self.limit), max(1, self.most - self._lingering))

    def _wake(self) -> None:
        room = self._room() - self.in_flight
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


def wait_before(attempt: int, requested: float | None, rng: random.Random) -> float:
    """Compute the seconds to wait before attempt `attempt` (2, 3, …).

    That is what the endpoint requested plus a random part that spreads requests which failed together ("full jitter":
    uniform between 0 and a bound that doubles).
    """
    bound = min(MAX_WAIT, FIRST_WAIT * 2 ** (attempt - 2))
    return (requested or 0.0) + rng.uniform(0, bound)


def requested_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read the seconds of a reply's Retry-After, a number or an HTTP date; None without one.

    `headers` have lower-case names. A date is relative to the endpoint's own clock, its Date header, else to `now`
    (aware).
    """
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        when = _http_date(text)
        if when is None:
            return None
        seconds = (when - (_http_date(headers.get("date", "")) or now)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _http_date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
