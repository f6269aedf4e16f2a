"""`serve`: serve releases over HTTP."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import nullcontext
from dataclasses import dataclass

from calibrate import serve as server
from calibrate.cli import Answer, receive
from calibrate.cli.common import open_store
from calibrate.cli.signals import exit_code
from calibrate.errors import BadInput
from calibrate.receiving.routes import PATH
from db import Store

TOKEN = "TOUCHSTONE_SERVE_TOKEN"


@dataclass(frozen=True, slots=True)
class ServeDocument:
    """The address at which releases were served until the server was stopped."""

    served: str


def run(args: Namespace) -> Answer:
    if args.receive:
        receive.check(args)
    store = open_store(args)
    token = os.environ.get(TOKEN, "").strip()
    if not token.isascii() or not token.isprintable():
        raise BadInput(f"{TOKEN} must be plain ASCII without line breaks: it is sent as an HTTP header")
    received = receive.receiving(args, store) if args.receive else nullcontext()
    with received as receiver, server.listen(args.host, args.port) as socket:
        app = server.application(lambda version: find_document(store, version), token=token, receiver=receiver)
        address = f"{server.address_of(socket)}/thresholds/active.json"
        print(f"serving the releases of {store.name} at {address}; Ctrl-C ends it", file=sys.stderr, flush=True)
        if receiver is not None:
            print(f"receiving spans at {server.address_of(socket)}{PATH}", file=sys.stderr, flush=True)
        if not token and args.host not in receive.LOCAL_HOSTS:
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
