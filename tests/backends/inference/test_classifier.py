"""The base of all classifiers, for each task, against transformers itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from calibrate.backends.inference import Classifier
from calibrate.backends.inference.classifier import softmax
from calibrate.errors import Unavailable
from tests.tiny_nli import random_model, random_t5

PAIRS = [
    ("The warranty of the X200 lasts 24 months from delivery.", "It is covered for two years."),
    ("a", "proof of the ocean"),
    ("Keep the invoice as proof of purchase. " * 2, "Keep it."),
]


class Tokens(Classifier):
    task = "token-classification"


class FirstToken(Classifier):
    task = "first-token"


@pytest.mark.parametrize("kind", ["bert", "deberta-v2"])
def test_tokens_have_the_probabilities_of_the_pipeline(kind: str, tmp_path: Path) -> None:
    from transformers import pipeline

    labels = ("supported", "hallucinated")
    folder = random_model(tmp_path, kind, labels=labels, task="token")
    model = Tokens(str(folder))
    texts = [first for first, _ in PAIRS]
    inputs = model.encode(texts, add_special_tokens=True)
    rows = model.token_logits([{name: inputs[name][row] for name in inputs} for row in range(len(texts))])
    label: Any = pipeline("token-classification", model=str(folder), device="cpu", ignore_labels=[])
    for text, logits in zip(texts, rows, strict=True):
        inner = softmax(logits)[1:-1]  # without [CLS] and [SEP], which the pipeline leaves out
        theirs = label(text)
        assert len(theirs) == len(inner)
        ours = [float(row[labels.index(token["entity"])]) for row, token in zip(inner, theirs, strict=True)]
        np.testing.assert_allclose(ours, [token["score"] for token in theirs], atol=1e-4)
    assert model.token_logits([]) == []


def test_the_first_token_is_the_one_that_generate_scores(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    folder = random_t5(tmp_path)
    model = FirstToken(str(folder))
    encoded = model.encode_pairs(PAIRS)
    inputs = [{name: item[name] for name in ("input_ids", "attention_mask")} for item in encoded]
    rows = model.logits(inputs, columns=[7, 5])
    network: Any = T5ForConditionalGeneration.from_pretrained(str(folder))
    batch = AutoTokenizer.from_pretrained(str(folder)).pad(
        {name: [item[name] for item in inputs] for name in inputs[0]}
    )

    generated = network.generate(
        input_ids=torch.tensor(batch["input_ids"]), attention_mask=torch.tensor(batch["attention_mask"]),
        max_new_tokens=1, do_sample=False, output_logits=True, return_dict_in_generate=True,
    )  # fmt: skip
    np.testing.assert_allclose(rows, generated.logits[0][:, [7, 5]].numpy(), atol=1e-4)
    assert np.ptp(rows) > 0.1, "the logits hardly differ: nothing was compared"


def test_weights_of_another_task_are_refused(tmp_path: Path) -> None:
    """A model without the head that the task needs would score with random numbers."""
    folder = random_t5(tmp_path)
    with pytest.raises(Unavailable, match="not a trained classifier"):
        Classifier(str(folder)).logits([{"input_ids": [1, 2], "attention_mask": [1, 1]}])


def test_a_subclass_reads_more_at_once(tmp_path: Path) -> None:
    class Long(Classifier):
        most_tokens = 4096

    folder = random_model(tmp_path, limit=2000)
    assert Classifier(str(folder)).limit == 1024
    assert Long(str(folder)).limit == 2000


def test_a_missing_model_says_how_to_get_it() -> None:
    assert Classifier("no/such").revision() == "no/such@missing"
    assert "models pull no/such" in (Classifier("no/such").unavailable() or "")


def test_weights_that_do_not_load_are_tried_once_and_again_when_they_are_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import save_file

    folder = random_model(tmp_path, "bert")
    weights = folder / "model.safetensors"
    whole, tries = weights.read_bytes(), []
    build = Classifier.build
    monkeypatch.setattr(Classifier, "build", lambda self, folder: tries.append(1) or build(self, folder))
    save_file({"classifier.bias": torch.zeros(3)}, str(weights), metadata={"format": "pt"})
    model = Classifier(str(folder))
    for _ in range(3):
        with pytest.raises(Unavailable, match="not a trained classifier"):
            model.logits(model.encode_pairs(PAIRS))
    assert len(tries) == 1
    assert "not a trained classifier" in (model.unavailable() or "")
    weights.write_bytes(whole)
    assert model.unavailable() is None
    assert len(model.logits(model.encode_pairs(PAIRS))) == len(PAIRS)
