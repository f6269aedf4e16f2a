"""Fixtures: detectors that ask an NLI model whose verdicts are known, and self-consistency."""

from __future__ import annotations

from typing import Any

import pytest

from calibrate.detectors.nli import PLAIN_LABELS
from tests.detectors.nli.asking import Judge
from tests.tiny_nli import known_model, random_model


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """ "proof" anywhere: entailment; else "lie": contradiction; else neutral. Reads 64 tokens. Its labels are in the
    order that the common recipe takes for granted."""
    return str(known_model(tmp_path_factory.mktemp("known"), labels=PLAIN_LABELS))


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(random_model(tmp_path_factory.mktemp("random"), "deberta-v2", limit=512, seed=2))


@pytest.fixture(scope="module")
def judge(random: str) -> Judge:
    """transformers' pipeline on one pair, label by label."""
    from transformers import pipeline

    classify: Any = pipeline("text-classification", model=random, top_k=None, device="cpu")
    return lambda one, other: {row["label"]: row["score"] for row in classify({"text": one, "text_pair": other})}
