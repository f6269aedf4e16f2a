"""What is not tried again, and what the error says."""

from __future__ import annotations

import pytest

from calibrate.backends.chat import ChatError, Reply, chat
from calibrate.settings import chat as chat_settings
from tests.backends.chat.asking import KEY, Start, one, request
from tests.backends.chat_stub import Say, good, wrong


def test_a_refused_key_is_one_clear_error_and_is_not_shown(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    stub, chat = start(lambda asked: wrong(401, f"Incorrect API key provided: {KEY}"), CONCURRENCY=4)
    errors = list(chat.ask(request(str(i)) for i in range(100)))
    assert {str(error) for error in errors} == {
        f"the chat endpoint at {stub.url[7:]} does not accept the key (401); check TOUCHSTONE_CHAT_KEY"
    }
    assert len(stub.asked) <= 4
    assert stub.asked[0].key == f"Bearer {KEY}"
    shown = [caplog.text, chat.revision(), repr(chat._settings), *(repr(error.__context__) for error in errors)]
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
        ("URL", "ftp://host/v1", "no http or https address"),
        ("URL", "http://[::1/v1", "no http or https address"),
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
