"""`grounded_spans`: the answer's value and its spans, from token probabilities worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate.backends.grounding.spans import Token
from calibrate.detectors.grounded_spans import GroundedSpans, spans, widen
from calibrate.types import Source, Trace
from tests.tiny_grounding import modernbert

ANSWER = "  The warranty lasts two years, 😀 and the moon is made of cheese."
TEXTS = ("The warranty lasts 24 months.", "The moon is not made of cheese.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return modernbert(tmp_path_factory.mktemp("spans"), task="token", seed=3)


def trace(answer: str, *texts: str, question: str | None = "how long?") -> Trace:
    sources = tuple(Source(str(number), text) for number, text in enumerate(texts, 1))
    return Trace("t", answer, question=question, sources=sources)


def by_hand(folder: Path, prompt: str, answer: str) -> list[tuple[int, int, float]]:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    words: Any = AutoTokenizer.from_pretrained(str(folder))
    network: Any = AutoModelForTokenClassification.from_pretrained(str(folder)).eval()
    given = words(prompt, answer, return_tensors="pt", return_offsets_mapping=True)
    offsets, sequences = given.pop("offset_mapping")[0].tolist(), given.sequence_ids(0)
    with torch.no_grad():
        rows = torch.softmax(network(**given).logits[0], dim=-1)[:, 1].tolist()
    return [(a, b, row) for (a, b), row, at in zip(offsets, rows, sequences, strict=True) if at == 1]


def test_the_value_is_the_highest_token_and_spans_are_evidence(folder: Path) -> None:
    detector = GroundedSpans(model=str(folder))
    (score,) = detector.score([trace(ANSWER, *TEXTS)])
    tokens = by_hand(folder, detector._model.prompt.text(TEXTS, "how long?"), ANSWER)
    assert score.value == pytest.approx(max(token[2] for token in tokens), abs=1e-4)
    assert any(row >= 0.5 for *_, row in tokens)
    assert any(row < 0.5 for *_, row in tokens)
    # A word is marked where any of its tokens is; what lies between words belongs to none.
    marked = [(piece.start or 0, piece.end or 0, piece.value) for piece in score.evidence]
    for word in re.finditer(r"\w+", ANSWER):
        inside = [row for start, _, row in tokens if word.start() <= start < word.end()]
        around = [value for start, end, value in marked if start <= word.start() and word.end() <= end]
        assert bool(around) == (max(inside) >= 0.5)
        assert len(around) <= 1
        assert not around or (around[0] or 0.0) >= max(inside) - 1e-4
    assert max(value or 0.0 for *_, value in marked) == pytest.approx(score.value)


def test_spans_join_neighbours_and_keep_the_highest() -> None:
    tokens = [Token(0, 3, 0.9), Token(4, 7, 0.6), Token(8, 9, 0.4), Token(9, 12, 0.5), Token(13, 15, 0.1)]
    assert spans(tokens) == [Token(0, 7, 0.9), Token(9, 12, 0.5)]
    assert spans([Token(0, 3, 0.49)]) == []


def test_spans_are_shown_as_whole_words() -> None:
    answer = "Unsupported claims, here."
    assert widen(answer, [Token(2, 5, 0.6), Token(7, 9, 0.9), Token(18, 19, 0.7)]) == [
        Token(0, 11, 0.9),
        Token(18, 19, 0.7),
    ]
    assert widen(answer, [Token(9, 14, 0.8)]) == [Token(0, 18, 0.8)]
    assert widen("保修期为", [Token(1, 2, 0.8)]) == [Token(1, 2, 0.8)]


@pytest.mark.parametrize(("across", "choose"), [("min", np.min), ("max", np.max)])
def test_a_context_of_8000_tokens_is_read_in_windows(across: Any, choose: Any, folder: Path) -> None:
    texts = [f"The parcel leaves our warehouse before noon {at}. The battery is covered." for at in range(430)]
    detector = GroundedSpans(model=str(folder), across=across, window=1024)
    premises = detector._model.premises(texts, "how long?", ANSWER)
    prompts = [prompt for prompt, _ in premises]
    n_tokens = sum(len(detector._model.encode([prompt])["input_ids"][0]) for prompt in prompts)
    assert n_tokens >= 8_000
    assert [window.place for _, members in premises for window in members] == list(range(430))
    windows = [[token[2] for token in by_hand(folder, prompt, ANSWER)] for prompt in prompts]
    (score,) = detector.score([trace(ANSWER, *texts)])
    assert score.value == pytest.approx(float(choose(windows, axis=0).max()), abs=1e-4)


def test_one_passage_that_is_too_long_is_cut_between_sentences(folder: Path) -> None:
    text = " ".join(f"The parcel leaves our warehouse before noon {at}." for at in range(60))
    model = GroundedSpans(model=str(folder), window=200)._model
    premises = model.premises([text], None, "The moon.")
    assert len(premises) > 3
    pieces = [window.text for _, members in premises for window in members]
    assert " ".join(pieces) == text
    assert all(piece.endswith(".") for piece in pieces)


def test_a_long_answer_is_read_in_parts(folder: Path) -> None:
    """The parts' offsets are the answer's."""
    answer = " ".join(f"The moon is made of cheese {at}." for at in range(150))
    detector = GroundedSpans(model=str(folder), window=512)
    parts = detector._model.cut_answer(answer)
    assert len(parts) > 3
    assert "".join(answer[part.start : part.end] for part in parts) == answer
    (score,) = detector.score([trace(answer, *TEXTS)])
    prompt = detector._model.prompt.text(TEXTS, "how long?")
    tokens = [
        (start + part.start, row)
        for part in parts
        for start, _, row in by_hand(folder, prompt, answer[part.start : part.end])
    ]
    assert score.value == pytest.approx(max(row for _, row in tokens), abs=1e-4)


def test_plain_cuts_the_context_at_the_limit(folder: Path) -> None:
    texts = [f"The parcel leaves our warehouse before noon {at}." for at in range(100)]
    detector = GroundedSpans(model=str(folder), variant="plain", window=128)
    (score,) = detector.score([trace(ANSWER, *texts)])
    (other,) = detector.score([trace(ANSWER, *texts[:99], "Keep the invoice as proof.")])
    assert score.value == other.value


def test_a_special_token_in_a_source_stays_text(folder: Path) -> None:
    """A source cannot end itself and write an answer of its own: its tokens are those of its characters."""
    model = GroundedSpans(model=str(folder))._model
    encoded = model.encode([model.prompt.text(["proof [SEP] of the moon"], None)], ["The moon."])
    assert encoded["input_ids"][0].count(model.tokenizer().sep_token_id) == 2
