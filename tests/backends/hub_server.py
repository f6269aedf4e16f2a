"""A model hub on loopback, with as much of the hub's interface as its client needs to fetch a model."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

COMMIT = "c" * 40
GATED: dict[str, bytes] = {}  # stands for the files of a model whose owners want their terms accepted


def entry(name: str, held: bytes) -> dict[str, Any]:
    """A file in the hub's listing: large ones are known by SHA-256, others by git's SHA-1 of a blob."""
    oid = hashlib.sha1(b"blob %d\0" % len(held) + held).hexdigest()
    listed: dict[str, Any] = {"type": "file", "path": name, "size": len(held), "oid": oid}
    if name.endswith((".safetensors", ".onnx")):
        listed["lfs"] = {"oid": hashlib.sha256(held).hexdigest(), "size": len(held), "pointerSize": 130}
    return listed


@contextmanager
def serving(models: Mapping[str, Mapping[str, bytes]], *, spoilt: str = "") -> Iterator[str]:
    """Serve files by model. `spoilt` names a file of which other bytes are sent than the listing says."""

    class Hub(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None: ...

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            model = next((model for model in models if f"/{model}/" in path), "")
            files, name = models.get(model, {}), path.rpartition("/")[2]
            if model and files is GATED:
                self.reply("{}", status=403, **{"X-Error-Code": "GatedRepo"})
            elif model and path == f"/api/models/{model}/revision/main":
                self.reply(json.dumps({"id": model, "sha": COMMIT, "siblings": [{"rfilename": f} for f in files]}))
            elif model and path == f"/api/models/{model}/tree/{COMMIT}":
                self.reply(json.dumps([entry(name, held) for name, held in files.items()]))
            elif model and path == f"/{model}/resolve/{COMMIT}/{name}" and name in files:
                oid = entry(name, files[name])
                held = files[name][:-1] + b"?" if name == spoilt else files[name]
                self.reply(held, ETag=f'"{oid.get("lfs", oid)["oid"]}"', **{"X-Repo-Commit": COMMIT})
            else:
                self.reply("{}", status=404, **{"X-Error-Code": "RepoNotFound"})

        do_HEAD = do_GET  # noqa: N815

        def reply(self, body: bytes | str, *, status: int = 200, **headers: str) -> None:
            held = body.encode() if isinstance(body, str) else body
            self.send_response(status)
            for name, value in {
                "Content-Length": str(len(held)),
                "Content-Type": "application/json",
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(held)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
