"""Detectors that ask an NLI model whose verdicts are known, and self-consistency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from calibrate import registry
from calibrate.types import Score, Trace

REFUSAL = "I don't have that information."
OTHERS = ("The warranty lasts two years. Keep it.", "Twelve months, not more.", "The moon is made of cheese.")
SAID = "The warranty lasts 24 months from delivery. Batteries are covered for five years. Keep the invoice."
FILLER = "Filler of the ocean is not made of cheese. "
Judge = Callable[[str, str], dict[str, float]]


def recipe_says(one: Trace, model: str) -> str:
    """The label that the plain recipe reads."""
    (said,) = score("nli", one, model=model, variant="plain").evidence
    return said.text.split(",")[0]


def score(name: str, one: Trace, **params: Any) -> Score:
    detector = registry.make(name, params)
    if why := detector.unavailable():
        pytest.skip(why)
    (found,) = detector.score([one])
    return found


def value(name: str, one: Trace, **params: Any) -> float:
    found = score(name, one, **params)
    assert found.value is not None, found.reason
    return found.value


def asked(answer: str, *others: str, question: str | None = None) -> Trace:
    return Trace("t", answer, question=question, alternatives=others)
