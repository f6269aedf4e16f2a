"""Faults that pass and faults that stay: tries, waits, Retry-After. Injected over real HTTP."""

from __future__ import annotations

import random
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from calibrate.backends.chat import ChatError, Reply, chat, flow
from calibrate.backends.chat.flow import requested_wait, wait_before
from tests.backends.chat.asking import Start, first, one, request
from tests.backends.chat_stub import Asked, Say, good, stubbed, wrong


@pytest.mark.parametrize(
    "fault",
    [
        wrong(500),
        wrong(503),
        wrong(408),
        wrong(409),
        wrong(425),
        wrong(429),
        Say(body=b"<html>gateway</html>"),
        Say(body=b'"a text"'),
        Say(body=b"[1]"),
        Say(body=b'{"choices": "none"}'),
        Say(body=b'{"choices": [{"index": 0}]}'),
        Say(body=b'{"choices": [' + b" " * 5000, cut=True),
        Say(status=502, body=b"<html>bad gateway</html>"),
    ],
    ids=lambda say: f"{say.status}{'-cut' if say.cut else ''}-{say.body[:12].decode()}",
)
def test_a_passing_fault_is_tried_again(start: Start, fault: Say) -> None:
    stub, chat = start(first(fault, fault))
    reply = one(chat)
    assert isinstance(reply, Reply), reply
    assert reply.text == "hello"
    assert reply.model == "stub-1"
    assert (reply.usage.requests, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 10, 5)
    assert len(stub.asked) == 3


def test_a_fault_that_stays_is_an_error_after_a_few_tries(start: Start) -> None:
    stub, chat = start(lambda asked: wrong(500, "the engine\x1b[2J is\u202e on fire"))
    error = one(chat)
    assert isinstance(error, ChatError)
    assert "said 500: the engine" in str(error)
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert len(stub.asked) == flow.TRIES


def test_retry_after_in_seconds_is_honoured(start: Start) -> None:
    stub, chat = start(first(wrong(429, headers={"Retry-After": "1"})))
    assert isinstance(one(chat), Reply)
    assert stub.gaps[0] >= 1


def test_retry_after_as_a_date_is_honoured(start: Start) -> None:
    def plan(asked: Asked) -> Say:
        when = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
        return wrong(429, headers={"Retry-After": when}) if asked.number == 0 else good(asked)

    stub, chat = start(plan)
    assert isinstance(one(chat), Reply)
    assert stub.gaps[0] >= 1.9  # the date has whole seconds


def test_while_an_endpoint_wants_rest_nothing_is_sent(start: Start) -> None:
    stub, chat = start(first(wrong(429, headers={"Retry-After": "1"})), CONCURRENCY=1)
    assert all(isinstance(reply, Reply) for reply in chat.ask(request(str(i)) for i in range(3)))
    assert len(stub.asked) == 4
    assert stub.gaps[0] >= 1


def test_an_endpoint_that_wants_an_hour_is_not_waited_for(start: Start) -> None:
    stub, chat = start(lambda asked: wrong(429, headers={"Retry-After": "3600"}))
    assert "asks to wait 3600 s" in str(one(chat))
    assert len(stub.asked) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        (" 7 ", 7.0),
        ("-1", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Saturday, 21-Nov-26 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 14:00:30 +0200", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
    ],
)
def test_what_retry_after_means(text: str, seconds: float | None) -> None:
    assert requested_wait({"retry-after": text}, datetime(2026, 11, 21, 12, tzinfo=UTC)) == seconds


def test_a_date_is_meant_by_the_clock_of_the_endpoint() -> None:
    headers = {"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT", "date": "Sat, 21 Nov 2026 12:00:20 GMT"}
    assert requested_wait(headers, datetime(2020, 1, 1, tzinfo=UTC)) == 10


def test_waits_are_spread_over_a_bound_that_doubles() -> None:
    rng = random.Random(1)
    for attempt, bound in ((2, 0.5), (3, 1), (4, 2), (8, 30), (9, 30)):
        waits = [wait_before(attempt, None, rng) for _ in range(2000)]
        assert 0 <= min(waits) < bound * 0.02
        assert bound * 0.98 < max(waits) <= bound
        assert sum(waits) / 2000 == pytest.approx(bound / 2, rel=0.05)  # the mean of a uniform draw
    assert all(4 <= wait_before(2, 4, rng) <= 4.5 for _ in range(100))


def test_a_reply_that_does_not_come_in_time_is_asked_for_again(start: Start) -> None:
    stub, chat = start(lambda asked: good(asked, after=5 if asked.number == 0 else 0), TIMEOUT=0.3)
    assert isinstance(one(chat), Reply)
    assert len(stub.asked) == 2


def test_when_none_comes_in_time_the_error_names_the_setting(start: Start) -> None:
    _, chat = start(lambda asked: good(asked, after=2), TIMEOUT=0.1)
    assert "within 0.1 s (TOUCHSTONE_CHAT_TIMEOUT)" in str(one(chat))


def test_an_endpoint_that_starts_late_is_waited_for(
    start: Start, no_chat: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "FIRST_WAIT", 0.5)
    monkeypatch.setattr(flow, "MAX_WAIT", 2.0)
    monkeypatch.setattr(flow.random.Random, "uniform", lambda self, low, high: high)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", f"http://127.0.0.1:{port}/v1")
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "late")
    replies: list[Reply | ChatError] = []
    asking = threading.Thread(target=lambda: replies.append(one(chat())))
    asking.start()
    time.sleep(0.7)
    with stubbed(good, port=port):
        asking.join(30)
    assert isinstance(replies[0], Reply), replies


def test_where_nobody_answers_one_request_finds_that_out_for_all(
    start: Start, no_chat: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "none")
    monkeypatch.setenv("TOUCHSTONE_CHAT_CONCURRENCY", "2")
    errors = list(chat().ask(request(str(i)) for i in range(200)))
    assert {str(error) for error in errors} <= {
        "nobody answered at 127.0.0.1:9/v1 in 6 tries; check TOUCHSTONE_CHAT_URL and that the server runs"
    }
    assert all(isinstance(error, ChatError) and error.final for error in errors)
