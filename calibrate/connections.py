"""Connections to `serve`: closed where a request never comes to its end, and limited in number.

uvicorn times out connections that are idle after a request, but not those that never finish one.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0  # for the whole head of a request, from the connection or its first byte
ANSWER_SECONDS: Final = 30.0  # for the response, which a client may refuse to read
MOST: Final = 512  # connections at once


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with a limit on the time of a request and on the number of connections."""

    head_seconds, answer_seconds, most = HEAD_SECONDS, ANSWER_SECONDS, MOST
    _timer: asyncio.TimerHandle | None = None
    _is_answering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection. Beyond the limit, the one that has waited longest without a request goes."""
        super().connection_made(transport)
        self._start(self.head_seconds)
        others = [other for other in self.connections if isinstance(other, PatientProtocol)]
        alive = [other for other in others if not other.transport.is_closing()]
        if len(alive) > self.most:
            waiting = [other for other in alive if not other._is_answering]
            min(waiting, key=lambda other: other._ends_at(), default=self)._give_up()

    def data_received(self, data: bytes) -> None:
        """Read. Bytes that come one by one do not prolong the time of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request, for as long as uvicorn lets an idle connection live."""
        super().on_response_complete()
        self._stop()
        self._is_answering = False
        if self.transport.get_write_buffer_size():  # the client has yet to read it
            self._timer = self.loop.call_later(self.answer_seconds, self._give_up_unread)
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self._is_answering:
            self._stop()
            self._start(self.answer_seconds)
        elif not is_answering and self._timer is None and self.timeout_keep_alive_task is None:
            self._start(self.head_seconds)
        self._is_answering = is_answering

    def _start(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ends_at(self) -> float:
        return self._timer.when() if self._timer is not None else 0.0

    def _give_up_unread(self) -> None:
        self._stop()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _give_up(self) -> None:
        self._stop()
        self.transport.abort()
