"""A webhook that listens on this machine, in a process of its own: it writes down what it is told, then answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECEIVED = "received.jsonl"
ADDRESS = "TOUCHSTONE_FAULTS_WEBHOOK"
CODE = f"""
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):  # the path is the folder to write to
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            with open(os.path.join(self.path, "{RECEIVED}"), "ab") as file:
                file.write(body + b"\\n")
            self.send_response(200)
        except OSError:  # its disk is full too
            self.send_response(507)
        self.end_headers()

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def receiving() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.environ[ADDRESS] = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        try:
            yield
        finally:
            process.kill()
            del os.environ[ADDRESS]


def address() -> str:
    return os.environ[ADDRESS]
