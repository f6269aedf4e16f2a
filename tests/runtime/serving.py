"""A real HTTP server on this machine that a test scripts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    url: str
    answer: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[Server]:
    """`answer` runs in the server's thread; it may wait, as a server that hangs does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, dict(self.headers), body)
            server.asked.append(asked)
            status, headers, content = server.answer(asked)
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # whoever asked has gone
                pass

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = Server(f"http://127.0.0.1:{http.server_port}", answer)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
