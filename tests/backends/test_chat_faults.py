"""What the chat backend makes of endpoints that fail, refuse, lag and lie. Faults are injected over real HTTP."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from calibrate import workspace
from calibrate.backends.chat import Chat, ChatError, Reply, Request, chat, flow
from calibrate.backends.chat.flow import Throttle, asked_wait, wait_before
from calibrate.backends.chat.price import price_of, table
from calibrate.backends.chat.wire import Unusable, completion
from calibrate.errors import BadInput
from calibrate.settings import chat as chat_settings
from calibrate.workspace import Budget, Workspace
from tests.backends.chat_stub import Asked, Say, Stub, good, stubbed, wrong

KEY = "sk-secret-0123456789"
Plan = Callable[[Asked], Say]
Start = Callable[..., tuple[Stub, Chat]]


class Cache(dict[str, dict[str, object]]):
    def put(self, key: str, model: str, reply: dict[str, object]) -> None:
        self[key] = json.loads(json.dumps(reply))


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, no_chat: None) -> Start:
    """Starts a stub and gives it with a Chat that asks it; waits between tries are short."""
    monkeypatch.setattr(flow, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(flow, "LONGEST_WAIT", 0.05)
    with ExitStack() as stack:

        def begin(plan: Plan, **variables: object) -> tuple[Stub, Chat]:
            stub = stack.enter_context(stubbed(plan))
            given = {"URL": stub.url, "MODEL": "stub", "KEY": KEY, **variables}
            for name, value in given.items():
                monkeypatch.setenv(f"TOUCHSTONE_CHAT_{name}", str(value))
            return stub, chat()

        yield begin  # type: ignore[misc]


def request(text: str = "hello", **given: object) -> Request:
    return Request((("user", text),), **given)  # type: ignore[arg-type]


def one(chat: Chat, asked: Request | None = None) -> Reply | ChatError:
    (result,) = chat.ask([asked or request()])
    return result


def first(*says: Say) -> Plan:
    """These for the first requests, then good replies."""
    return lambda asked: says[asked.number] if asked.number < len(says) else good(asked)


# --------------------------------------------------------------------------------------------------- tries and waits


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
    assert asked_wait({"retry-after": text}, datetime(2026, 11, 21, 12, tzinfo=UTC)) == seconds


def test_a_date_is_meant_by_the_clock_of_the_endpoint() -> None:
    headers = {"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT", "date": "Sat, 21 Nov 2026 12:00:20 GMT"}
    assert asked_wait(headers, datetime(2020, 1, 1, tzinfo=UTC)) == 10


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
    monkeypatch.setattr(flow, "LONGEST_WAIT", 2.0)
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


# ------------------------------------------------------------------------------------------------------ final errors


def test_a_refused_key_is_one_clear_error_and_is_not_shown(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    stub, chat = start(lambda asked: wrong(401, f"Incorrect API key provided: {KEY}"), CONCURRENCY=4)
    errors = list(chat.ask(request(str(i)) for i in range(100)))
    assert {str(error) for error in errors} == {
        f"the chat endpoint at {stub.url[7:]} does not accept the key (401); check TOUCHSTONE_CHAT_KEY"
    }
    assert len(stub.asked) <= 4
    assert stub.asked[0].key == f"Bearer {KEY}"
    shown = [caplog.text, chat.revision(), repr(chat._given), *(repr(error.__context__) for error in errors)]
    assert not any(KEY in text for text in shown)


@pytest.mark.parametrize("status", [400, 403, 418, 500])
def test_an_endpoint_that_repeats_the_key_is_not_repeated(start: Start, status: int) -> None:
    _, chat = start(lambda asked: wrong(status, f"your key {KEY} is bad"))
    assert "your key [key] is bad" in str(one(chat))


def test_a_missing_model_names_both_settings(start: Start) -> None:
    stub, chat = start(lambda asked: wrong(404, "model not found"), CONCURRENCY=2)
    errors = list(chat.ask(request(str(i)) for i in range(9)))
    assert "TOUCHSTONE_CHAT_MODEL" in str(errors[0])
    assert len(stub.asked) <= 2


def test_an_account_without_money_is_not_tried_again(start: Start) -> None:
    stub, chat = start(lambda asked: wrong(429, "You exceeded your quota", code="insufficient_quota"), CONCURRENCY=1)
    errors = list(chat.ask(request(str(i)) for i in range(5)))
    assert all("no money left" in str(error) for error in errors)
    assert len(stub.asked) == 1


@pytest.mark.parametrize("status", [400, 403, 422, 451])
def test_a_refused_request_fails_alone_and_at_once(start: Start, status: int) -> None:
    stub, chat = start(lambda asked: wrong(status, "too long") if asked.number == 0 else good(asked), CONCURRENCY=1)
    results = list(chat.ask([request("a"), request("b")]))
    assert isinstance(results[0], ChatError)
    assert "too long" in str(results[0])
    assert isinstance(results[1], Reply)
    assert len(stub.asked) == 2


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b'{"choices": []}', "empty list of choices"),
        (b'{"choices": [{"message": {"content": null}, "finish_reason": "tool_calls"}]}', "no text .*tool_calls"),
    ],
)
def test_a_reply_without_an_answer_is_an_error_and_not_tried_again(start: Start, body: bytes, what: str) -> None:
    stub, chat = start(lambda asked: Say(body=body))
    with pytest.raises(ChatError, match=what):
        raise one(chat)  # type: ignore[misc]
    assert len(stub.asked) == 1


def test_without_an_endpoint_every_request_says_what_to_set(no_chat: None) -> None:
    nowhere = chat("some-model")
    assert "TOUCHSTONE_CHAT_URL" in (nowhere.unavailable() or "")
    assert nowhere.revision() == "some-model@missing"
    assert [str(error) for error in nowhere.ask([request(), request()])] == [nowhere.unavailable()] * 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("URL", "localhost:8080", "looks like http://localhost:8080/v1"),
        ("URL", "ftp://host/v1", "no base URL"),
        ("URL", "http://[::1/v1", "no base URL"),
        ("URL", "https://me:hunter2@host/v1", "a key belongs in TOUCHSTONE_CHAT_KEY"),
        ("URL", "https://host/v1?key=hunter2", "a key belongs in TOUCHSTONE_CHAT_KEY"),
        ("CONCURRENCY", "0", "whole number from 1 to 1024"),
        ("CONCURRENCY", "2.5", "whole number"),
        ("TIMEOUT", "soon", "number of seconds"),
        ("TIMEOUT", "nan", "number of seconds"),
    ],
)
def test_settings_that_cannot_be_are_said_and_never_raised(
    no_chat: None, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", "http://host/v1")
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "m")
    monkeypatch.setenv(f"TOUCHSTONE_CHAT_{name}", value)
    why = chat().unavailable() or ""
    assert said in why
    assert "hunter2" not in why
    assert isinstance(one(chat()), ChatError)


def test_url_and_key_fall_back_to_the_usual_variables() -> None:
    usual = {"OPENAI_BASE_URL": "http://a/v1/", "OPENAI_API_KEY": "k1"}
    assert (chat_settings(usual).url, chat_settings(usual).key) == ("http://a/v1", "k1")
    ours = usual | {"TOUCHSTONE_CHAT_URL": "http://b/v1", "TOUCHSTONE_CHAT_KEY": "k2"}
    assert (chat_settings(ours).url, chat_settings(ours).key) == ("http://b/v1", "k2")


# -------------------------------------------------------------------------------------------------- order and cancel


def test_results_come_in_order_as_soon_as_they_can(start: Start) -> None:
    _, chat = start(lambda asked: good(asked, after=0.6 if asked.body["messages"][-1]["content"] == "0" else 0.01))
    asking = chat.ask(request(str(i)) for i in range(40))
    assert [reply.text for reply in asking if isinstance(reply, Reply)] == [str(i) for i in range(40)]


def test_the_first_result_does_not_wait_for_the_last(start: Start) -> None:
    stub, chat = start(lambda asked: good(asked, after=0 if asked.number == 0 else 30), CONCURRENCY=4)
    asking = chat.ask(request(str(i)) for i in range(8))
    assert next(asking).text == "0"  # type: ignore[union-attr]
    asking.close()  # type: ignore[attr-defined]
    give_up = time.monotonic() + 10
    while stub.in_flight and time.monotonic() < give_up:
        time.sleep(0.02)
    assert stub.in_flight == 0
    assert stub.gone == len(stub.asked) - 1  # every asker has left, none is served


def test_requests_are_read_only_a_little_ahead(start: Start) -> None:
    _, chat = start(good, CONCURRENCY=2)
    read: list[int] = []

    def source() -> object:
        for i in range(1000):
            read.append(i)
            yield request(str(i))

    asking = chat.ask(source())  # type: ignore[arg-type]
    for _ in range(10):
        next(asking)
    asking.close()  # type: ignore[attr-defined]
    assert len(read) <= 10 + 8 * 2


def test_the_same_request_twice_is_sent_once(start: Start) -> None:
    stub, chat = start(good)
    replies = list(chat.ask([request("a"), request("b"), request("a"), request("a", temperature=1.0)]))
    assert [reply.usage.cached for reply in replies if isinstance(reply, Reply)] == [0, 0, 1, 0]
    assert len(stub.asked) == 3


def test_what_an_endpoint_cannot_take_is_not_sent(start: Start) -> None:
    stub, chat = start(good)
    assert isinstance(one(chat, request("a\x00b\ud800c\U0001f600")), Reply)
    assert stub.asked[0].body["messages"][0]["content"] == "a�b�c\U0001f600"


# ------------------------------------------------------------------------------------------------------- concurrency


def test_no_more_are_in_flight_than_the_bound(start: Start) -> None:
    stub, chat = start(lambda asked: good(asked, after=0.02), CONCURRENCY=5)
    assert len(list(chat.ask(request(str(i)) for i in range(60)))) == 60
    assert max(asked.alongside for asked in stub.asked) == 5


def test_concurrency_shrinks_until_the_endpoint_bears_it_and_grows_again(start: Start) -> None:
    bears = [3]

    def plan(asked: Asked) -> Say:
        return wrong(429) if asked.alongside > bears[0] else good(asked, after=0.15)

    stub, chat = start(plan, CONCURRENCY=16)
    assert all(isinstance(reply, Reply) for reply in chat.ask(request(str(i)) for i in range(40)))
    throttle = chat._endpoint.throttle
    assert throttle.limit < 8
    assert sum(asked.alongside > 3 for asked in stub.asked) < 80  # without adapting, 13 of every 16: 170 and more
    bears[0], before = 99, throttle.limit
    assert all(isinstance(reply, Reply) for reply in chat.ask(request(f"more {i}") for i in range(40)))
    # One more for every `limit` successes: limit² grows by 2 with each, whatever the time they take.
    assert throttle.limit == pytest.approx((before**2 + 2 * 40) ** 0.5, rel=0.1)


def test_the_throttle_halves_once_for_those_that_flew_together() -> None:
    async def flight() -> list[float]:
        throttle = Throttle(16)
        seen = []
        async with throttle.slot() as one, throttle.slot() as other:
            throttle.overloaded(one)
            throttle.overloaded(other)
            seen.append(throttle.limit)
        await asyncio.sleep(0.01)
        for _ in range(10):
            async with throttle.slot() as began:
                throttle.overloaded(began)
            await asyncio.sleep(0.001)
        seen.append(throttle.limit)
        for _ in range(3):
            throttle.succeeded()
        seen.append(throttle.limit)
        for _ in range(1000):
            throttle.succeeded()
        return [*seen, throttle.limit]

    halved, least, grown, most = asyncio.run(flight())
    assert (halved, least, most) == (8, 1, 16)
    assert grown == pytest.approx(1 + 1 + 1 / 2 + 1 / 2.5)  # one more after as many successes as are in flight


def test_a_cancelled_wait_does_not_lose_its_turn() -> None:
    async def flight() -> None:
        throttle = Throttle(1)

        async def pass_through() -> None:
            async with throttle.slot():
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(pass_through()) for _ in range(20)]
        await asyncio.sleep(0.005)
        for task in tasks[1::2]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert throttle.in_flight == 0

    asyncio.run(flight())


# ------------------------------------------------------------------------------------------------------------ budget

PRICES = "model,prompt,completion,as_of\nstub*,1000,2000,2026-11-21\nfree*,0,0,\n*,none,none,\n"


def paid(limit: float | None = None, **given: object) -> Workspace:
    budget = None if limit is None else Budget(limit)
    return Workspace(files={"prices.csv": PRICES}, budget=budget, **given)  # type: ignore[arg-type]


def test_a_reply_says_what_it_cost(start: Start) -> None:
    _, chat = start(good)
    with workspace.using(paid()):
        reply = one(chat)
    assert isinstance(reply, Reply)
    assert reply.usage.cost == pytest.approx((10 * 1000 + 5 * 2000) / 1e6)


def test_the_budget_stops_the_run_and_is_never_exceeded(start: Start) -> None:
    stub, chat = start(good, CONCURRENCY=8)
    # A reply costs $0.02, and as much is set aside before: 10 tokens in (a quarter of 24 bytes, and 4) and 5 out.
    with workspace.using(paid(0.1)) as here:
        results = list(chat.ask(request(f"{i:024}", max_tokens=5) for i in range(50)))
    replies = [reply for reply in results if isinstance(reply, Reply)]
    assert len(replies) == len(stub.asked) == 5
    assert sum(reply.usage.cost or 0 for reply in replies) == pytest.approx(0.1)
    assert here.budget is not None
    assert here.budget.spent == pytest.approx(0.1)
    errors = [error for error in results if isinstance(error, ChatError)]
    assert all(str(error).startswith("the budget of $0.1 does not allow ") and error.final for error in errors)


def test_what_is_set_aside_but_not_spent_is_there_for_the_next(start: Start) -> None:
    _, chat = start(lambda asked: good(asked, after=0.01), CONCURRENCY=8)
    # Each may cost $2 and costs $0.02: one at a time, all twenty fit into $2.4.
    with workspace.using(paid(2.4)):
        results = list(chat.ask(request(str(i), max_tokens=1000) for i in range(15)))
    assert all(isinstance(result, Reply) for result in results)


def test_a_failed_request_costs_nothing(start: Start) -> None:
    _, chat = start(lambda asked: wrong(403, "no"))
    with workspace.using(paid(1.0)) as here:
        assert isinstance(one(chat), ChatError)
    assert here.budget is not None
    assert here.budget.spent == 0


def test_a_budget_needs_a_price(start: Start) -> None:
    stub, chat = start(good, MODEL="unheard-of")
    with workspace.using(paid(5)):
        assert "the price of 'unheard-of' is not known" in str(one(chat))
    assert not stub.asked
    _, free = start(good, MODEL="free-one")
    with workspace.using(paid(0)):
        reply = one(free)
    assert isinstance(reply, Reply)
    assert reply.usage.cost == 0


def test_an_unknown_price_makes_the_cost_unknown_not_nothing(start: Start) -> None:
    _, chat = start(good, MODEL="unheard-of")
    reply = one(chat)
    assert isinstance(reply, Reply)
    assert reply.usage.cost is None
    assert chat.estimate([request()]).cost is None


def test_an_estimate_sends_nothing(start: Start) -> None:
    stub, chat = start(good)
    with workspace.using(paid(replies=Cache())):
        assert isinstance(one(chat, request("known")), Reply)
        found = chat.estimate(
            [request("known"), request("x" * 400, max_tokens=100), request("x" * 400, max_tokens=100)]
        )
    assert (found.requests, found.cached, found.prompt_tokens, found.completion_tokens) == (1, 2, 104, 100)
    assert found.cost == pytest.approx((104 * 1000 + 100 * 2000) / 1e6)
    assert len(stub.asked) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("model,price\n", "line 1"),
        ("model,prompt,completion,as_of\na,1,2\n", "line 2: 3 fields"),
        ("# c\nmodel,prompt,completion,as_of\n\na,1,two,2026-01-01\n", "line 4: 'two' is no price"),
        ("model,prompt,completion,as_of\na,-1,2,\n", "line 2: '-1' is no price"),
        ("model,prompt,completion,as_of\na,nan,2,\n", "line 2"),
        ("model,prompt,completion,as_of\na,none,2,\n", "line 2"),
        ("model,prompt,completion,as_of\na,1,2,yesterday\n", "line 2: 'yesterday' is no day"),
        ("model,prompt,completion,as_of\n,1,2,\n", "line 2"),
    ],
)
def test_a_bad_price_table_is_refused_with_its_line(start: Start, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        table(text)
    stub, chat = start(good)
    with workspace.using(Workspace(files={"prices.csv": text})):
        assert said in str(one(chat))
    assert not stub.asked


@pytest.mark.parametrize(
    ("model", "price"),
    [("gpt-4o-mini", (0.15, 0.6)), ("GPT-4o-2024-08-06", (2.5, 10)), ("gpt-4o-audio-preview", None), ("own", None)],
)
def test_the_first_matching_line_counts(model: str, price: tuple[float, float] | None) -> None:
    found = price_of(model)
    assert (None if found is None else (found.prompt, found.completion)) == price


# ------------------------------------------------------------------------------------------- doing without a part


def lacks(part: str, message: str, status: int = 400) -> Plan:
    return lambda asked: wrong(status, message) if part in asked.body else good(asked)


@pytest.mark.parametrize(
    ("part", "message", "status"),
    [
        ("response_format", "response_format json_schema is not supported", 400),
        ("response_format", "extra fields not permitted", 422),
        ("logprobs", "This model does not support logprobs", 400),
        ("seed", "Unrecognized request argument supplied: seed", 400),
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model", 400),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", 400),
        ("n", "'n' is not supported; only one completion choice is allowed", 400),
    ],
)
def test_a_part_that_the_endpoint_does_not_take_is_left_out_and_remembered(
    start: Start, part: str, message: str, status: int
) -> None:
    stub, chat = start(lacks(part, message, status), CONCURRENCY=1)
    full = {"schema": {"type": "object"}, "logprobs": 2, "seed": 1, "n": 2}
    replies = list(chat.ask([request("a", **full), request("b", **full)]))
    assert all(isinstance(reply, Reply) and len(reply.texts) == 2 for reply in replies), replies
    assert sum(part in asked.body for asked in stub.asked) == 1
    if part == "max_tokens":
        assert stub.asked[-1].body["max_completion_tokens"] == 256
    others = {"response_format", "logprobs", "seed", "temperature", "n"} - {part}
    assert others <= set(stub.asked[1].body) or part == "n"


def test_a_request_refused_for_its_content_teaches_nothing(start: Start) -> None:
    def plan(asked: Asked) -> Say:
        return wrong(400, "content policy") if asked.body["messages"][0]["content"] == "bad" else good(asked)

    stub, chat = start(plan, CONCURRENCY=1)
    bad, fine = chat.ask([request("bad", schema={"type": "object"}), request("fine", schema={"type": "object"})])
    assert "content policy" in str(bad)
    assert isinstance(fine, Reply)
    assert "response_format" in stub.asked[-1].body


def test_an_endpoint_that_gives_one_answer_is_asked_for_the_others(start: Start) -> None:
    stub, chat = start(lambda asked: good(asked, n=1))
    replies = list(chat.ask([request("a", n=3, temperature=1.0, seed=7), request("b", n=3, temperature=1.0)]))
    for reply, text in zip(replies, "ab", strict=True):
        assert isinstance(reply, Reply)
        assert reply.texts == (text,) * 3
        assert reply.usage.requests == 3
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (30, 15)
    assert {asked.body.get("seed") for asked in stub.asked} == {7, 8, 9, None}
    assert isinstance(one(chat, request("c", n=3)), Reply)
    assert "n" not in stub.asked[-1].body


def test_answers_that_fail_on_the_way_are_left_out_and_such_a_reply_is_not_kept(start: Start) -> None:
    _, chat = start(lambda asked: good(asked, n=1) if asked.number < 2 else wrong(403))
    with workspace.using(Workspace(replies=Cache())) as here:
        reply = one(chat, request("a", n=4))
    assert isinstance(reply, Reply)
    assert len(reply.texts) == 2
    assert not here.replies


# ------------------------------------------------------------------------------------------------------------- cache


def test_a_reply_is_kept_whole_and_costs_nothing_the_second_time(start: Start) -> None:
    tokens = [{"token": "he", "logprob": -0.1, "top_logprobs": [{"token": "he", "logprob": -0.1}]}]
    choice = {"message": {"content": "he"}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    stub, chat = start(lambda asked: good(asked, choices=[choice]))
    with workspace.using(paid(replies=Cache())):
        before, after = one(chat, request(logprobs=1)), one(chat, request(logprobs=1))
    assert isinstance(before, Reply)
    assert isinstance(after, Reply)
    assert (before.text, before.finish, before.tokens, before.model) == (
        after.text,
        after.finish,
        after.tokens,
        after.model,
    )
    assert (after.usage.requests, after.usage.cached, after.usage.cost) == (0, 1, 0)
    assert len(stub.asked) == 1


def test_the_cache_tells_requests_models_and_places_apart() -> None:
    asked = [
        request(),
        request("Hello"),
        request(temperature=1.0),
        request(n=2),
        request(max_tokens=1),
        request(logprobs=1),
        request(schema={}),
        request(seed=0),
        Request((("system", "hello"),)),
    ]
    keys = {one.digest(model, url) for one in asked for model in "ab" for url in ("http://x", "http://y")}
    assert len(keys) == len(asked) * 4
    same = request(schema={"a": 1, "b": 2}).digest("m", "u")
    assert same == request(schema={"b": 2, "a": 1}, temperature=0).digest("m", "u")


def test_what_another_version_kept_is_asked_for_again(start: Start) -> None:
    stub, chat = start(good)
    with workspace.using(Workspace(replies=Cache())) as here:
        one(chat)
        assert isinstance(here.replies, Cache)
        for key in here.replies:
            here.replies[key] = {"choices": [["only a text"]]}
        assert isinstance(one(chat), Reply)
    assert len(stub.asked) == 2


def test_an_error_is_not_kept(start: Start) -> None:
    _, chat = start(first(wrong(403)))
    with workspace.using(Workspace(replies=Cache())):
        assert isinstance(one(chat), ChatError)
        assert isinstance(one(chat), Reply)


# ----------------------------------------------------------------------------------------------------------- reading


def choice(**given: object) -> bytes:
    return json.dumps({"choices": [{"message": {"content": "text"}, **given}]}).encode()


def test_logits_are_not_taken_for_log_probabilities() -> None:
    assert completion(choice(logprobs={"content": [{"token": "a", "logprob": 3.2}]})).choices[0].tokens is None
    assert completion(choice(logprobs={"content": [{"token": "a", "logprob": 1e-7}]})).choices[0].tokens is not None


@pytest.mark.parametrize(
    "logprobs", [None, [], "x", {"content": None}, {"content": [1]}, {"content": [{"token": "a"}]}]
)
def test_log_probabilities_of_another_shape_are_none(logprobs: object) -> None:
    assert completion(choice(logprobs=logprobs)).choices[0].tokens is None


def test_a_character_split_over_tokens_is_whole_again() -> None:
    content = [
        {"token": "\\xe4\\xbd", "logprob": -1, "bytes": [0xE4, 0xBD]},
        {"token": "\\xa0", "logprob": -2, "bytes": [0xA0]},
    ]
    tokens = completion(choice(logprobs={"content": content})).choices[0].tokens
    assert tokens is not None
    assert [token.text for token in tokens] == ["", "你"]


def test_choices_are_in_the_order_of_their_index() -> None:
    body = {"choices": [{"index": i, "message": {"content": str(i)}} for i in (2, 0, 1)]}
    assert [one.text for one in completion(json.dumps(body).encode()).choices] == ["0", "1", "2"]


def test_a_refusal_in_its_own_field_is_the_answer() -> None:
    body = {"choices": [{"message": {"content": None, "refusal": "I can't"}, "finish_reason": "stop"}]}
    found = completion(json.dumps(body).encode()).choices[0]
    assert (found.text, found.finish) == ("I can't", "refusal")


@pytest.mark.parametrize("content", [b"", b"nul", b"[" * 100_000, b"\xff\xfe", b"1", b"null", b'{"error": "x"}'])
def test_garbage_is_unusable(content: bytes) -> None:
    with pytest.raises(Unusable):
        completion(content)
