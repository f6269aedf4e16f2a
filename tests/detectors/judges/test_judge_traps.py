"""Where the common recipes misread a reply: plain springs the trap, the default does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.detectors.judges.judging import CLEAN_JSON, JUDGES, ONE, Start, score, unparsed, value, verdict
from tests.detectors.scripted import Said, last


def test_a_repeated_question_is_no_verdict(start: Start) -> None:
    start(lambda body: last(body))
    for name in JUDGES:
        unparsed(name)
    assert value("judge_verdict", variant="plain") == 1  # "… or VERDICT: HALLUCINATION"


def test_an_extrapolation_is_not_clean(start: Start) -> None:
    start(verdict("extrapolation"))
    assert value("judge_verdict") == 1
    assert value("judge_verdict", variant="plain") == 0


REFUSAL = "I'm sorry, but I can't help with that."


def test_a_judge_that_declines_finds_nothing(start: Start) -> None:
    start(REFUSAL)
    for name in JUDGES:
        found = score(name)
        assert (found.status, found.value) == ("failed", None)
        assert (found.reason or "").startswith(("the judge declined: ", "unparsed: "))
    assert value("judge_verdict", variant="plain") == 0
    assert value("judge_score", variant="plain") == 0


@pytest.mark.parametrize("finish", ["content_filter", "refusal"])
def test_a_judge_that_was_stopped_declined(start: Start, finish: str) -> None:
    start(lambda body: Said("NO", finish=finish))
    for name in JUDGES:
        assert (score(name).reason or "").startswith("the judge declined: ")


@pytest.mark.parametrize(
    ("reply", "plain"),
    [("Not sure, the context is short.", 1), ("NONE", 1), ("No idea.", 1), ("**NO**", 0.5), ("**YES**", 0.5)],
)
def test_what_only_starts_like_no(start: Start, reply: str, plain: float) -> None:
    start(reply)
    assert value("judge_yes_no", variant="plain") == plain
    if reply.startswith("*"):
        assert value("judge_yes_no") == float("NO" in reply)
    else:
        unparsed("judge_yes_no")
        unparsed("selfcheck_judge")


@pytest.mark.parametrize(
    ("reply", "plain"),
    [("On a scale of 0 to 1 I would say 0.9.", 0), ("0.9 might be too harsh, nothing is wrong.", 0.9), ("8/10", 1),
     ("85", 1), ("Everything is invented!", 0), ("", 0), ("Sentence 2 is wrong: 0.9", 1)],
)  # fmt: skip
def test_what_is_no_score(start: Start, reply: str, plain: float) -> None:
    start(reply)
    assert value("judge_score", variant="plain") == plain
    unparsed("judge_score")


@pytest.mark.parametrize(
    "reply", ['{"score": 8, "reason": ""}', '{"score": -1, "reason": ""}', '{"score": NaN, "reason": ""}']
)
def test_scores_outside_0_to_1_are_not_cut_to_fit(start: Start, reply: str) -> None:
    start(reply)
    unparsed("judge_score")


def test_one_unread_sentence_fails_the_trace_and_is_kept(start: Start) -> None:
    start(
        lambda body: (
            "perhaps" if "covers" in last(body).rpartition("BEGIN sentence")[2] else '{"score": 0, "reason": ""}'
        )
    )
    found = unparsed("judge_score", replace(ONE, answer="It lasts. It covers theft. It is long."))
    assert found.evidence[0].text == "the reply: perhaps"
    assert found.usage is not None
    assert found.usage.requests == 3  # what was paid for is counted


@pytest.mark.parametrize(
    "reply",
    ["", "   ", "VERDICT: CLEAN", "supported", "[]", '{"verdict": "clean"}', '{"items": {}}', '{"items": [1]}', "null",
     '{"items": [], "note": ""}', verdict("clean"), verdict("SUPPORTED"), verdict("supported", sentence=2),
     verdict("supported", sentence=0), verdict("supported") + verdict("hallucination"),
     verdict("supported")[:-2], f"<think>{verdict('supported')}",
     '{"items": [{"label": "supported"}]}', '{"items": [{"sentence": true, "label": "supported"}]}'],
)  # fmt: skip
def test_what_is_no_verdict(start: Start, reply: str) -> None:
    start(reply)
    unparsed("judge_verdict")


def test_prose_around_one_object_is_let_pass(start: Start) -> None:
    said = f"Here is my assessment:\n```json\n{verdict('hallucination')}\n```\nAnything else?"
    start(f"<think>Hm, {CLEAN_JSON}?</think>\n{said}")
    assert value("judge_verdict") == 1
