"""A busy server is asked again as it asks, a refusal is said at once, and no key is shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
import requests

from calibrate.errors import BadInput, TouchstoneError, Unavailable
from calibrate.ingest.systems import open_source
from calibrate.ingest.systems.base import PullRequest, need
from calibrate.ingest.systems.patience import patiently

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@contextmanager
def answering(*answers: tuple[int, dict[str, str]], body: bytes = b"") -> Iterator[str]:
    """A server that answers with these statuses and headers, one after another, then with 200; always with `body`."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = left.pop(0) if left else (200, {})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def by_httpx(url: str) -> int:
    return httpx.get(url).raise_for_status().status_code


def by_requests(url: str) -> int:
    answer = requests.get(url, timeout=5)
    answer.raise_for_status()
    return answer.status_code


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def request_(waits: list[float]) -> PullRequest:
    return PullRequest(now=lambda: NOW, wait=waits.append)


@pytest.mark.parametrize("get", [by_httpx, by_requests])
def test_it_waits_as_the_server_asks_else_longer_each_time(get: Any, request_: PullRequest, waits: list[float]) -> None:
    later = format_datetime(NOW + timedelta(seconds=42), usegmt=True)
    asked = ((429, {"Retry-After": "7"}), (503, {"Retry-After": later}), (500, {}), (502, {}))
    with answering(*asked) as url:
        assert patiently(lambda: get(url), request_, "Phoenix") == 200
    assert waits == [7.0, 42.0, 4.0, 8.0]


def test_it_gives_up_after_six_attempts_with_a_sentence(request_: PullRequest, waits: list[float]) -> None:
    with (
        answering(*[(503, {})] * 9) as url,
        pytest.raises(TouchstoneError, match="Phoenix did not answer in 6 attempts"),
    ):
        patiently(lambda: by_httpx(url), request_, "Phoenix")
    assert waits == [1, 2, 4, 8, 16]


def test_a_server_that_is_not_there_is_tried_again(request_: PullRequest, waits: list[float]) -> None:
    with pytest.raises(TouchstoneError, match="MLflow did not answer"):
        patiently(lambda: by_requests("http://127.0.0.1:9"), request_, "MLflow", attempts=3)
    assert waits == [1, 2]


def test_a_refusal_is_said_at_once_without_the_key(request_: PullRequest, waits: list[float]) -> None:
    with answering((401, {})) as url, pytest.raises(BadInput, match="answered 401") as refusal:
        patiently(lambda: by_httpx(f"{url}/?key=s3cret"), request_, "Phoenix", secrets=("s3cret",))
    assert "s3cret" not in str(refusal.value)
    assert "check its key" in str(refusal.value)
    assert waits == []


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"data": [{"id', b""])
@pytest.mark.parametrize("get", [httpx.get, requests.get])
def test_a_page_or_half_an_answer_is_refused_with_the_remedy(
    get: Any, body: bytes, request_: PullRequest, waits: list[float]
) -> None:
    with (
        answering(body=body) as url,
        pytest.raises(BadInput, match="Phoenix at x answers with something that is no JSON"),
    ):
        patiently(lambda: get(url).json(), request_, "Phoenix at x")
    assert waits == []


def test_the_headers_of_an_answer_are_not_shown(request_: PullRequest) -> None:
    from langfuse.api.core import ApiError

    error = ApiError(status_code=400, headers={"set-cookie": "a", "date": "b"}, body={"message": "no such\nfield"})

    def ask() -> None:
        raise error

    with pytest.raises(BadInput) as refusal:
        patiently(ask, request_, "Langfuse")
    assert str(refusal.value) == r"Langfuse refuses: it answered 400 ({'message': 'no such\nfield'})"


@pytest.mark.parametrize(
    ("system", "bodies"),
    [
        ("langsmith", [b'[{"id": 5}]']),
        ("langfuse", [b'{"data": [{"id": 5}]}', b"[]"]),
        ("phoenix", [b"{}", b"[]", b'{"data": 5}', b'{"data": [5]}']),
    ],
)
def test_an_answer_of_another_form_is_one_sentence(
    system: str, bodies: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANGSMITH_API_KEY", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"):
        monkeypatch.setenv(name, "key")
    for body in bodies:
        with answering(body=body) as url, pytest.raises(TouchstoneError, match="form that its client") as error:
            list(open_source(system, PullRequest(url=url, project="shop")).fetch(None, None))
        assert "\n" not in str(error.value)


def test_what_mlflow_answers_is_heard_though_its_client_keeps_it_to_itself(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr(mlflow, "set_tracking_uri", lambda uri: None)  # the process keeps its own

    def open_(url: str) -> Any:
        return open_source("mlflow", PullRequest(url=url, project="shop", now=lambda: NOW, wait=waits.append))

    with answering((429, {"Retry-After": "7"}), (429, {"Retry-After": "42"}), body=b"{}") as url:
        with pytest.raises(BadInput, match="answers without an experiment"):
            open_(url)
        assert waits == [7.0, 42.0]
    with answering((401, {}), body=b'{"message": "who are you?"}') as url:
        with pytest.raises(BadInput, match=r"it answered 401 \(.*who are you.*; check its key"):
            open_(url)
        assert waits == [7.0, 42.0]


def test_an_error_of_the_program_is_no_business_of_the_server(request_: PullRequest) -> None:
    with pytest.raises(ZeroDivisionError):
        patiently(lambda: 1 / 0, request_, "Phoenix")


def test_a_client_that_is_not_installed_is_named() -> None:
    with pytest.raises(Unavailable, match=r"`pull x` needs the client no-such-client, .*: pip install no-such-client"):
        need("no_such_client", "`pull x`", install="no-such-client")
