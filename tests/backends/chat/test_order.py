"""Results in order, and how many requests are in flight."""

from __future__ import annotations

import asyncio
import time

import pytest

from calibrate.backends.chat import Reply
from calibrate.backends.chat.flow import Throttle
from tests.backends.chat.asking import Start, one, request
from tests.backends.chat_stub import Asked, Say, good, wrong


def test_results_come_in_order_as_soon_as_they_can(start: Start) -> None:
    _, chat = start(lambda asked: good(asked, after=0.6 if asked.body["messages"][-1]["content"] == "0" else 0.01))
    asking = chat.ask(request(str(i)) for i in range(40))
    assert [reply.text for reply in asking if isinstance(reply, Reply)] == [str(i) for i in range(40)]


def test_the_first_result_does_not_wait_for_the_last(start: Start) -> None:
    def plan(asked: Asked) -> Say:
        return good(asked, after=0 if asked.body["messages"][-1]["content"] == "0" else 30)

    stub, chat = start(plan, CONCURRENCY=4)
    asking = chat.ask(request(str(i)) for i in range(8))
    assert next(asking).text == "0"  # type: ignore[union-attr]
    asking.close()  # type: ignore[attr-defined]
    give_up = time.monotonic() + 20  # a request that was sent may reach the stub after its asker has left
    while (stub.in_flight or stub.gone < len(stub.asked) - 1) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert (stub.in_flight, stub.gone) == (0, len(stub.asked) - 1)  # every asker has left, none is served


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
            throttle.shrink(one)
            throttle.shrink(other)
            seen.append(throttle.limit)
        await asyncio.sleep(0.01)
        for _ in range(10):
            async with throttle.slot() as began:
                throttle.shrink(began)
            await asyncio.sleep(0.001)
        seen.append(throttle.limit)
        for _ in range(3):
            throttle.grow()
        seen.append(throttle.limit)
        for _ in range(1000):
            throttle.grow()
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
