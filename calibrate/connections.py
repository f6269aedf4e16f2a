"""Connections to `serve`: closed where a request never comes to its end, and limited in number.

uvicorn times out connections that are idle after a request, but not those that never finish one; and it hangs up on a
client that has closed its own side, though that may wait for the answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0  # for the whole head of a request, from the connection or its first byte
ANSWER_SECONDS: Final = 30.0  # for the response, which a client may refuse to read
LINGER_SECONDS: Final = 2.0  # for a client to read why it was refused
MOST: Final = 512  # connections at once


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with a limit on the time of a request and on the number of connections."""

    head_seconds, answer_seconds, linger_seconds, most = HEAD_SECONDS, ANSWER_SECONDS, LINGER_SECONDS, MOST
    _timer: asyncio.TimerHandle | None = None
    _is_answering = False
    _is_leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection. Beyond the limit, the one that has waited longest without a request goes."""
        super().connection_made(transport)
        self._start(self.head_seconds)
        others = [other for other in self.connections if isinstance(other, PatientProtocol)]
        alive = [other for other in others if not other.transport.is_closing()]
        if len(alive) > self.most:
            waiting = [other for other in alive if not other._is_answering]
            min(waiting, key=lambda other: other._ends_at(), default=self)._abort()

    def data_received(self, data: bytes) -> None:
        """Read. Bytes that come one by one do not prolong the time of a request."""
        if self._is_leaving:
            return
        super().data_received(data)
        self._watch()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more. Answer the request that came whole, and say so where it did not."""
        if self._is_leaving:
            return None
        if self._is_busy():
            if self.cycle.more_body:
                return self._refuse(400, "the body breaks off before its end: send the request again, whole")
            self.cycle.keep_alive = False
            return True
        if self._has_begun():
            return self._refuse(400, "the request breaks off amid its head: send it again, whole")
        return None

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
        is_answering = self._is_busy()
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
        if self._is_busy() and self.cycle.more_body:
            late = f"the body did not come to its end in time ({self.answer_seconds:g} s)"
            self._refuse(408, f"{late}: send it again, in smaller parts if the line is slow")
        elif not self._is_busy() and self._has_begun():
            late = f"the head of the request did not come to its end in time ({self.head_seconds:g} s)"
            self._refuse(408, f"{late}: send it again, whole")
        else:
            self.transport.abort()

    def _is_busy(self) -> bool:
        """Whether a request has come, at least its head, that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _has_begun(self) -> bool:
        """Whether a part of the next request's head has come."""
        return self.conn.our_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def _refuse(self, status: int, sentence: str) -> bool:
        """Answer in the application's place, and close when the client has read it, or after a while."""
        self._stop()
        if self.transport.is_closing() or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()  # an answer was begun already
            return False
        if self._is_busy():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        text = sentence.encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(text)))]
        head = h11.Response(status_code=status, headers=[*headers, ("Connection", "close")])
        events = (head, h11.Data(data=text), h11.EndOfMessage())
        self.transport.write(b"".join([self.conn.send(event) or b"" for event in events]))
        # To close at once would reset the connection where the client goes on sending, and it might not read this.
        self._is_leaving = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(self.linger_seconds, self._abort)
        return True

    def _abort(self) -> None:
        self._stop()
        self.transport.abort()
