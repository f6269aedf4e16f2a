"""`semantic_entropy` against its definition."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.detectors.nli.asking import Judge, asked, score, value
from tests.tiny_nli import random_model


def clusters(judge: Judge, texts: list[str], *, loose: bool) -> list[list[str]]:
    """Kuhn et al., algorithm 1: each text joins the first cluster whose first member it is equivalent to."""

    def label(one: str, other: str) -> str:
        row = judge(one, other)
        return max(row, key=lambda name: row[name])

    def same(one: str, other: str) -> bool:
        both = (label(one, other), label(other, one))
        if loose:
            return "contradiction" not in both and both != ("neutral", "neutral")
        return both == ("entailment", "entailment")

    found: list[list[str]] = []
    for text in texts:
        for members in found:
            if text == members[0] or same(members[0], text):
                members.append(text)
                break
        else:
            found.append([text])
    return found


TEXTS = [
    *(
        "Two years.",
        "It lasts 24 months.",
        "Twelve months.",
        "Two years.",
        "Five.",
        "Made of cheese.",
        "The ocean is it.",
    ),
    *("Keep the invoice, it is proof.", "No.", "One of three.", "Before noon.", "Question and answer.", "water"),
]


@pytest.mark.parametrize("seed", [2, 5, 11])
@pytest.mark.parametrize("equivalence", ["strict", "loose"])
@pytest.mark.parametrize("question", [None, "How long is the warranty?"])
def test_semantic_entropy_is_its_definition(seed: int, equivalence: str, question: str | None, tmp_path: Path) -> None:
    from transformers import pipeline

    model = str(random_model(tmp_path, "bert", seed=seed))
    classify: Any = pipeline("text-classification", model=model, top_k=None, device="cpu")
    prefix = f"{question} " if question else ""
    groups = clusters(
        lambda one, other: {r["label"]: r["score"] for r in classify({"text": one, "text_pair": other})},
        [prefix + text for text in TEXTS],
        loose=equivalence == "loose",
    )
    shares = np.array([len(members) for members in groups]) / len(TEXTS)
    expected = float(-(shares * np.log(shares)).sum())
    one = asked("It lasts.", *TEXTS, question=question)
    params = {"model": model, "equivalence": equivalence}
    assert value("semantic_entropy", one, **params) == pytest.approx(expected, abs=1e-9)
    normal = value("semantic_entropy", one, normalised=True, **params)
    assert normal == pytest.approx(expected / math.log(len(TEXTS)), abs=1e-9)
    sizes = [int(piece.text.split()[0]) for piece in score("semantic_entropy", one, **params).evidence]
    assert sizes == sorted((len(members) for members in groups), reverse=True)


def test_semantic_entropy_of_known_meanings(known: str) -> None:
    """All with "proof" entail each other; without a key word all are neutral, each a meaning of its own."""
    assert value("semantic_entropy", asked("x", "proof a", "b proof", "a proof c"), model=known) == 0
    assert value("semantic_entropy", asked("x", "a", "b", "c", "d"), model=known) == pytest.approx(math.log(4))
    assert value("semantic_entropy", asked("x", "a", "a", "b", " a "), model=known) == pytest.approx(
        -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    )
    with_answer = value("semantic_entropy", asked("d", "a", "b", "c"), model=known, include_answer=True)
    assert with_answer == pytest.approx(math.log(4))


def test_short_answers_are_judged_with_their_question(known: str) -> None:
    """On their own two short answers are neutral; only the question says what they are about."""
    one = asked("x", "a", "b", question="Is it a proof?")
    assert value("semantic_entropy", one, model=known) == 0
    assert value("semantic_entropy", one, model=known, variant="plain") == pytest.approx(math.log(2))
