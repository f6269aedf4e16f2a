"""A chat endpoint that misbehaves as it is told, to inject faults that no real model gives on demand."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """A reply: `cut` sends only half of the body and closes, `after` seconds go by before it."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    after: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A request as it came. `alongside` counts the requests that were being answered with it, itself included."""

    number: int
    at: float
    key: str
    body: dict[str, Any]
    alongside: int


def good(asked: Asked, *, after: float = 0.0, n: int | None = None, **more: Any) -> Say:
    """The last message again, as the answer; 10 tokens in, 5 out for each choice."""
    text = asked.body["messages"][-1]["content"]
    count = asked.body.get("n", 1) if n is None else n
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"} for i in range(count)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5 * count, "total_tokens": 10 + 5 * count}
    document = {"id": "1", "object": "chat.completion", "model": "stub-1", "choices": choices, "usage": usage, **more}
    return Say(body=json.dumps(document).encode(), after=after)


def wrong(status: int, message: str = "no", headers: Mapping[str, str] | None = None, **more: Any) -> Say:
    return Say(status, json.dumps({"error": {"message": message, **more}}).encode(), headers or {})


class Stub:
    """`asked` holds every request in the order of arrival; `plan` decides what each is told."""

    def __init__(self, plan: Callable[[Asked], Say]) -> None:
        self.plan = plan
        self.asked: list[Asked] = []
        self.in_flight = 0
        self.gone = 0  # requests whose asker did not wait for the reply
        self.lock = threading.Lock()
        self.url = ""

    @property
    def gaps(self) -> list[float]:
        """Seconds between one request and the next."""
        return [b.at - a.at for a, b in zip(self.asked, self.asked[1:], strict=False)]

    def come(self, key: str, body: dict[str, Any]) -> Asked:
        with self.lock:
            self.in_flight += 1
            asked = Asked(len(self.asked), time.monotonic(), key, body, self.in_flight)
            self.asked.append(asked)
        return asked

    def leave(self) -> None:
        with self.lock:
            self.in_flight -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: Stub

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = self.stub.come(self.headers.get("Authorization", ""), body)
        try:
            say = self.stub.plan(asked)
            if say.after and self._asker_leaves_within(say.after):
                with self.stub.lock:
                    self.stub.gone += 1
                self.close_connection = True
                return
        finally:
            self.stub.leave()
        self.send_response(say.status)
        for name, value in {"Content-Type": "application/json", **say.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(say.body)))
        self.end_headers()
        self.wfile.write(say.body[: len(say.body) // 2] if say.cut else say.body)
        if say.cut:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def _asker_leaves_within(self, seconds: float) -> bool:
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(None)

    def log_message(self, *given: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *given: Any) -> None:
        pass


@contextmanager
def stubbed(plan: Callable[[Asked], Say], *, port: int = 0) -> Iterator[Stub]:
    """A server of its own for one test."""
    stub = Stub(plan)
    server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"stub": stub}))
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.02}).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
