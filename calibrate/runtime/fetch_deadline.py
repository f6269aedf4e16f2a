"""The time by which a whole HTTP exchange must be over: redirects, headers and body.

A timeout of urllib bounds one wait for bytes. A server that sends a byte now and then keeps it waiting for ever.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import Any
from urllib.request import BaseHandler, HTTPHandler, HTTPSHandler, Request


class FetchDeadline:
    """Within its block, connections made by its `handlers` are cut off once `seconds` are over.

    `passed` says whether they were. No thread outlives the block.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._cut_off)
        self._timer.daemon = True

    def __enter__(self) -> FetchDeadline:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:
            for connected in self._sockets:
                connected.close()
            self._sockets.clear()

    def handlers(self) -> list[BaseHandler]:
        """What opens http and https for urllib under this deadline."""
        deadline = self

        class Plain(HTTPHandler):
            def http_open(self, request: Request) -> HTTPResponse:
                return self.do_open(deadline._plain, request)

        class Secure(HTTPSHandler):
            def https_open(self, request: Request) -> HTTPResponse:
                return self.do_open(deadline._secure, request)

        return [Plain(), Secure()]

    def _plain(self, host: str, **options: Any) -> HTTPConnection:
        return self._watch(HTTPConnection(host, **options))

    def _secure(self, host: str, **options: Any) -> HTTPConnection:
        return self._watch(HTTPSConnection(host, **options))

    def _watch(self, connection: HTTPConnection) -> HTTPConnection:
        # The only place before the handshake of TLS, which may drip as well.
        connection._create_connection = self._connect  # type: ignore[attr-defined]
        return connection

    def _connect(self, *address: Any) -> socket.socket:
        connected = socket.create_connection(*address)
        with self._lock:
            if self.passed:
                connected.close()
                raise TimeoutError("the time for the whole exchange is over")
            self._sockets.append(connected.dup())  # TLS takes the socket itself away
        return connected

    def _cut_off(self) -> None:
        with self._lock:
            self.passed = True
            for connected in self._sockets:
                with suppress(OSError):  # the other side was first
                    connected.shutdown(socket.SHUT_RDWR)
