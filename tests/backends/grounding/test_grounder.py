"""The judge of pairs against transformers' own pipeline: any architecture, any order and naming of labels, one logit or
several, and the published layouts of inputs token by token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate.backends.grounding import Wanted, grounder
from calibrate.backends.grounding.grounder import Grounder
from calibrate.backends.grounding.templates import TEMPLATES
from calibrate.errors import BadInput, Unavailable
from tests.tiny_grounding import hhem, minicheck_t5, modernbert, t5_tokenizer
from tests.tiny_nli import random_model

PAIRS = [
    ("the warranty of the x200 lasts 24 months from delivery.", "it is covered for two years."),
    ("the warranty of the x200 lasts 24 months from delivery.", "the moon is made of cheese."),
    ("batteries are covered for twelve months, damage by water is excluded.", "water: not covered?"),
    ("保 修 期 为", "the invoice as proof of purchase"),
    ("keep the invoice as proof of purchase. " * 2, "keep it."),
    ("a", "proof of the ocean"),
]
LABELS = ("hallucinated", "grounded")


def reference(folder: Path, label: str, pairs: list[tuple[str, str]] = PAIRS) -> list[float]:
    """What transformers' pipeline says of one label."""
    from transformers import pipeline

    classify: Any = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    rows = [classify({"text": first, "text_pair": second}) for first, second in pairs]
    return [next(item["score"] for item in row if item["label"] == label) for row in rows]


def judge(folder: Path, **parameters: Any) -> Grounder:
    return grounder(Wanted(str(folder), **parameters))


def support(folder: Path, **parameters: Any) -> list[float]:
    return list(judge(folder, **parameters).probabilities(PAIRS)[:, 0])


@pytest.mark.parametrize("kind", ["bert", "deberta-v2", "modernbert"])
def test_equals_the_transformers_pipeline(kind: str, tmp_path: Path) -> None:
    if kind == "modernbert":
        folder = modernbert(tmp_path, labels=LABELS, seed=3)
    else:
        folder = random_model(tmp_path, kind, labels=LABELS, seed=3)
    ours, theirs = support(folder), reference(folder, "grounded")
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert np.ptp(ours) > 0.1, "the verdicts hardly differ: nothing was compared"


@pytest.mark.parametrize(
    ("labels", "supported"),
    [
        (("grounded", "hallucinated"), "grounded"),
        (("Unsupported", "Supported"), "Supported"),
        (("consistent", "inconsistent"), "consistent"),
        (("contradiction", "entailment", "neutral"), "entailment"),
        (("NOT_ENTAILMENT", "ENTAILMENT"), "ENTAILMENT"),
    ],
)
def test_reads_the_names_of_labels(labels: tuple[str, ...], supported: str, tmp_path: Path) -> None:
    folder = random_model(tmp_path, seed=3, labels=labels)
    np.testing.assert_allclose(support(folder), reference(folder, supported), atol=1e-4)


def test_labels_that_only_count_need_a_map(tmp_path: Path) -> None:
    folder = random_model(tmp_path, seed=3, labels=("LABEL_0", "LABEL_1"))
    assert "LABEL_0, LABEL_1" in (judge(folder).unavailable() or "")
    with pytest.raises(Unavailable, match="labels"):
        judge(folder).probabilities(PAIRS)
    theirs = reference(folder, "LABEL_0")
    for labels in ("0=supported", "LABEL_0=supported, LABEL_1=unsupported", "label_1 = hallucinated"):
        np.testing.assert_allclose(support(folder, labels=labels), theirs, atol=1e-4)
    assert judge(folder, labels="0=supported").revision() != judge(folder, labels="1=supported").revision()


@pytest.mark.parametrize("labels", ["1", "1=maybe", "=supported", "1:supported"])
def test_a_map_that_cannot_be_read_is_refused(labels: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="label map"):
        judge(tmp_path, labels=labels)


def test_a_map_of_labels_that_the_model_lacks_is_refused(tmp_path: Path) -> None:
    folder = random_model(tmp_path, seed=3, labels=("LABEL_0", "LABEL_1"))
    assert "'label_7'" in (judge(folder, labels="LABEL_7=supported").unavailable() or "")


@pytest.mark.parametrize(
    ("names", "labels", "refused"),
    [
        (("hallucinated", "grounded"), "0=supported, 1=unsupported", True),
        (("hallucinated", "grounded"), "1=unsupported", True),
        (("hallucinated", "grounded"), "0=unsupported, 1=supported", False),
        (("SUPPORT", "REFUTE"), "SUPPORT=unsupported, REFUTE=supported", True),
        (("fabricated", "other"), "0=supported, 1=unsupported", True),
        (("yes", "no"), "0=supported, 1=unsupported", False),
        (("entailment", "neutral", "contradiction"), "0=supported, 1=supported, 2=unsupported", False),
    ],
)
def test_a_map_that_turns_the_names_around_is_refused(
    names: tuple[str, ...], labels: str, refused: bool, tmp_path: Path
) -> None:
    why = judge(random_model(tmp_path, seed=3, labels=names), labels=labels).unavailable() or ""
    assert ("the model calls that output" in why) is refused
    assert bool(why) is refused


@pytest.mark.parametrize("names", [("SUPPORT", "REFUTE"), ("supported", "fabricated"), ("yes", "no")])
def test_names_are_read_where_they_are_clear(names: tuple[str, ...], tmp_path: Path) -> None:
    """Yes to what, a name does not say."""
    folder = random_model(tmp_path, seed=3, labels=names)
    if names[0] == "yes":
        assert "which do not tell what is supported" in (judge(folder).unavailable() or "")
    else:
        np.testing.assert_allclose(support(folder), reference(folder, names[0]), atol=1e-4)


@pytest.mark.parametrize(("labels", "sign"), [("", 1), ("0=supported", 1), ("0=hallucinated", -1)])
def test_one_logit_goes_through_a_sigmoid(labels: str, sign: int, tmp_path: Path) -> None:
    folder = random_model(tmp_path, seed=3, labels=("LABEL_0",))
    theirs = np.array(reference(folder, "LABEL_0"))
    np.testing.assert_allclose(support(folder, labels=labels), theirs if sign > 0 else 1 - theirs, atol=1e-4)


# ------------------------------------------------------------------------------------------------ published layouts


def tokens(text: str, model: Grounder) -> list[int]:
    """The tokens of a text in which special tokens count as such, as published inference code writes them."""
    return list(model.tokenizer()(text)["input_ids"])


def layout(model: Grounder, context: str, answer: str) -> list[int]:
    return list(model.encode_pairs([(context, answer)])[0]["input_ids"])


def test_minicheck_joins_with_the_end_of_sequence_token(tmp_path: Path) -> None:
    folder = random_model(tmp_path, "deberta-v2", seed=3, labels=("LABEL_0", "LABEL_1"))
    model = judge(folder, template="minicheck")
    for context, answer in PAIRS:
        assert layout(model, context, answer) == tokens(f"{context}[SEP]{answer}", model)
    theirs = reference(folder, "LABEL_1")
    # As one text, its token types are all 0; this DeBERTa has none, so the pair is the same input.
    np.testing.assert_allclose(model.probabilities(PAIRS)[:, 0], theirs, atol=1e-4)


def test_factcg_asks_in_words(tmp_path: Path) -> None:
    from transformers import pipeline

    folder = random_model(tmp_path, "deberta-v2", seed=3, labels=("LABEL_0", "LABEL_1"))
    model = judge(folder, template="factcg")
    texts = [
        f'{context}\n\nChoose your answer: based on the paragraph above can we conclude that "{answer}"?\n\nOPTIONS:\n'
        "- Yes\n- No\nI think the answer is "
        for context, answer in PAIRS
    ]
    classify: Any = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    theirs = [next(item["score"] for item in row if item["label"] == "LABEL_1") for row in classify(texts)]
    np.testing.assert_allclose(model.probabilities(PAIRS)[:, 0], theirs, atol=1e-4)


def test_minicheck_t5_is_read_at_the_first_token(tmp_path: Path) -> None:
    """Against the steps of the published code: prefix, </s> between the texts, softmax of the logits of "0" and "1"."""
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    folder = minicheck_t5(tmp_path)
    model = judge(folder)
    assert model.template.name == "minicheck-t5"
    words = AutoTokenizer.from_pretrained(str(folder))
    network = T5ForConditionalGeneration.from_pretrained(str(folder)).eval()
    no, yes = words("0")["input_ids"][0], words("1")["input_ids"][0]
    assert no != yes
    theirs = []
    for context, answer in PAIRS:
        given = words(f"predict: {context}</s>{answer}", return_tensors="pt")
        with torch.no_grad():
            logits = network(**given, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
        theirs.append(float(torch.softmax(logits[[no, yes]], dim=-1)[1]))
        assert layout(model, context, answer) == given["input_ids"][0].tolist()
    np.testing.assert_allclose(model.probabilities(PAIRS)[:, 0], theirs, atol=1e-4)
    assert np.ptp(theirs) > 0.05


def test_hhem_is_rebuilt_without_its_code(tmp_path: Path) -> None:
    import torch

    network = hhem(tmp_path)
    model = judge(tmp_path)
    assert model.unavailable() is None
    assert model.template.name == "hhem"
    words = t5_tokenizer()
    theirs = []
    for context, answer in PAIRS:
        prompt = (
            "<pad> Determine if the hypothesis is true given the premise?\n\n"
            f"Premise: {context}\n\nHypothesis: {answer}"
        )
        given = words(prompt, return_tensors="pt")
        assert layout(model, context, answer) == given["input_ids"][0].tolist()
        with torch.no_grad():
            logits = network(input_ids=given["input_ids"], attention_mask=given["attention_mask"]).logits[0, 0]
        theirs.append(float(torch.softmax(logits, dim=-1)[1]))
    np.testing.assert_allclose(model.probabilities(PAIRS)[:, 0], theirs, atol=1e-4)
    assert np.ptp(theirs) > 0.05


def test_a_special_token_in_a_text_stays_text(tmp_path: Path) -> None:
    """A context that writes the separator cannot end itself and claim the answer's place."""
    model = judge(random_model(tmp_path, "deberta-v2", seed=3, labels=LABELS), template="minicheck")
    separator = model.tokenizer().sep_token_id
    assert layout(model, "proof [SEP] the moon", "a").count(separator) == 2


def test_blanks_of_a_layout_are_filled_once() -> None:
    (text,) = TEMPLATES["factcg"].texts("see {hypothesis} and {premise}", "x")
    assert text.startswith("see {hypothesis} and {premise}\n\n")


# ------------------------------------------------------------------------------------------------ what is refused


def test_nothing_set_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOUCHSTONE_GROUNDED_MODEL", raising=False)
    assert "TOUCHSTONE_GROUNDED_MODEL" in (grounder(Wanted()).unavailable() or "")
    assert grounder(Wanted()).revision()


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    folder = random_model(tmp_path, seed=3, labels=LABELS)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pickle" in (judge(folder).unavailable() or "")


def test_code_of_a_model_is_never_run(tmp_path: Path) -> None:
    import json

    folder = random_model(tmp_path, seed=3, labels=LABELS)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own_kind", "auto_map": {"AutoConfig": "own.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('run')")
    assert "code of its own" in (judge(folder).unavailable() or "")


def test_weights_of_another_architecture_are_not_hhems(tmp_path: Path) -> None:
    import shutil

    hhem(tmp_path / "hhem")
    shutil.copy(random_model(tmp_path / "bert") / "model.safetensors", tmp_path / "hhem")
    with pytest.raises(Unavailable, match="not HHEM's"):
        judge(tmp_path / "hhem").probabilities(PAIRS)


def test_hhem_needs_a_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    hhem(tmp_path / "hhem")
    (tmp_path / "hhem" / "tokenizer.json").unlink()
    assert "flan-t5-base" in (judge(tmp_path / "hhem").unavailable() or "")
