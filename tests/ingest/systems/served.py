"""A local HTTP server for tests of clients: it answers from a test's data, with the faults that the test asks for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any]
"""A status and a body."""


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]

    def first(self, name: str, default: str | None = None) -> str | None:
        return self.query.get(name, [default])[0]


@dataclass
class Server:
    """`faults` are answered in place of the next requests whose path ends so: (end, status, headers, body)."""

    answer: Callable[[Asked], Answer]
    faults: list[tuple[str, int, dict[str, str], Any]] = field(default_factory=list)
    requests: list[Asked] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def paths(self, end: str) -> list[Asked]:
        return [asked for asked in self.requests if asked.path.endswith(end)]


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[Server]:
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            parts = urlsplit(self.path)
            asked = Asked(
                self.command, parts.path, parse_qs(parts.query), json.loads(raw) if raw else None, dict(self.headers)
            )
            with server.lock:
                server.requests.append(asked)
                fault = next((fault for fault in server.faults if asked.path.endswith(fault[0])), None)
                if fault:
                    server.faults.remove(fault)
            status, body = (fault[1], fault[3]) if fault else server.answer(asked)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in (fault[2] if fault else {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server.url = f"http://127.0.0.1:{httpd.server_port}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
