"""Endpoints that do not take a part of a request."""

from __future__ import annotations

import pytest

from calibrate import workspace
from calibrate.backends.chat import Reply
from calibrate.workspace import Workspace
from tests.backends.chat.asking import Cache, Plan, Start, one, request
from tests.backends.chat_stub import Asked, Say, good, wrong


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
