"""`receive`: take in spans over OTLP/HTTP, and import their traces."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial

from calibrate import serve as server
from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.signals import exit_code
from calibrate.engines.background import ROOT, absolute
from calibrate.errors import BadInput, StoreError
from calibrate.receiving.open_traces import SILENCE, OpenTraces
from calibrate.receiving.routes import PATH, Counts, Receiver
from calibrate.redaction import redactor_of
from calibrate.report.numbers import count
from calibrate.workflow.traces.joining import Joined, Joiner
from db import Store

LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
PARENT = "CALIBRATE_RECEIVE_PARENT"  # the process that a joiner ends with, and the name of that one's joiners
IDLE_SECONDS = 0.25
PATIENCE = 10.0  # seconds that a joiner has to end


@dataclass(frozen=True, slots=True)
class ReceiveDocument:
    """What was received at this address, and what this process itself imported, until it was stopped."""

    address: str | None
    received: dict[str, int]
    joined: dict[str, int]


def run(args: Namespace) -> Answer:
    if args.only_join and args.no_join:
        raise BadInput("--only-join and --no-join together would do nothing: give one of the two")
    if args.only_join:
        return _join(args)
    check(args)
    store = open_store(args, create=True)
    code = 0
    with receiving(args, store) as receiver, server.listen(args.host, args.port) as socket:
        address = f"{server.address_of(socket)}{PATH}"
        print(f"receiving spans for {store.name} at {address}; Ctrl-C ends it", file=sys.stderr, flush=True)
        try:
            server.run(server.application(None, receiver=receiver), socket)
        except KeyboardInterrupt as stop:
            code = exit_code(stop)
    spans = count(receiver.counts.spans, "span was", "spans were")
    document = ReceiveDocument(address, asdict(receiver.counts), asdict(Joined()))
    return Answer(document, f"ended; {spans} received, what is not imported yet waits in the store", exit_code=code)


def check(args: Namespace) -> None:
    """Refuse to listen to strangers unless that is wanted."""
    given = settings.receiving()
    if not given.token and not args.open and args.host not in LOCAL_HOSTS:
        raise BadInput(
            f"anyone who reaches {args.host} could send traces: set TOUCHSTONE_RECEIVE_TOKEN to a secret that clients "
            "send, or say --open if that is wanted"
        )
    redactor_of(settings.imports().redact)  # a wrong name ends the command now, not the joiner later


@contextmanager
def receiving(args: Namespace, store: Store) -> Iterator[Receiver]:
    """A receiver, with a joiner beside it unless another command joins."""
    given = settings.receiving()
    receiver = Receiver(store.received, token=given.token, most_backlog=given.backlog)
    ended = threading.Event()
    supervisor = threading.Thread(target=_supervise, args=(store.url, args.wait, ended), name="joiner")
    if not args.no_join:
        supervisor.start()
    try:
        yield receiver
    finally:
        receiver.close()
        ended.set()
        if not args.no_join:
            supervisor.join()


def _supervise(url: str, wait: float, ended: threading.Event) -> None:
    """Run a joiner, and another where it dies, until this command ends."""
    command = [sys.executable, "-m", "calibrate", "receive", "--only-join", "--wait", str(wait)]
    # One name for all of them: where one dies, the next one has its lease at once.
    parent = f"{os.getpid()} {secrets.token_hex(16)}"
    environment = {**os.environ, "TOUCHSTONE_STORE": absolute(url), PARENT: parent}
    pause = 1.0
    while not ended.is_set():
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        while process.poll() is None and not ended.wait(0.2):
            pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        else:
            pause = 1.0 if time.monotonic() - started > 60 else min(30.0, 2 * pause)
            ended.wait(pause)


def _join(args: Namespace) -> Answer:
    given = settings.imports()
    store = open_store(args, create=True)
    collection = partial(OpenTraces, wait=args.wait, silence=max(args.wait, SILENCE))
    parent, _, name = os.environ.get(PARENT, "").partition(" ")
    joiner = Joiner(store, collection, redactor_of(given.redact), given, name=name)
    code, pause = 0, IDLE_SECONDS
    try:
        while not parent or os.getppid() == int(parent):
            try:
                if joiner.step():
                    pause = IDLE_SECONDS
                    continue
                pause = IDLE_SECONDS
            except StoreError as error:
                if pause == IDLE_SECONDS:  # say it once
                    print(f"touchstone: {error}; received spans wait", file=sys.stderr, flush=True)
                pause = min(30.0, 2 * pause)
            time.sleep(pause)
        joiner.leave()
    except KeyboardInterrupt as stop:
        code = exit_code(stop)
        joiner.leave()
    joined = joiner.joined
    text = f"ended; {count(joined.imported, 'answer')} of {count(joined.spans, 'span')} imported"
    if joined.rejected:
        text += f"; {count(joined.rejected, 'answer was', 'answers were')} rejected"
    if joined.silent:
        text += f"; {count(joined.silent, 'call')} of a model came without the text of an answer"
    return Answer(ReceiveDocument(None, asdict(Counts()), asdict(joined)), text, exit_code=code)
