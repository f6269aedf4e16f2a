"""Replies as they come over the wire."""

from __future__ import annotations

import json

import pytest

from calibrate.backends.chat.wire import Unusable, completion


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
