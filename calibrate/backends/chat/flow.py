"""How many requests are in flight at an endpoint, and how long one waits before it is tried again.

The number adapts as TCP's window does: a little more with every success, half as many when the endpoint is overloaded.
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
FIRST_WAIT, MAX_WAIT = 0.5, 30.0  # seconds: the bound of the random wait, doubled at every try
MAX_REQUESTED_WAIT = 300.0  # seconds that an endpoint may ask us to wait; beyond that the request fails
# Seconds between the starts of two requests, somewhat more than the client takes for one. Requests that start together
# are answered together, and then wait for the processor together, in every round anew.
GAP = 0.003


class Throttle:
    """Lets at most `limit` requests through at once, in turn; `limit` moves between 1 and `most`. For one event loop.

    It begins at `most`, the bound that the team has set: with an endpoint that bears it nothing is lost, and one that
    does not brings it down within a few replies.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = -math.inf
        self._closed_until = -math.inf
        self._next_start = -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Waits for room; gives the loop's time at which the request begins."""
        loop = asyncio.get_running_loop()
        while self.in_flight >= int(self.limit) or loop.time() < self._closed_until:
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:  # it was our turn: the next one's now
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
        """One more at once after as many successes as are in flight."""
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        self._wake()

    def shrink(self, began: float, *, wait: float | None = None) -> None:
        """Half as many at once, but only once for requests that were in flight together; `began` is what `slot` gave.
        `wait`: seconds for which the endpoint wants to be left alone."""
        loop = asyncio.get_running_loop()
        if began >= self._shrunk_at:
            self.limit = max(1.0, self.limit / 2)
            self._shrunk_at = loop.time()
        if wait and loop.time() + wait > self._closed_until:
            self._closed_until = loop.time() + wait
            loop.call_later(wait + 0.001, self._wake)

    def _wake(self) -> None:
        room = int(self.limit) - self.in_flight
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


def wait_before(attempt: int, requested: float | None, rng: random.Random) -> float:
    """Seconds before attempt `attempt` (2, 3, …): what the endpoint asked for, and a random part that spreads those
    who failed together ("full jitter": uniform between 0 and a bound that doubles)."""
    bound = min(MAX_WAIT, FIRST_WAIT * 2 ** (attempt - 2))
    return (requested or 0.0) + rng.uniform(0, bound)


def requested_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a reply's Retry-After (a number, or an HTTP date) asks for; None where it does not. `headers` have
    lower-case names. A date is meant by the endpoint's own clock, its Date header; without one by `now`, aware."""
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
