"""What each judge measures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.detectors.judges.judging import ONE, Start, score, value, verdict
from tests.detectors.scripted import Said, Script, last


def test_the_verdict_is_the_share_of_unsupported_claims(start: Start) -> None:
    two = replace(ONE, answer="It lasts 24 months. It covers theft and fire.")
    start(json.dumps({"items": [
        {"sentence": 1, "claim": "24 months", "label": "supported", "reason": "stated"},
        {"sentence": 2, "claim": "theft", "label": "hallucination", "reason": "not mentioned"},
        {"sentence": 2, "claim": "fire", "label": "extrapolation", "reason": "goes further"}]}))  # fmt: skip
    found = score("judge_verdict", two)
    assert found.value == pytest.approx(2 / 3)
    assert [two.answer[one.start : one.end] for one in found.evidence] == [
        "It covers theft and fire.", "It covers theft and fire.", "It lasts 24 months."]  # fmt: skip
    assert found.evidence[0].text == "hallucination: theft (not mentioned)"
    assert [one.value for one in found.evidence] == [1, 1, 0]


@pytest.mark.parametrize(
    ("label", "wanted"), [("supported", 0), ("hallucination", 1), ("contradiction", 1), ("extrapolation", 1)]
)
def test_each_label_has_a_verdict(start: Start, label: str, wanted: float) -> None:
    start(verdict(label))
    assert value("judge_verdict") == wanted


def test_no_claims_is_no_verdict(start: Start) -> None:
    start('{"items": []}')
    found = score("judge_verdict")
    assert (found.status, found.value, found.reason) == ("abstained", None, "the judge found no claim in the answer")


def by_sentence(**ratings: float) -> Script:
    def script(body: dict[str, Any]) -> str:
        rated = next(one for word, one in ratings.items() if word in last(body).rpartition("BEGIN sentence")[2])
        return json.dumps({"score": rated, "reason": f"because {rated}"})

    return script


def test_the_score_is_that_of_the_worst_sentence_or_the_mean(start: Start) -> None:
    endpoint = start(by_sentence(lasts=0.2, covers=0.9, invoice=0.1))
    three = replace(ONE, answer="It lasts 24 months. It covers theft. Keep the invoice.")
    found = score("judge_score", three)
    assert found.value == 0.9
    assert len(endpoint.asked) == 3
    worst = found.evidence[0]
    assert (three.answer[worst.start : worst.end], worst.text) == ("It covers theft.", "because 0.9")
    assert value("judge_score", three, aggregate="mean") == pytest.approx(0.4)


def test_the_selfcheck_is_the_share_of_alternatives_that_do_not_support(start: Start) -> None:
    """SelfCheckGPT with prompt: 0 for yes, 1 for no, 0.5 for neither; by hand (0 + 1 + 0.5 + 1) / 4."""

    def script(body: dict[str, Any]) -> str:
        said, claim = last(body).split("BEGIN sentence")
        return "YES" if "lasts" in claim else next(w for w in ("YES", "NO", "N/A") if f"says {w}" in said)

    start(script)
    two = replace(ONE, answer="It lasts. It covers.", alternatives=("says YES", "says NO", "says N/A", "says NO 2"))
    found = score("selfcheck_judge", two)
    assert found.value == pytest.approx(2.5 / 4)
    assert found.evidence[0].text == "2 of 4 alternatives do not support this, 1 cannot tell"
    assert two.answer[found.evidence[0].start : found.evidence[0].end] == "It covers."
    assert value("selfcheck_judge", two, aggregate="mean") == pytest.approx(2.5 / 8)


def test_the_selfcheck_reads_the_answer_that_was_logged(start: Start) -> None:
    start(lambda body: "NO" if "purple" in last(body) else "YES")
    invented = replace(ONE, answer="It is purple.", alternatives=("24 months.", "Two years."))
    assert value("selfcheck_judge", invented) == 1
    assert value("selfcheck_judge", invented, variant="plain") == 0


def logprobs(*tokens: tuple[str, dict[str, float]]) -> list[dict[str, Any]]:
    def one(text: str, logprob: float) -> dict[str, Any]:
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    return [
        one(text, top.get(text, -0.1)) | {"top_logprobs": [one(*pair) for pair in top.items()]} for text, top in tokens
    ]


def test_p_no_comes_from_log_probabilities(start: Start) -> None:
    top = {"YES": -0.5, " NO": -1.5, "No": -2.5, "NOT": -3.0}
    endpoint = start(lambda body: Said("YES. Fine.", logprobs=logprobs(("YES", top), (". Fine.", {". Fine.": 0.0}))))
    import math

    yes, no = math.exp(-0.5), math.exp(-1.5) + math.exp(-2.5)
    found = score("judge_yes_no")
    assert found.value == pytest.approx(no / (yes + no))
    assert endpoint.asked[0]["logprobs"] is True
    assert found.evidence[0].text == "YES: Fine."
    assert "from log-probabilities" in found.evidence[1].text


@pytest.mark.parametrize(("reply", "wanted"), [("NO. It says 12.", 1.0), ("**YES**", 0.0)])
def test_without_log_probabilities_the_word_counts_and_that_is_said(start: Start, reply: str, wanted: float) -> None:
    start(reply)
    found = score("judge_yes_no")
    assert found.value == wanted
    assert "no usable log-probabilities" in found.evidence[1].text


def test_logits_are_no_log_probabilities(start: Start) -> None:
    start(lambda body: Said("YES", logprobs=logprobs(("YES", {"YES": 11.0, "NO": 10.9}))))
    found = score("judge_yes_no")
    assert found.value == 0
    assert "no usable" in found.evidence[1].text
