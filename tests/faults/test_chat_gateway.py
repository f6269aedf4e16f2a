"""An endpoint that is none, and one that is too slow: few requests reach it."""

from __future__ import annotations

import time

from calibrate.backends.chat import ChatError
from calibrate.backends.chat.flow import GARBLED_TRIES
from tests.backends.chat.asking import Start, request
from tests.backends.chat.conftest import start
from tests.backends.chat_stub import Asked, Say, good

__all__ = ["start"]

PAGE = b"<html><h1>Welcome to the gateway</h1></html>"
AT_ONCE = 16


def test_a_gateway_that_answers_with_a_page_is_given_up(start: Start) -> None:
    stub, chat = start(lambda asked: Say(body=PAGE), CONCURRENCY=AT_ONCE)
    results = list(chat.ask(request(str(number)) for number in range(200)))
    assert all(isinstance(result, ChatError) and result.final for result in results[AT_ONCE:])
    assert len(stub.asked) <= (GARBLED_TRIES + 2) * AT_ONCE, "some of those that wait slip in between the tries"
    assert "check TOUCHSTONE_CHAT_URL" in str(results[-1])


def test_a_page_between_answers_halts_nothing(start: Start) -> None:
    """Every third reply is garbled: each request has its answer in the end."""
    _, chat = start(lambda asked: Say(body=PAGE) if asked.number % 3 == 0 else good(asked), CONCURRENCY=4)
    results = list(chat.ask(request(str(number)) for number in range(60)))
    assert not [result for result in results if isinstance(result, ChatError)]


def test_an_endpoint_that_works_on_what_was_given_up_gets_no_more_than_it_may(start: Start) -> None:
    def deaf(asked: Asked) -> Say:
        time.sleep(0.5)  # it does not notice that nobody waits
        return good(asked)

    stub, chat = start(deaf, CONCURRENCY=8, TIMEOUT=0.3)
    for _ in zip(range(8), chat.ask(request(str(number)) for number in range(24)), strict=False):
        pass
    assert max(asked.alongside for asked in stub.asked) <= 8 + 1, "one more finds out whether it answers again"
