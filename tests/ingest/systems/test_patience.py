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
from calibrate.ingest.systems.base import PullRequest, need
from calibrate.ingest.systems.patience import patiently

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@contextmanager
def answering(*answers: tuple[int, dict[str, str]]) -> Iterator[str]:
    """A server that answers with these statuses and headers, one after another, then with 200."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = left.pop(0) if left else (200, {})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

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


def test_an_error_of_the_program_is_no_business_of_the_server(request_: PullRequest) -> None:
    with pytest.raises(ZeroDivisionError):
        patiently(lambda: 1 / 0, request_, "Phoenix")


def test_a_client_that_is_not_installed_is_named() -> None:
    with pytest.raises(Unavailable, match=r"`pull x` needs the client no-such-client, .*: pip install no-such-client"):
        need("no_such_client", "`pull x`", install="no-such-client")
