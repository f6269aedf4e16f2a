"""BERTScore and its self-check against the `bert_score` package on the same model, and what the default mends."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibrate import registry
from calibrate.backends.embedding.model import embedder
from calibrate.types import Score, Trace
from tests.detectors.examples import BATTERIES, WARRANTY, trace

pytestmark = pytest.mark.model
LAYERS = 6
WORDS = ("delta", "orbit", "lemon", "paper", "engine", "river", "copper", "violin")
CLAIMS = (
    "The warranty of the X200 lasts 24 months from delivery.",
    "Batteries are covered for five years.",
    "Der Akku hält fünf Jahre.",
    "保修期为二十四个月。",
)
PASSAGES = (WARRANTY, BATTERIES, "The moon is made of green cheese.", "电池保修十二个月。", "x")


@pytest.fixture(scope="module")
def reference() -> Any:
    """(candidates, references) → precision, recall, F1 of the bert_score package."""
    if why := embedder().unavailable():
        pytest.skip(why)
    scorer = pytest.importorskip("bert_score").BERTScorer(
        model_type=str(embedder().directory()), num_layers=LAYERS, lang=None, rescale_with_baseline=False, device="cpu"
    )
    return lambda one, other: [figures.numpy() for figures in scorer.score(list(one), list(other))]


def judge(name: str, given: Trace, **params: Any) -> Score:
    (score,) = registry.make(name, params).score([given])
    return score


def test_precision_equals_the_reference(reference: Any) -> None:
    for claim in CLAIMS:
        score = judge("bertscore", trace(claim, *PASSAGES), sentences_per_window=10)
        precision, _, _ = reference([claim] * len(PASSAGES), PASSAGES)
        assert score.value == pytest.approx(precision.max(), abs=1e-4)
        assert score.evidence[0].source == str(int(precision.argmax()) + 1)


def test_pooling_over_sentences(reference: Any) -> None:
    answer = " ".join(CLAIMS[:2])
    best = [reference([claim] * 2, PASSAGES[:2])[0].max() for claim in CLAIMS[:2]]
    given = trace(answer, *PASSAGES[:2])
    assert judge("bertscore", given).value == pytest.approx(np.mean(best), abs=1e-4)
    assert judge("bertscore", given, aggregate="min").value == pytest.approx(min(best), abs=1e-4)


def test_selfcheck_equals_its_definition(reference: Any) -> None:
    """Manakul et al. 2023, equation 4 without rescaling: 1 − mean over samples of the best sentence's F1."""
    alternatives = (f"{WARRANTY} {BATTERIES}", "It lasts two years. Nobody knows about batteries.", "保修期为两年。")
    sentences = [re.split(r"(?<=[.。])\s*", text.strip())[: 4 if i == 0 else 2] for i, text in enumerate(alternatives)]
    sentences = [[one for one in some if one] for some in sentences]
    for claim in CLAIMS:
        met = [max(reference([claim] * len(some), some)[2]) for some in sentences]
        score = judge("selfcheck_bertscore", replace(trace(claim), alternatives=alternatives))
        assert score.value == pytest.approx(1 - np.mean(met), abs=1e-4)


def test_f1_of_the_whole_falls_as_the_context_grows() -> None:
    """The trap of the plain recipe: the same true answer, more context around it."""
    rng = random.Random(5)
    filler = [" ".join(rng.choices(WORDS, k=9)).capitalize() + "." for _ in range(9)]
    short, long = trace(CLAIMS[0], WARRANTY), trace(CLAIMS[0], WARRANTY + " " + " ".join(filler))
    assert judge("bertscore", long, variant="plain").value < judge("bertscore", short, variant="plain").value - 0.2  # type: ignore[operator]
    assert judge("bertscore", long).value == pytest.approx(judge("bertscore", short).value, abs=0.02)


def test_nothing_is_cut_off() -> None:
    """The trap of the plain recipe: what supports the answer comes after the model's limit."""
    late = "A sentence about something else entirely. " * 60 + WARRANTY
    apart = {}
    for variant in ("default", "plain"):
        with_it = judge("bertscore", trace(CLAIMS[0], late), variant=variant).value
        without = judge("bertscore", trace(CLAIMS[0], late.removesuffix(WARRANTY)), variant=variant).value
        assert with_it is not None
        assert without is not None
        apart[variant] = with_it - without
    assert apart["plain"] == pytest.approx(0, abs=1e-5)
    assert apart["default"] > 0.2


def test_alternatives_may_say_it_in_another_order() -> None:
    said = "The warranty lasts two years. Batteries are covered for a year."
    turned = "Batteries are covered for a year. The warranty lasts two years."
    given = replace(trace(said), alternatives=(turned, turned))
    assert judge("selfcheck_bertscore", given).value == pytest.approx(0, abs=1e-5)
    assert judge("selfcheck_bertscore", given, variant="plain").value > 0.2  # type: ignore[operator]


def test_alternatives_that_cannot_be_compared() -> None:
    score = judge("selfcheck_bertscore", replace(trace(CLAIMS[0]), alternatives=("", " \n", "One that speaks.")))
    assert (score.value, score.status) == (None, "abstained")


@pytest.mark.parametrize("name", ["selfcheck_bertscore", "self_consistency"])
def test_citation_marks_are_no_difference(name: str) -> None:
    said = "Parts are covered for 24 months"
    sources = trace("", WARRANTY, BATTERIES).sources
    plain = replace(trace(f"{said}."), alternatives=(f"{said}.",) * 3, sources=sources)
    marked = replace(plain, answer=f"{said} [1].", alternatives=(f"{said} [2].", f"{said} [1][2].", f"{said}."))
    assert judge(name, marked).value == pytest.approx(judge(name, plain).value, abs=0.02)


@pytest.mark.parametrize("name", ["bertscore", "semantic_similarity"])
def test_one_unbroken_run_of_letters_is_no_trouble(name: str) -> None:
    assert judge(name, trace("a" * 100_000, WARRANTY)).status == "scored"
