"""A chat endpoint on this machine that replies as a test says, to inject what real models do wrong now and then."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted"


@dataclass(frozen=True)
class Said:
    """One reply. `logprobs` as the wire has them: [{"token": …, "logprob": …, "top_logprobs": […]}]."""

    text: str | None
    finish: str = "stop"
    logprobs: list[dict[str, Any]] | None = None
    choices: bool = True
    status: int = 200

    def document(self) -> dict[str, Any]:
        if self.status != 200:
            return {"error": {"message": self.text}}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text},
            "finish_reason": self.finish,
            "logprobs": None if self.logprobs is None else {"content": self.logprobs},
        }
        counted = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": MODEL,
                "choices": [choice] if self.choices else [], "usage": counted}  # fmt: skip


Script = Callable[[dict[str, Any]], Said | str]


@dataclass
class Endpoint:
    """`script` gets the JSON of a request; `asked` are those that came."""

    url: str
    script: Script
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def endpoint(script: Script) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.asked.append(body)
            said = running.script(body)
            said = said if isinstance(said, Said) else Said(said)
            content = json.dumps(said.document()).encode()
            self.send_response(said.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def last(body: dict[str, Any]) -> str:
    """The last message of a request."""
    return str(body["messages"][-1]["content"])


def sensible(body: dict[str, Any]) -> Said | str:
    """A judge that replies in the asked form, for every judge; what it says depends on the request alone."""
    system, asked = str(body["messages"][0]["content"]), last(body)
    severe = len(asked) % 3 == 0
    if "list the factual claims" in system or "List the factual claims" in asked:
        return "Sure, here are:\n1. The X200 is covered for 24 months.\n2) Batteries are covered.\n- Water is excluded."
    if '"items"' in system:
        label = "contradiction" if severe else "supported"
        return json.dumps({"items": [{"sentence": 1, "claim": "c", "label": label, "reason": "so it says"}]})
    if '"score"' in system:
        return json.dumps({"score": 1 if severe else 0.25, "reason": "so it says"})
    return "NO" if severe else "YES"
