"""The detector `http`: a real server on loopback scores traces, and every fault of one becomes a sentence."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from calibrate import deadlines, registry
from calibrate.backends.chat import flow
from calibrate.errors import BadInput
from calibrate.types import Score, Trace
from tests.detectors.examples import complete, trace

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "groundedness-models.md"
TOKEN = "a-token-of-the-team"
ONE = trace("Two years. Theft too.", "It lasts 24 months.", "Theft is excluded.")
Plan = Callable[[int, dict[str, Any]], tuple[int, Any, dict[str, str]]]


class Server:
    """`plan` decides what the nth request is told; `bodies` and `heads` are what came."""

    def __init__(self, plan: Plan) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[dict[str, str]] = []
        self.most = self._now = 0
        lock, outer = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.bodies.append(body)
                    outer.heads.append(dict(self.headers))
                    outer._now += 1
                    outer.most = max(outer.most, outer._now)
                    number = len(outer.bodies)
                status, reply, headers = plan(number, body)
                content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                with lock:
                    outer._now -= 1
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/score"


Start = Callable[[Any], Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a server with a plan, or one that always gives the same reply, and points the detector at it."""
    monkeypatch.setattr(flow, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(flow, "MAX_WAIT", 0.02)
    for name in ("TOKEN", "CONCURRENCY", "TIMEOUT"):
        monkeypatch.delenv(f"TOUCHSTONE_HTTP_{name}", raising=False)
    servers: list[Server] = []

    def begin(plan: Any) -> Server:
        servers.append(Server(plan if callable(plan) else lambda number, body: (200, plan, {})))
        monkeypatch.setenv("TOUCHSTONE_HTTP_URL", servers[-1].url)
        return servers[-1]

    yield begin
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def score(*traces: Trace, **params: Any) -> list[Score]:
    return list(registry.make("http", params).score(traces or (ONE,)))


def why(*traces: Trace, **params: Any) -> str:
    (result,) = score(*traces, **params)
    assert (result.status, result.value) == ("failed", None)
    return result.reason or ""


def test_score_spans_and_reason_become_value_and_evidence(serve: Start) -> None:
    spans = [{"start": 0, "end": 10, "probability": 0.1}, {"start": 11, "end": 21, "probability": 0.9}]
    server = serve({"score": 0.9, "spans": spans, "reason": "Theft is excluded.", "version": "7"})
    (result,) = score()
    assert result.value == 0.9
    assert [(piece.text, piece.value, piece.start, piece.end) for piece in result.evidence[:3]] == [
        ("Theft too.", 0.9, 11, 21),
        ("Two years.", 0.1, 0, 10),
        ("Theft is excluded.", None, None, None),
    ]
    assert "version 7" in result.evidence[3].text
    assert server.bodies == [{"question": "?", "context": list(ONE.context_texts), "answer": ONE.answer}]
    assert "Authorization" not in server.heads[0]


def test_only_what_is_configured_is_sent(serve: Start) -> None:
    server = serve({"score": 0})
    score(replace(complete("http"), attributes={"customer": "secret"}), send="answer, sources")
    assert set(server.bodies[0]) == {"answer", "sources"}
    assert server.bodies[0]["sources"][1]["number"] == "2"


@pytest.mark.parametrize(
    ("params", "given", "value"),
    [
        ({"high_means": "supported"}, 0.25, 0.75),
        ({"lowest": -1, "highest": 1}, 0, 0.5),
        ({"lowest": 1, "highest": 5, "high_means": "supported"}, 5, 0),
    ],
)
def test_a_range_of_its_own_becomes_a_share(serve: Start, params: dict[str, Any], given: float, value: float) -> None:
    serve({"score": given})
    assert score(**params)[0].value == pytest.approx(value)


@pytest.mark.parametrize(
    ("reply", "match"),
    [
        ({"score": 1.2}, "1.2 is not from 0 to 1"),
        (b'{"score": NaN}', "nan is not from 0 to 1"),
        ({"score": True}, "no number"),
        ({"score": "0.3"}, 'gives the score "0.3", which is no number'),
        ({}, "has no score"),
        ([0.3], "no JSON object"),
        (b"<html>", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b" " * 5_000_000, "longer than"),
        ({"score": 0.3, "spans": [{"start": 5, "end": 900}]}, "marks 5 to 900 of an answer of 21 characters"),
        ({"score": 0.3, "spans": [{"start": 0, "end": 3, "probability": 7}]}, "probability 7"),
        ({"score": 0.3, "spans": "none"}, "no list"),
    ],
)
def test_a_reply_that_means_nothing_fails_with_a_sentence(serve: Start, reply: Any, match: str) -> None:
    serve(reply)
    assert match in why()


def test_a_busy_endpoint_is_asked_again_when_it_says(serve: Start) -> None:
    times: list[float] = []

    def plan(number: int, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        times.append(time.monotonic())
        return (200, {"score": 0.5}, {}) if number == 3 else (503 if number == 1 else 429, {}, {"Retry-After": "0.2"})

    serve(plan)
    assert score()[0].value == 0.5
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))


def test_what_no_retry_mends_stops_the_run(serve: Start) -> None:
    server = serve(lambda number, body: (401, {"detail": f"wrong token {TOKEN}"}, {}))
    results = score(*[replace(ONE, id=str(n)) for n in range(200)])
    assert all("TOUCHSTONE_HTTP_TOKEN" in (result.reason or "") for result in results)
    assert len(server.bodies) < 40


def test_a_redirect_takes_no_trace_elsewhere(serve: Start) -> None:
    server = serve(lambda number, body: (307, {}, {"Location": "http://127.0.0.1:1/other"}))
    assert "redirects are not followed" in why()
    assert len(server.bodies) == 1


def test_the_token_is_sent_and_never_shown(
    serve: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOUCHSTONE_HTTP_TOKEN", TOKEN)
    server = serve(lambda number, body: (400, {"error": f"do not like {TOKEN}"}, {}))
    reason = why()
    assert server.heads[0]["Authorization"] == f"Bearer {TOKEN}"
    assert "[token]" in reason
    detector = registry.make("http")
    shown = f"{reason} {detector.revision()} {registry.config_of(detector)} {caplog.text}"
    assert TOKEN not in shown
    assert detector.revision() == server.url.removeprefix("http://")
    monkeypatch.setenv("TOUCHSTONE_HTTP_URL", f"http://user:{TOKEN}@localhost/score?key={TOKEN}")
    assert TOKEN not in (detector.unavailable() or "")
    assert "TOUCHSTONE_HTTP_TOKEN" in (detector.unavailable() or "")


def test_a_slow_endpoint_is_given_up_in_time(serve: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(lambda number, body: (time.sleep(3), (200, {"score": 0}, {}))[1])
    with deadlines.ending(time.monotonic() + 0.4):
        began = time.monotonic()
        reason = why()
    assert time.monotonic() - began < 2.5
    assert "deadline" in reason or "within" in reason


def test_nobody_there_is_said_once_for_all(serve: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_HTTP_URL", "http://127.0.0.1:9/score")
    results = score(*[replace(ONE, id=str(n)) for n in range(50)])
    assert all("nobody answered at 127.0.0.1:9/score" in (result.reason or "") for result in results)


def test_requests_overlap_within_the_limit_and_scores_come_in_order(
    serve: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_HTTP_CONCURRENCY", "3")

    def plan(number: int, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        time.sleep(0.05)
        return 200, {"score": int(body["answer"]) / 100}, {}

    server = serve(plan)
    results = score(*[replace(ONE, id=str(n), answer=str(n)) for n in range(24)], replace(ONE, id="empty", answer=""))
    assert [result.value for result in results[:24]] == [n / 100 for n in range(24)]
    assert (results[24].trace_id, results[24].status) == ("empty", "abstained")
    assert server.most == 3


def test_another_version_than_the_declared_one_fails(serve: Start) -> None:
    serve({"score": 0.1, "version": "2"})
    assert "version '2', and '1' is expected" in why(served="1")
    assert score(served="2")[0].value == 0.1
    assert registry.make("http", {"served": "2"}).revision().endswith("@2")


@pytest.mark.parametrize(
    "params", [{"send": "answer,labels"}, {"send": "question"}, {"lowest": 1, "highest": 1}, {"lowest": "nan"}]
)
def test_parameters_that_cannot_be_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="http"):
        registry.make("http", params)


def test_the_server_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/how-to/groundedness-models.md, served by uvicorn."""
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "Starlette" in block
    )
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    server = uvicorn.Server(uvicorn.Config(names["app"], port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        monkeypatch.setenv("TOUCHSTONE_HTTP_URL", f"http://127.0.0.1:{port}/score")
        (result,) = score(trace("It lasts 24 months. Theft costs 99 euros.", "It lasts 24 months."))
        assert result.status == "scored", result.reason
        assert result.value == 0.5
        assert "99" in result.evidence[0].text
    finally:
        server.should_exit = True
        thread.join(5)
