"""Releases over real HTTP: the bytes, the ETag, who may read, and a runtime that follows."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import uvicorn
from jsonschema import Draft202012Validator
from sqlalchemy import text

from calibrate import cli, serve
from calibrate.cli.serve import find_document
from calibrate.errors import BadInput
from calibrate.runtime import decide, load
from calibrate.workflow.releasing import release
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, draw, fill, save

ROOT = Path(__file__).parent.parent


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Served:
    """A server at `port` of this machine."""

    port: int
    url = property(lambda self: f"http://127.0.0.1:{self.port}")

    def ask(self, path: str, method: str = "GET", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        found = Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return found


@pytest.fixture
def serving(store: Store) -> Iterator[Callable[..., Served]]:
    """Serves the store's releases in a thread, as the verb does in its process."""
    started: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(token: str = "") -> Served:
        at = serve.listen("127.0.0.1", 0)
        app = serve.application(lambda version: find_document(store, version), token=token)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
        thread.start()
        started.append((server, thread))
        return Served(at.getsockname()[1])

    yield start
    for server, thread in started:
        server.should_exit = True
        thread.join(timeout=20)


@contextmanager
def process(store: Store) -> Iterator[tuple[subprocess.Popen[str], Served]]:
    """`python -m calibrate serve`, ready."""
    command = [sys.executable, "-m", "calibrate", "serve", "--store", store.url, "--port", "0"]
    # A shell's background job ignores SIGINT, and so would what it starts.
    interruptible = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible) as started:
        assert started.stderr is not None
        try:
            found = re.search(r"http://[\d.]+:(\d+)", line := started.stderr.readline())
            assert found, line
            yield started, Served(int(found[1]))
        finally:
            started.kill()


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    opened = open_store(sqlite_url)
    yield opened
    opened.close()


def publish(store: Store, policy: str, note: str = "") -> Any:
    if not store.points.latest():
        labels, scores = draw()
        fill(store, labels, scores)
    save(store, policy)
    return release.release(store, ReleaseRequest(detectors=[DETECTOR], note=note, by="ann"), now=NOW)


def test_before_the_first_release_the_server_says_so(store: Store, serving: Callable[..., Served]) -> None:
    server = serving()
    none = server.ask("/thresholds/active.json")
    assert none.status == 404
    assert "nothing was released yet" in json.loads(none.body)["error"]
    assert server.ask("/healthz").status == 200


def test_a_release_is_served_byte_for_byte_and_not_again_while_it_stands(
    store: Store, serving: Callable[..., Served]
) -> None:
    first = publish(store, "manual:0.4")
    server = serving()
    got = server.ask("/thresholds/active.json")
    assert (got.status, got.body) == (200, first.document.encode())
    assert got.headers["etag"] == f'"{hashlib.sha256(got.body).hexdigest()}"'
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["content-type"] == "application/json"
    head = server.ask("/thresholds/active.json", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(got.body))
    for known in (got.headers["etag"], f'"other", W/{got.headers["etag"]}', "*"):
        same = server.ask("/thresholds/active.json", If_None_Match=known)
        assert (same.status, same.body) == (304, b"")
        assert same.headers["etag"] == got.headers["etag"]
    assert server.ask("/thresholds/active.json", If_None_Match='"other"').status == 200

    second = publish(store, "manual:0.5", note="ü ✓")
    changed = server.ask("/thresholds/active.json", If_None_Match=got.headers["etag"])
    assert (changed.status, changed.body) == (200, second.document.encode())
    assert server.ask("/thresholds/1.json").body == first.document.encode()
    assert server.ask("/thresholds/2.json").body == second.document.encode()


@pytest.mark.parametrize("path", ["3", "0", "-1", "1.5", "9" * 5000, "²", "a.json/", "%2e%2e/1", "1%00", "01", "١"])
def test_what_is_not_there_is_said_in_json(store: Store, serving: Callable[..., Served], path: str) -> None:
    publish(store, "manual:0.4")
    answer = serving().ask(f"/thresholds/{quote(path, safe='%/')}.json")
    assert answer.status == 404
    assert json.loads(answer.body)["error"]


def test_what_was_asked_for_and_what_there_is(store: Store, serving: Callable[..., Served]) -> None:
    server = serving()
    assert "nothing was released yet" in json.loads(server.ask("/thresholds/7.json").body)["error"]
    publish(store, "manual:0.4")
    publish(store, "manual:0.5")
    assert json.loads(server.ask("/thresholds/7.json").body)["error"] == "there is no release 7; the newest is 2"
    for path in ("/thresholds/active.json/", "/thresholds/1.json/", "/healthz/"):
        assert server.ask(path).status == 404, "an address is not guessed at"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(store: Store, serving: Callable[..., Served], method: str) -> None:
    publish(store, "manual:0.4")
    assert serving().ask("/thresholds/active.json", method).status == 405
    assert len(store.releases.list()) == 1


def test_with_a_token_only_its_bearer_may_read(store: Store, serving: Callable[..., Served]) -> None:
    publish(store, "manual:0.4")
    server = serving(token="sesame")
    for wrong in ("", "Bearer", "Bearer sesam", "Basic sesame", "sesame"):
        refused = server.ask("/thresholds/active.json", **({"Authorization": wrong} if wrong else {}))
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert b"sesame" not in refused.body
    assert server.ask("/thresholds/active.json", Authorization="bearer sesame").status == 200
    assert server.ask("/thresholds/7.json", Authorization="Bearer other").status == 401, "what there is, is not told"
    assert server.ask("/thresholds/active.json", Authorization="Bearer s\xe9same").status == 401
    assert server.ask("/healthz").status == 200


def test_a_runtime_follows_a_new_release(store: Store, serving: Callable[..., Served]) -> None:
    publish(store, "manual:0.4")
    server = serving(token="secret")
    with load(f"{server.url}/thresholds/active.json", reload_every=0.05, token="secret") as live:
        assert decide(live.current, {DETECTOR: 0.45}).flags == ()
        publish(store, "manual:0.5")
        deadline = time.monotonic() + 20
        while live.current.version == 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert live.problem is None
        assert decide(live.current, {DETECTOR: 0.45}).flags == (DETECTOR,)


def test_a_store_that_fails_is_said_and_not_shown_as_no_release(store: Store, serving: Callable[..., Served]) -> None:
    publish(store, "manual:0.4")
    server = serving()
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE releases RENAME TO away"))
    answer = server.ask("/thresholds/active.json")
    assert answer.status == 503
    assert "try again" in json.loads(answer.body)["error"]


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_verb_serves_until_it_is_told_to_end(store: Store, how: signal.Signals, code: int) -> None:
    row = publish(store, "manual:0.4")
    with process(store) as (running, server):
        assert server.ask("/thresholds/active.json").body == row.document.encode()
        running.send_signal(how)
        assert running.wait(timeout=20) == code
        assert running.stderr is not None
        assert running.stderr.read() == ""


@pytest.mark.both_databases
def test_two_servers_answer_alike_and_know_a_release_at_once(store_url: str) -> None:
    """Neither keeps anything: a runtime may ask the one now, and the other with the ETag of the first."""
    with closing(open_store(store_url)) as store, process(store) as (_, one), process(store) as (_, other):
        etag = ""
        for policy in ("manual:0.4", "manual:0.5"):
            document = publish(store, policy).document.encode()
            first, second = (server.ask("/thresholds/active.json", If_None_Match=etag) for server in (one, other))
            assert (first.status, first.body) == (second.status, second.body) == (200, document)
            told = [{**reply.headers, "date": ""} for reply in (first, second)]
            assert told[0] == told[1]
            etag = first.headers["etag"]
            assert other.ask("/thresholds/active.json", If_None_Match=etag).status == 304


def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with serve.listen("127.0.0.1", 0) as taken, pytest.raises(BadInput, match="--port"):
        serve.listen("127.0.0.1", taken.getsockname()[1])
    for host, port in (("127.0.0.1", 99999), ("no.such.host.invalid", 0), ("\0", 0)):
        with pytest.raises(BadInput):
            serve.listen(host, port)


def test_a_token_that_no_header_can_carry_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_SERVE_TOKEN", "sésame")
    assert cli.main(["serve", "--store", store.url, "--port", "0"]) == 2


def test_the_schema_is_served_under_the_address_that_it_names(
    store: Store, serving: Callable[..., Served], tmp_path: Path
) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    publish(store, "manual:0.4")
    server = serving(token="sekret")
    link = server.ask("/thresholds/active.json", Authorization="Bearer sekret").headers["link"]
    address = link.split(">")[0].removeprefix("<")
    reply = server.ask(address)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/schema+json")
    document = json.loads(reply.body)
    assert document["$id"] == f"{server.url}{address}"
    release = json.loads(server.ask("/thresholds/active.json", Authorization="Bearer sekret").body)
    Draft202012Validator(document).validate(release)
    assert not Draft202012Validator(document).is_valid({**release, "version": None})
