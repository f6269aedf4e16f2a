"""Replies that are kept."""

from __future__ import annotations

from calibrate import workspace
from calibrate.backends.chat import ChatError, Reply, Request
from calibrate.workspace import Workspace
from tests.backends.chat.asking import Cache, Start, first, one, paid, request
from tests.backends.chat_stub import good, wrong


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


def test_a_reply_that_is_no_answer_is_not_kept_and_an_old_one_is_asked_for_again_and_replaced(start: Start) -> None:
    stub, chat = start(good)
    cache = Cache()
    with workspace.using(Workspace(replies=cache)):
        unread = one(chat, request(readable=lambda reply: False))
        assert isinstance(unread, Reply)
        assert cache == {}
        one(chat)  # who can read it keeps it
        assert (len(cache), len(stub.asked)) == (1, 2)
        kept = dict(cache)
        again = one(chat, request(readable=lambda reply: reply.usage.cached == 0))
        assert isinstance(again, Reply)
        assert (again.usage.requests, len(stub.asked)) == (1, 3)
        assert cache.keys() == kept.keys()
        assert chat.estimate([request(readable=lambda reply: False)]).requests == 1
        assert chat.estimate([request()]).cached == 1


def test_an_error_is_not_kept(start: Start) -> None:
    _, chat = start(first(wrong(403)))
    with workspace.using(Workspace(replies=Cache())):
        assert isinstance(one(chat), ChatError)
        assert isinstance(one(chat), Reply)
