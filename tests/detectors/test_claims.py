"""What claims nothing is no sentence's worst, whichever detector judges sentence by sentence."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from calibrate import registry
from calibrate.detectors.shared.scoring import aggregate
from calibrate.types import Trace
from tests.detectors.examples import trace

PASSAGE = (
    "The Eiffel Tower was completed in March 1889 for the World's Fair in Paris. "
    "It is 330 metres tall and was the tallest structure in the world for 41 years. "
    "About seven million people climb it every year."
)
LEAD_IN = "Here is a concise summary of the passage:"
INVENTED = (
    "The Eiffel Tower was completed in March 1889 by Thomas Edison. "
    "It is 330 metres tall and was the tallest structure in Asia. "
    "About seven million penguins climb it every year."
)
SENTENCE_WISE = ["rouge_l", "semantic_similarity", "bertscore"]


def value(name: str, one: Trace, **params: str) -> float:
    detector = registry.make(name, params)
    if why := detector.unavailable():
        pytest.skip(why)
    (score,) = detector.score([one])
    assert score.value is not None, score.reason
    return score.value


@pytest.mark.model
@pytest.mark.parametrize("aggregation", ["min", "lowest_two", "mean"])
@pytest.mark.parametrize("name", SENTENCE_WISE)
def test_a_lead_in_does_not_make_a_perfect_answer_suspicious(name: str, aggregation: str) -> None:
    """Before, ROUGE-L gave 0.00 to the passage itself behind this lead-in, and .64 to three invented facts."""
    polite = value(name, trace(f"{LEAD_IN}\n\n{PASSAGE}", PASSAGE), aggregate=aggregation)
    assert polite == pytest.approx(value(name, trace(PASSAGE, PASSAGE), aggregate=aggregation), abs=1e-5)
    assert polite > value(name, trace(INVENTED, PASSAGE), aggregate=aggregation)


@pytest.mark.model
@pytest.mark.parametrize("name", SENTENCE_WISE)
def test_an_invention_before_a_colon_is_judged(name: str) -> None:
    hidden = trace(f"Penguins own the Louvre:\n\n{PASSAGE}", PASSAGE)
    assert value(name, hidden, aggregate="min") < value(name, trace(PASSAGE, PASSAGE), aggregate="min") - 0.2


@pytest.mark.model
@pytest.mark.parametrize("name", SENTENCE_WISE)
def test_an_answer_that_claims_nothing_abstains(name: str) -> None:
    detector = registry.make(name, {})
    if why := detector.unavailable():
        pytest.skip(why)
    (score,) = detector.score([trace("Sure! (Passage 1)", PASSAGE)])
    assert (score.value, score.status) == (None, "abstained")
    assert score.reason == "no sentence of the answer claims anything"


def test_yes_is_compared_with_alternatives() -> None:
    """It claims nothing of which a source could speak, but another answer may say no."""
    agreed, lone = (replace(trace("Yes."), alternatives=others) for others in (("Yes.",) * 3, ("No.",) * 3))
    assert value("selfcheck_unigram", lone) > value("selfcheck_unigram", agreed)


def test_every_detector_that_judges_sentences_leaves_them_out() -> None:
    """Those that aggregate over the answer's sentences, by their parameters."""
    over_sentences = {
        name
        for name in registry.names()
        if {"min", "max", "mean_of_max"} & {str(c) for p in registry.parameters(registry.get(name)) for c in p.choices}
    }
    of_tokens = {"token_logprob", "entropy_z"}
    for name in over_sentences - of_tokens:
        assert "claiming" in inspect.getsource(inspect.getmodule(registry.get(name))), name  # type: ignore[arg-type]


@pytest.mark.parametrize(("how", "expected"), [("min", 0.1), ("lowest_two", 0.2), ("mean", 0.5)])
def test_aggregates(how: str, expected: float) -> None:
    assert aggregate([0.9, 0.3, 0.7, 0.1], how) == pytest.approx(expected)  # type: ignore[arg-type]
    assert aggregate([0.4], how) == 0.4  # type: ignore[arg-type]
