"""`serve`: serve releases over HTTP."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import dataclass

from calibrate import serve as server
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.signals import exit_code
from calibrate.errors import BadInput
from db import Store

TOKEN = "TOUCHSTONE_SERVE_TOKEN"
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class ServeDocument:
    """The address at which releases were served until the server was stopped."""

    served: str


def run(args: Namespace) -> Answer:
    store = open_store(args)
    token = os.environ.get(TOKEN, "").strip()
    if not token.isascii() or not token.isprintable():
        raise BadInput(f"{TOKEN} must be plain ASCII without line breaks: it is sent as an HTTP header")
    app = server.application(lambda version: find_document(store, version), token=token)
    with server.listen(args.host, args.port) as socket:
        host, port = socket.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/thresholds/active.json"
        print(f"serving the releases of {store.name} at {address}; Ctrl-C ends it", file=sys.stderr, flush=True)
        if not token and args.host not in LOCAL_HOSTS:
            print(f"anyone who reaches {args.host} may read them: set {TOKEN} to require a token", file=sys.stderr)
        code = 0
        try:
            server.run(app, socket)
        except KeyboardInterrupt as stop:
            code = exit_code(stop)
    return Answer(ServeDocument(address), "ended", exit_code=code)


def find_document(store: Store, version: int | None) -> server.Document | None:
    """Read a release as it is served; the newest one without a version. Raises StoreError with a sentence."""
    row = store.releases.get(version) if version is not None else next(iter(store.releases.list(limit=1)), None)
    return server.Document(row.version, row.document.encode(), row.sha256) if row else None
