"""What endpoints do wrong, seen from a judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrate import registry
from calibrate.backends import files
from calibrate.workspace import Workspace, using
from tests.backends.chat.asking import Cache
from tests.detectors import scripted
from tests.detectors.judges.judging import JUDGES, ON_CONTEXT, ONE, Start, score, unparsed, value, verdict
from tests.detectors.scripted import Said, last


@pytest.mark.parametrize("name", JUDGES)
def test_a_reply_that_cannot_be_read_is_not_kept(start: Start, name: str) -> None:
    endpoint = start("Well, it depends.")
    cache = Cache()
    with using(Workspace(replies=cache)):
        unparsed(name)
        assert cache == {}
        endpoint.script, sent = scripted.sensible, len(endpoint.asked)
        value(name)
        assert len(endpoint.asked) == 2 * sent
        value(name)
        assert len(endpoint.asked) == 2 * sent


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize(
    "said",
    [Said("x", choices=False), Said(None), Said("no such thing", status=400), Said("{}", finish="length"),
     Said("NO", finish="length")],
    ids=["no choice", "no text", "refused", "cut", "cut word"],
)  # fmt: skip
def test_what_an_endpoint_does_wrong_fails_and_says_so(start: Start, name: str, said: Said) -> None:
    start(lambda body: said)
    found = score(name)
    assert (found.status, found.value) == ("failed", None)
    assert found.reason


def test_a_whole_reply_that_reached_its_length_may_be_half_of_one(start: Start) -> None:
    start(lambda body: Said(verdict("supported"), finish="length"))
    assert "cut off" in (unparsed("judge_verdict").reason or "")
    start(lambda body: Said("NO. Theft is not", finish="length"))  # the word is whole, only the reason is not
    assert value("judge_yes_no") == 1


@pytest.mark.parametrize("name", JUDGES)
def test_one_bad_reply_fails_one_trace(start: Start, name: str) -> None:
    def script(body: dict[str, Any]) -> Said | str:
        return Said("broken", status=400) if "second" in last(body) else scripted.sensible(body)

    start(script)
    traces = [replace(ONE, id=word, answer=f"The {word} lasts 24 months.") for word in ("first", "second", "third")]
    found = list(registry.make(name).score(traces))
    assert [one.trace_id for one in found] == ["first", "second", "third"]
    assert [one.status for one in found] == ["scored", "failed", "scored"]


def test_without_an_endpoint_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOUCHSTONE_CHAT_URL", "OPENAI_BASE_URL", "TOUCHSTONE_CHAT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name in (*JUDGES, "claim_nli"):
        assert "TOUCHSTONE_CHAT_URL" in (registry.make(name).unavailable() or "")


@pytest.mark.parametrize("name", JUDGES)
def test_a_spoilt_prompt_is_named_before_and_in_the_run(start: Start, name: str) -> None:
    endpoint = start("YES")
    path = f"prompts/{name}.txt"
    with using(
        Workspace(files={path: "Is it right? {answer}" if name in ON_CONTEXT[:2] else "Is it right? {sentence}"})
    ):
        detector = registry.make(name)
        assert f"the prompt {path} lacks" in (detector.unavailable() or "")
        (found,) = detector.score([ONE])
    assert found.status == "failed"
    assert f"the prompt {path} lacks" in (found.reason or "")
    assert endpoint.asked == []


@pytest.mark.parametrize("name", JUDGES)
def test_the_revision_follows_model_and_wording(start: Start, name: str) -> None:
    start("YES")
    path = f"prompts/{name}.txt"
    before = registry.make(name).revision()
    assert registry.make(name).revision() == before
    assert registry.make(name, {"model": "other"}).revision() != before
    with using(Workspace(files={path: files.packaged(path) + "\nBe strict."})):
        assert registry.make(name).revision() != before


def test_what_is_too_long_is_not_cut_but_said(start: Start) -> None:
    endpoint = start("YES")
    long = replace(ONE, answer="It lasts 24 months. " * 500)
    for name in JUDGES:
        found = score(name, long, longest=5_000)
        assert found.status == "abstained"
        assert "the limit is 5,000" in (found.reason or "")
    assert endpoint.asked == []
