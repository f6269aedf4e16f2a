"""The marker of spans against the network run by hand on the tokenizer's own pair, the layout of LettuceDetect, and
offsets in answers of any script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate.backends.grounding import SpanFinder, Wanted, grounder, span_finder
from calibrate.backends.grounding.prompts import Prompt
from calibrate.errors import BadInput
from tests.tiny_grounding import modernbert
from tests.tiny_nli import random_model

PASSAGES = ["the warranty of the x200 lasts 24 months from delivery.", "batteries are covered for twelve months."]
QUESTION = "is the x200 covered for two years?"
ANSWERS = ["the warranty lasts two years. the moon is made of cheese.", "保 修 期 为 12, 😀 not covered", "a"]


def finder(folder: Path, **parameters: Any) -> SpanFinder:
    return span_finder(Wanted(str(folder), **{"template": "lettucedetect", **parameters}), "en")


def reference(folder: Path, prompt: str, answer: str) -> list[tuple[int, int, float]]:
    """Offsets and probabilities of label 1 for the answer's tokens, by transformers' own pipeline."""
    import torch
    from transformers import pipeline

    pipe: Any = pipeline("token-classification", model=str(folder), device="cpu")
    given = pipe.tokenizer(prompt, answer, return_tensors="pt", return_offsets_mapping=True)
    offsets, sequences = given.pop("offset_mapping")[0].tolist(), given.sequence_ids(0)
    with torch.no_grad():
        rows = torch.softmax(pipe.model(**given).logits[0], dim=-1)[:, 1].tolist()
    return [
        (start, end, row) for (start, end), row, at in zip(offsets, rows, sequences, strict=True) if at == 1 and end
    ]


def marked(model: SpanFinder, prompt: str, answer: str) -> list[tuple[int, int, float]]:
    (tokens,) = model.probabilities([(prompt, answer)])
    return [(token.start, token.end, token.probability) for token in tokens]


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_equals_transformers_token_by_token(kind: str, tmp_path: Path) -> None:
    labels = ("supported", "hallucinated")
    if kind == "modernbert":
        folder = modernbert(tmp_path, task="token", labels=labels, seed=3)
    else:
        folder = random_model(tmp_path, labels=labels, task="token", seed=3)
    model = finder(folder, template="pair")
    prompt = model.prompt.text(PASSAGES, QUESTION)
    everything: list[float] = []
    for answer in ANSWERS:
        ours, theirs = marked(model, prompt, answer), reference(folder, prompt, answer)
        assert [token[:2] for token in ours] == [token[:2] for token in theirs]
        np.testing.assert_allclose([token[2] for token in ours], [token[2] for token in theirs], atol=1e-4)
        everything += [token[2] for token in ours]
    assert np.ptp(everything) > 0.1


def test_a_batch_gives_what_each_gives_alone(tmp_path: Path) -> None:
    model = finder(modernbert(tmp_path, task="token", seed=3))
    pairs = [(model.prompt.text(PASSAGES[:n], QUESTION), answer) for n in (1, 2) for answer in ANSWERS]
    for pair, tokens in zip(pairs, model.probabilities(pairs), strict=True):
        alone = marked(model, *pair)
        assert [(token.start, token.end) for token in tokens] == [token[:2] for token in alone]
        np.testing.assert_allclose([token.probability for token in tokens], [token[2] for token in alone], atol=1e-5)


def test_the_prompt_of_lettucedetect() -> None:
    """As published, with and without a question."""
    assert Prompt().text(["one", "two {question}"], "who?") == (
        "Briefly answer the following question:\nwho?\n"
        "Bear in mind that your response should be strictly based on the following 2 passages:\n"
        "passage 1: one\npassage 2: two {question}\n"
        "In case the passages do not contain the necessary information to answer the question, please reply with: "
        '"Unable to answer based on given passages."\noutput:'
    )
    assert Prompt().text(["one"], None) == "Summarize the following text:\npassage 1: one\noutput:"
    assert "Passage 1: eins" in Prompt(language="de").text(["eins"], "wer?")


def test_labels_that_only_count_are_lettucedetects(tmp_path: Path) -> None:
    """LABEL_1 is unsupported with its prompt; with another layout nothing says so."""
    folder = modernbert(tmp_path, task="token", seed=3)
    model = finder(folder)
    prompt = model.prompt.text(PASSAGES, QUESTION)
    ours = [token[2] for token in marked(model, prompt, ANSWERS[0])]
    np.testing.assert_allclose(ours, [token[2] for token in reference(folder, prompt, ANSWERS[0])], atol=1e-4)
    assert "LABEL_0, LABEL_1" in (finder(folder, template="pair").unavailable() or "")
    turned = [token[2] for token in marked(finder(folder, labels="1=supported"), prompt, ANSWERS[0])]
    np.testing.assert_allclose(turned, 1 - np.array(ours), atol=1e-4)


def test_a_model_too_short_for_the_prompt_is_refused_before_the_first_trace(tmp_path: Path) -> None:
    folder = random_model(tmp_path, labels=("supported", "hallucinated"), limit=64, task="token", seed=3)
    assert "take a model that reads more, or set `template` to pair" in (finder(folder).unavailable() or "")
    assert finder(folder, template="pair").unavailable() is None
    with pytest.raises(BadInput, match="at once; take a model that reads more"):
        finder(folder, template="pair").premises(PASSAGES, QUESTION * 9, ANSWERS[0])
    wide = modernbert(tmp_path / "wide", task="token", seed=3)
    assert "set `window` to more" in (finder(wide, window=100).unavailable() or "")
    with pytest.raises(BadInput, match="set `window` to more tokens, or take"):
        finder(wide, window=150).premises(PASSAGES, QUESTION * 9, ANSWERS[0])


def test_nothing_set_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOUCHSTONE_SPANS_MODEL", raising=False)
    assert "TOUCHSTONE_SPANS_MODEL" in (span_finder(Wanted(), "en").unavailable() or "")


def test_a_sequence_classifier_marks_no_spans(tmp_path: Path) -> None:
    """BERT's head has the same name for both tasks, so it would load, and mark tokens by what it makes of pairs."""
    folder = random_model(tmp_path / "pairs", labels=("supported", "hallucinated"), seed=3)
    assert "BertForSequenceClassification" in (finder(folder).unavailable() or "")
    marker = random_model(tmp_path / "tokens", labels=("supported", "hallucinated"), task="token", seed=3)
    assert "BertForTokenClassification" in (grounder(Wanted(str(marker))).unavailable() or "")


# ------------------------------------------------------------------------------------- the package lettucedetect itself


@pytest.mark.parametrize("n_passages", [2, 40])
def test_equals_the_package_lettucedetect(n_passages: int, tmp_path: Path) -> None:
    """Where it is installed: the same probabilities for the same tokens, also over several windows."""
    upstream = pytest.importorskip("lettucedetect.detectors.transformer")
    folder = modernbert(tmp_path, task="token", seed=3)
    theirs = upstream.TransformerDetector(str(folder), max_length=300)
    model = finder(folder, window=300)
    passages = [f"{PASSAGES[at % 2]} the parcel leaves our warehouse before noon {at}." for at in range(n_passages)]
    for question in (QUESTION, None):
        for answer in (ANSWERS[0], "the invoice."):
            premises = model.premises(passages, question, answer)
            assert len(premises) == 1 if n_passages == 2 else len(premises) > 2
            lists = model.probabilities([(prompt, answer) for prompt, _ in premises])
            ours = np.max([[token.probability for token in tokens] for tokens in lists], axis=0)
            # It also reports the separator after the answer, which is no part of it.
            upstreams = [token["prob"] for token in theirs.predict(passages, answer, question)][:-1]
            np.testing.assert_allclose(ours, upstreams, atol=1e-4)
