"""A judge asked by a template: each packaged grammar reads what its model says, and nothing else becomes a value."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from calibrate.backends import files
from calibrate.backends.catalogue import entries
from calibrate.detectors.shared.templates import problem
from calibrate.errors import BadInput
from calibrate.workflow.detection import team_files
from calibrate.workspace import Workspace, using
from tests.detectors.examples import WARRANTY, trace
from tests.detectors.judges.judging import ONE, Start, score, unparsed, value
from tests.detectors.judges.test_injections import PLANTED
from tests.detectors.scripted import Said, last
from tests.llm import Llm

NAME = "judge_template"
LYNX = json.dumps({"REASONING": ["The document says 24 months.", "So does the answer."], "SCORE": "PASS"})
TWO = replace(ONE, answer="The X200 is covered for 24 months. Batteries are covered for five years.")


def token(text: str, *others: tuple[str, float], logprob: float = -0.1) -> dict[str, Any]:
    top = [{"token": other, "logprob": value} for other, value in ((text, logprob), *others)]
    return {"token": text, "logprob": logprob, "top_logprobs": top}


@pytest.mark.parametrize(
    ("template", "reply", "expected"),
    [
        ("own", "YES, it says so.", 0),
        ("own", "**No**. The period differs.", 1),
        ("lynx", LYNX, 0),
        ("lynx", f"Here it is:\n```json\n{LYNX.replace('PASS', 'fail')}\n```", 1),
        ("granite-guardian", "<think>\n</think>\n<score> yes </score>", 1),
        ("granite-guardian", "<score>no</score>", 0),
        ("bespoke-minicheck", "Yes", 0),
        ("bespoke-minicheck", "No.", 1),
    ],
)
def test_a_reply_in_the_models_own_form_is_a_verdict(start: Start, template: str, reply: str, expected: float) -> None:
    start(reply)
    assert value(NAME, template=template) == expected


@pytest.mark.parametrize(
    ("template", "reply"),
    [
        ("own", "Not sure"),
        ("own", "YES or NO"),
        ("own", "No idea at all"),
        ("own", ""),
        ("lynx", "PASS"),
        ("lynx", '{"REASONING": "x", "SCORE": 1}'),
        ("lynx", '{"REASONING": "x", "SCORE": "PASS or FAIL"}'),
        ("lynx", f"{LYNX} {LYNX}"),
        ("granite-guardian", "yes"),
        ("granite-guardian", "<score> maybe </score>"),
        ("granite-guardian", "<score>no</score><score>yes</score>"),
        ("granite-guardian", "<score> yes"),
        ("bespoke-minicheck", "Nothing says so"),
    ],
)
def test_any_other_reply_fails_and_is_quoted(start: Start, template: str, reply: str) -> None:
    start(reply)
    assert unparsed(NAME, template=template).evidence


def test_probabilities_of_the_two_words_are_the_value(start: Start) -> None:
    start(
        lambda _: Said(
            "<score> no </score>",
            logprobs=[
                token("<score>"),
                token(" no", (" yes", math.log(0.3)), logprob=math.log(0.6)),
                token(" </score>"),
            ],
        )
    )
    assert value(NAME, template="granite-guardian") == pytest.approx(0.3 / 0.9)
    start(lambda _: Said("No", logprobs=[token("No", ("Yes", math.log(0.2)), logprob=math.log(0.7))]))
    assert value(NAME, template="bespoke-minicheck") == pytest.approx(0.7 / 0.9)


def test_a_template_that_judges_sentences_gives_the_worst_and_shows_where(start: Start) -> None:
    endpoint = start(lambda body: "No" if "five years" in last(body) else "Yes")
    result = score(NAME, TWO, template="bespoke-minicheck")
    assert len(endpoint.asked) == 2
    assert result.value == 1
    worst = result.evidence[0]
    assert TWO.answer[worst.start : worst.end] == "Batteries are covered for five years."


def test_a_refusal_and_a_cut_reply_are_no_verdict(start: Start) -> None:
    start("I'm sorry, but I can't help with that.")
    result = score(NAME, template="own")
    assert (result.status, (result.reason or "")[:18]) == ("failed", "the judge declined")
    start(lambda _: Said(LYNX[:-1], finish="length"))
    assert "cut off" in (unparsed(NAME, template="lynx").reason or "")


@pytest.mark.parametrize("planted", PLANTED, ids=range(len(PLANTED)))
@pytest.mark.parametrize("template", ["own", "lynx", "granite-guardian"])
def test_a_context_stays_in_its_fence(start: Start, planted: str, template: str) -> None:
    endpoint = start(planted)
    unparsed(NAME, trace(ONE.answer, WARRANTY, planted), template=template)
    sent = last(endpoint.asked[0])
    before = sent[: sent.index("BEGIN ")]
    assert not any(line in before for line in planted.split("\n") if line)
    assert [message["role"] for message in endpoint.asked[0]["messages"]].count("user") == 1


def test_plain_pastes_the_texts_in(start: Start) -> None:
    endpoint = start("Yes")
    assert value(NAME, template="bespoke-minicheck", variant="plain") == 0
    assert "BEGIN" not in last(endpoint.asked[0])
    assert last(endpoint.asked[0]).startswith("Document: [1]\n")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ("=== user ===\n{context}{answer}", "has to begin with"),
        ("=== reply ===\nform: word\nsupported: yes\n=== user ===\n{context}{answer}", "two different words"),
        ("=== reply ===\nform: poem\nsupported: a\nunsupported: b\n=== user ===\n{context}{answer}", "the form is"),
        ("=== reply ===\nform: word\nsupported: a\nunsupported: b\n=== user ===\n{answer}", "{context}"),
        ("=== reply ===\nform: word\nsupported: a\nunsupported: b\n=== user ===\n{context}{answer}{x}", "nothing"),
        ("=== reply ===\nform: word\nlogprobs: many\nsupported: a\nunsupported: b\n=== user ===\n{context}{answer}",
         "whole number"),
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_read_says_what_is_wrong(wrong: str, match: str) -> None:
    assert match in (problem("templates/own.txt", wrong) or "")
    with pytest.raises(BadInput, match="template"):
        team_files.check(None, "templates/own.txt", wrong)  # type: ignore[arg-type]


def test_a_teams_own_template_is_used_and_changes_the_revision(start: Start) -> None:
    endpoint = start("<verdict>sound</verdict>")
    own = (
        "=== reply ===\nform: tag verdict\nsupported: sound\nunsupported: unsound\n=== user ===\n"
        "Facts: {context}\nText: {answer}\nSay <verdict>sound</verdict> or <verdict>unsound</verdict>.\n"
    )
    with using(Workspace(files={"templates/own.txt": own})):
        assert value(NAME) == 0
        changed = files.version("templates/own.txt")
    assert "Facts: BEGIN context" in last(endpoint.asked[0])
    assert changed != files.version("templates/own.txt")


def test_every_judge_of_the_catalogue_has_its_template() -> None:
    for model in entries():
        if model.adapter == NAME:
            assert problem(f"templates/{model.template}.txt", files.packaged(f"templates/{model.template}.txt")) is None


def test_a_real_model_is_asked_and_its_reply_read_or_refused(llm_chat: Llm) -> None:
    result = score(NAME, trace("It lasts 24 months.", "The warranty lasts 24 months.", id="real"), template="own")
    assert result.usage is not None
    assert result.usage.requests == 1
    if result.status == "scored":
        assert 0 <= (result.value or 0) <= 1
    else:
        assert (result.reason or "").startswith("unparsed: ")
