"""The verb that serves releases over HTTP."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import suppress
from typing import TYPE_CHECKING

from calibrate.cli import Answer
from calibrate.cli.common import store
from calibrate.cli.signals import as_interrupt
from calibrate.errors import BadInput

if TYPE_CHECKING:
    from calibrate.serve import Document
    from db import Store

TOKEN = "TOUCHSTONE_SERVE_TOKEN"
HERE = ("127.0.0.1", "::1", "localhost")


def run(args: Namespace) -> Answer:
    from calibrate import serve as server

    found = store(args)
    token = os.environ.get(TOKEN, "").strip()
    if not token.isascii() or not token.isprintable():
        raise BadInput(f"{TOKEN} must be plain ASCII without line breaks: it is sent as an HTTP header")
    app = server.application(lambda version: document(found, version), token=token)
    with server.listen(args.host, args.port) as at:
        host, port = at.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/thresholds/active.json"
        print(f"serving the releases of {found.name} at {address}; Ctrl-C ends it", file=sys.stderr, flush=True)
        if not token and args.host not in HERE:
            print(f"everybody who reaches {args.host} may read them: set {TOKEN} to ask for one", file=sys.stderr)
        with as_interrupt(), suppress(KeyboardInterrupt):
            server.run(app, at)
    return Answer({"served": address}, "ended", exit_code=130)


def document(found: Store, version: int | None) -> Document | None:
    """A release as it is served; the newest one without a version. Raises StoreError with a sentence."""
    from calibrate.serve import Document

    row = found.releases.get(version) if version is not None else next(iter(found.releases.list(limit=1)), None)
    return Document(row.version, row.document.encode(), row.sha256) if row else None
