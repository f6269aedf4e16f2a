"""`grounded`: windows, sentences and whole answers worked out by hand on transformers' own pipeline; what the evidence
shows; nothing cut off without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calibrate.backends.text.segments import sentences
from calibrate.detectors.grounded import Grounded
from calibrate.types import Source, Trace
from tests.tiny_grounding import modernbert
from tests.tiny_nli import random_model

ANSWER = "The warranty lasts two years. The moon is made of cheese."
LABELS = ("hallucinated", "grounded")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_model(tmp_path_factory.mktemp("pairs"), labels=LABELS, seed=3, limit=128)


@pytest.fixture(scope="module")
def classify(folder: Path) -> Any:
    from transformers import pipeline

    pipe: Any = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")

    def support(context: str, answer: str) -> float:
        row = pipe({"text": context, "text_pair": answer})
        return float(next(item["score"] for item in row if item["label"] == "grounded"))

    return support


def trace(answer: str, *texts: str, question: str | None = None) -> Trace:
    sources = tuple(Source(str(number), text) for number, text in enumerate(texts, 1))
    return Trace("t", answer, question=question, sources=sources)


WORDS = ("warranty", "delivery", "batteries", "water", "damage", "invoice", "proof", "ocean", "parcel", "noon", "moon")


def long_context(n_sentences: int) -> str:
    return " ".join(
        f"The {WORDS[at % 11]} of the {WORDS[at * 7 % 11]} is {WORDS[at * 5 % 11]} for {at} months."
        for at in range(n_sentences)
    )


def count(pipe_folder: Path, text: str) -> int:
    from transformers import AutoTokenizer

    return len(AutoTokenizer.from_pretrained(str(pipe_folder))(text, add_special_tokens=False)["input_ids"])


def test_the_worst_sentence_by_its_best_source(folder: Path, classify: Any) -> None:
    texts = ("The warranty lasts 24 months.", "The moon is not made of cheese.", "Keep the invoice.")
    (score,) = Grounded(model=str(folder)).score([trace(ANSWER, *texts, question="how long?")])
    by_sentence = {
        sentence: max(classify(text, sentence) for text in texts)
        for sentence in ("The warranty lasts two years.", "The moon is made of cheese.")
    }
    assert score.value == pytest.approx(min(by_sentence.values()), abs=1e-4)
    for piece in score.evidence:
        assert piece.start is not None
        sentence = ANSWER[piece.start : piece.end]
        assert piece.value == pytest.approx(by_sentence[sentence], abs=1e-4)
        assert piece.source is not None
        assert piece.window is not None
        text = texts[int(piece.source) - 1]
        assert classify(text[slice(*piece.window)], sentence) == pytest.approx(piece.value, abs=1e-4)


def test_a_context_of_8000_tokens_is_judged_in_full(folder: Path, classify: Any) -> None:
    """The windows are worked out here: whole sentences, greedily, as many as fit beside an answer's sentence."""
    context = long_context(650)
    n_tokens = count(folder, context)
    assert n_tokens >= 8_000
    detector = Grounded(model=str(folder))
    model = detector._model
    room = model.context_room(model.room)
    windows: list[str] = []
    start = end = 0
    for sentence in sentences(context):
        if count_of(model, context[start : sentence.end]) > room:
            windows.append(context[start:end])
            start = sentence.start
        end = sentence.end
    windows.append(context[start:end])
    assert len(windows) > n_tokens / 128
    (score,) = detector.score([trace(ANSWER, context)])
    by_hand = min(max(classify(window, ANSWER[a:b]) for window in windows) for a, b in sentences(ANSWER))
    assert score.value == pytest.approx(by_hand, abs=1e-4)
    assert not any("too long" in piece.text for piece in score.evidence)
    (last,) = (piece for piece in score.evidence if piece.value == score.value)
    assert last.window is not None
    assert context[slice(*last.window)] in windows


def count_of(model: Any, text: str) -> int:
    return len(model.encode([text])["input_ids"][0])


def test_a_whole_answer_meets_question_and_sources_together(tmp_path: Path) -> None:
    from transformers import pipeline

    place = modernbert(tmp_path, labels=("grounded", "hallucinated"), seed=3)
    pipe: Any = pipeline("text-classification", model=str(place), top_k=None, device="cpu")
    texts = ("The warranty lasts 24 months.", "The moon is not made of cheese.")
    detector = Grounded(model=str(place), template="groundcheck")
    (score,) = detector.score([trace(ANSWER, *texts, question="how long?")])
    row = pipe({"text": "how long?\n\n" + "\n".join(texts), "text_pair": ANSWER})
    assert score.value == pytest.approx(next(item["score"] for item in row if item["label"] == "grounded"), abs=1e-4)
    (piece,) = score.evidence
    assert (piece.start, piece.end) == (0, len(ANSWER))
    (plain,) = Grounded(model=str(place), template="groundcheck", variant="plain").score(
        [trace(ANSWER, *texts, question="how long?")]
    )
    assert plain.value == pytest.approx(score.value, abs=1e-4)


def test_a_whole_answer_over_windows_takes_the_best(folder: Path, classify: Any) -> None:
    texts = [long_context(4 + at) for at in range(5)]
    (score,) = Grounded(model=str(folder), judge="answer").score([trace(ANSWER, *texts)])
    premises = Grounded(model=str(folder))._model.premises(texts, None, ANSWER)
    assert len(premises) > 3
    assert " ".join(" ".join(text.split()) for text, _ in premises) == " ".join(texts)
    assert score.value == pytest.approx(max(classify(text, ANSWER) for text, _ in premises), abs=1e-4)


def test_plain_cuts_the_context_at_the_limit(folder: Path, classify: Any) -> None:
    context = long_context(60)
    detector = Grounded(model=str(folder), variant="plain")
    (score,) = detector.score([trace(ANSWER, context)])
    (other,) = detector.score([trace(ANSWER, context + " Proof of the ocean.")])
    assert score.value == other.value
    (full,) = Grounded(model=str(folder), judge="answer").score([trace(ANSWER, context)])
    assert full.value != pytest.approx(score.value, abs=1e-6)


def test_what_a_budget_leaves_out_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrate.detectors import grounded

    monkeypatch.setattr(grounded, "PAIRS", 6)
    (score,) = Grounded(model=str(folder)).score([trace(ANSWER, long_context(60))])
    assert "each sentence with 3 passages" in score.evidence[0].text


def test_a_question_that_leaves_no_room_fails_with_the_remedy(folder: Path) -> None:
    (score,) = Grounded(model=str(folder), judge="answer").score([trace(ANSWER, "A.", question="how " * 200)])
    assert score.status == "failed"
    assert "take a model that reads more" in (score.reason or "")
    assert "window" not in (score.reason or ""), "it reads no more than it does already"


def test_without_a_model_every_trace_fails_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOUCHSTONE_GROUNDED_MODEL", raising=False)
    (score,) = Grounded().score([trace(ANSWER, "A.")])
    assert score.status == "failed"
    assert "TOUCHSTONE_GROUNDED_MODEL" in (score.reason or "")
