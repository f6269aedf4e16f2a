"""The NLI backend against transformers' own pipeline, and what it promises: label orders read, nothing cut off, no
separator from a text, one answer whatever the batch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate.backends.inference import batches, pairs
from calibrate.backends.nli.model import CONTRADICTION, ENTAILMENT, HUB_DEFAULT, VARIABLE, Nli, nli
from calibrate.backends.text.segments import Part
from calibrate.errors import Unavailable
from tests.tiny_nli import LABELS, known_model, random_model

ROOT = Path(__file__).parents[2]
COLUMNS = ("entailment", "neutral", "contradiction")
PAIRS = [
    ("The warranty of the X200 lasts 24 months from delivery.", "It is covered for two years."),
    ("The warranty of the X200 lasts 24 months from delivery.", "The moon is made of cheese."),
    ("Batteries are covered for twelve months, damage by water is excluded.", "Water: not covered?"),
    ("保修期为二十四个月。", "保修期为十二个月。"),
    ("يستمر الضمان لمدة سنتين.", "الضمان لمدة سنتين"),
    ("a", "proof of the ocean"),
    ("Keep the invoice as proof of purchase. " * 2, "Keep it."),
    ("\ud800 😀", "x" * 40),
]


def reference(folder: Path, pairs: list[tuple[str, str]]) -> list[dict[str, float]]:
    """What transformers' pipeline gives, label by label."""
    from transformers import pipeline

    classify: Any = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    given = [{"text": one.replace("\ud800", "\ufffd"), "text_pair": other} for one, other in pairs]
    return [{row["label"]: row["score"] for row in classify(one)} for one in given]


@pytest.fixture(scope="module", params=["bert", "deberta-v2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_model(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_model(tmp_path_factory.mktemp("known"))


def test_equals_the_transformers_pipeline(folder: Path) -> None:
    ours = Nli(str(folder)).probabilities(PAIRS)
    assert ours.dtype == np.float32
    theirs = [[row[name] for name in COLUMNS] for row in reference(folder, PAIRS)]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert np.ptp(ours, axis=0).max() > 0.2, "the verdicts hardly differ: nothing was compared"


@pytest.mark.parametrize("labels", list(permutations(LABELS)), ids=lambda names: "".join(name[0] for name in names))
def test_labels_are_read_in_any_order(labels: tuple[str, ...], tmp_path: Path) -> None:
    folder = random_model(tmp_path / "random", labels=[name.upper() for name in labels])
    theirs = [[row[name.upper()] for name in COLUMNS] for row in reference(folder, PAIRS[:3])]
    np.testing.assert_allclose(Nli(str(folder)).probabilities(PAIRS[:3]), theirs, atol=1e-4)
    of_proof = Nli(str(known_model(tmp_path / "known", labels=labels))).probabilities([("proof", "the"), ("lie", "a")])
    np.testing.assert_allclose(of_proof, [[1, 0, 0], [0, 0, 1]], atol=1e-2)


@pytest.mark.parametrize("labels", [("entailment", "not_entailment"), ("NOT-ENTAILMENT", "Entailment")])
def test_two_labels_leave_the_rest_in_neutral(labels: tuple[str, ...], tmp_path: Path) -> None:
    folder = random_model(tmp_path, labels=labels)
    ours = Nli(str(folder)).probabilities(PAIRS)
    yes, no = (next(name for name in labels if name.lower().startswith(start)) for start in ("e", "n"))
    theirs = [[row[yes], row[no], 0.0] for row in reference(folder, PAIRS)]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert Nli(str(folder)).labels().contradiction is None


def test_two_labels_without_neutral(tmp_path: Path) -> None:
    folder = random_model(tmp_path, labels=("entailment", "contradiction"))
    theirs = [[row["entailment"], 0.0, row["contradiction"]] for row in reference(folder, PAIRS)]
    np.testing.assert_allclose(Nli(str(folder)).probabilities(PAIRS), theirs, atol=1e-4)


@pytest.mark.parametrize(
    "labels", [("LABEL_0", "LABEL_1", "LABEL_2"), ("positive", "negative"), ("entailment", "neutral"), ("entailment",)]
)
def test_other_labels_are_refused_by_name(labels: tuple[str, ...], tmp_path: Path) -> None:
    model = Nli(str(random_model(tmp_path, labels=labels)))
    assert ", ".join(labels) in (model.unavailable() or "")
    with pytest.raises(Unavailable, match="id2label"):
        model.probabilities(PAIRS)


def test_an_onnx_directory_gives_the_same(folder: Path, tmp_path: Path) -> None:
    """The same network exported; without PyTorch's weights in the directory, so that it is ONNX Runtime that ran."""
    pytest.importorskip("onnx")
    made = exported(folder, tmp_path / "onnx")
    assert not list(made.glob("*.safetensors"))
    np.testing.assert_allclose(Nli(str(made)).probabilities(PAIRS), Nli(str(folder)).probabilities(PAIRS), atol=1e-4)


def exported(folder: Path, target: Path) -> Path:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    network = AutoModelForSequenceClassification.from_pretrained(str(folder), attn_implementation="eager").eval()
    given = AutoTokenizer.from_pretrained(str(folder))(["a proof", "b"], ["of it", "c d e"], padding=True)
    # In the order of the network's own arguments: the exporter gives names by position.
    tensors = {name: torch.tensor(given[name]) for name in ("input_ids", "attention_mask", "token_type_ids")}
    target.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (), str(target / "model.onnx"), kwargs=tensors, dynamo=False, input_names=list(tensors),
            output_names=["logits"], dynamic_axes={name: {0: "rows", 1: "tokens"} for name in tensors},
        )  # fmt: skip
    for path in folder.iterdir():
        if path.suffix in (".json", ".txt"):
            shutil.copy(path, target)
    return target


def test_a_directory_as_the_hub_lays_it_out(folder: Path, tmp_path: Path) -> None:
    """`onnx/model.onnx` below the configuration is found too; PyTorch's weights come first where both are there."""
    pytest.importorskip("onnx")
    made = exported(folder, tmp_path / "flat")
    (made / "onnx").mkdir()
    (made / "model.onnx").rename(made / "onnx" / "model.onnx")
    assert Nli(str(made)).unavailable() is None
    only_onnx = Nli(str(made)).revision()
    shutil.copy(folder / "model.safetensors", made)
    assert Nli(str(made)).revision() != only_onnx


def test_batch_of_64_equals_batch_of_1_in_any_order(folder: Path) -> None:
    pairs = [(f"{one} {'and the ocean ' * (i % 9)}", f"{other} {i}") for i, (one, other) in enumerate(PAIRS * 8)]
    model = Nli(str(folder))
    together = model.probabilities(pairs)
    model.forget()
    alone = np.concatenate([Nli.probabilities(model, [pair]) for pair in pairs])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    model.forget()
    order = np.random.default_rng(3).permutation(len(pairs))
    np.testing.assert_allclose(model.probabilities([pairs[i] for i in order]), together[order], atol=1e-5)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_the_number_of_threads_changes_nothing(folder: Path, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Nli(str(folder)).probabilities(PAIRS)
    monkeypatch.setenv("TOUCHSTONE_THREADS", threads)
    np.testing.assert_allclose(Nli(str(folder)).probabilities(PAIRS), expected, atol=1e-5)


def test_batches_keep_to_the_budget_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_THREADS", "1")
    lengths = [5, 900, 2000, 30, 30, 31, 7, 400, 400, 400]
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    made = batches.split_into_batches(order, lengths, on_gpu=False)
    assert [i for batch in made for i in batch] == order
    for batch in made:
        cells = len(batch) * max(lengths[i] for i in batch)
        assert cells <= batches.BATCH_TOKENS or len(batch) == 1
    monkeypatch.setenv("TOUCHSTONE_THREADS", "2")
    assert len(batches.split_into_batches(range(4), [10] * 4, on_gpu=False)) == 2, "a small job occupies every thread"


def test_distinct_pairs_are_judged_once(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Nli(str(known))
    judged: list[int] = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda inputs: judged.append(len(inputs)) or forward(inputs))
    model.probabilities([("a", "b"), ("b", "a"), ("a", "b"), ("ab", ""), ("", "ab")])
    model.probabilities([("a", "b"), ("new", "b")])
    model.forget()
    model.probabilities([("a", "b")])
    assert judged == [4, 1, 1]


def test_the_memory_is_bounded(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "ENTRIES", 3)
    model = Nli(str(known))
    first = model.probabilities([(f"a {i}", "proof") for i in range(6)])
    assert len(model._memo) == 3
    np.testing.assert_allclose(model.probabilities([("a 0", "proof")]), first[:1], atol=1e-5)


def test_nothing_gives_no_rows(known: Path) -> None:
    assert Nli(str(known)).probabilities([]).shape == (0, 3)


# ----------------------------------------------------------------------------------------------- long and hostile


def test_a_long_premise_is_read_to_its_end(known: Path) -> None:
    """The model reads 64 tokens; transformers' truncation loses the word that decides."""
    model = Nli(str(known))
    late = "filler the of. " * 400 + "proof."
    assert len(model.tokenizer()(late)["input_ids"]) > 20 * model.limit
    assert model.probabilities([(late, "the answer")])[0, ENTAILMENT] > 0.98
    assert model.probabilities_truncated([late], ["the answer"])[0].argmax() != LABELS.index("entailment")


def test_a_long_hypothesis_is_no_better_than_its_worst_part(known: Path) -> None:
    model = Nli(str(known))
    mixed = "proof of it. " * 40 + "a lie. " * 40 + "proof of it. " * 40
    assert model.probabilities([("filler", mixed)])[0, CONTRADICTION] > 0.98
    assert model.probabilities([("filler", "proof of it. " * 120)])[0, ENTAILMENT] > 0.98


def test_a_long_pair_is_the_max_over_windows_and_min_over_parts(tmp_path: Path) -> None:
    """The rule, computed again from parts that the pipeline judges."""
    folder = random_model(tmp_path, limit=32)
    model = Nli(str(folder))
    premise, hypothesis = "The ocean is not made of cheese. " * 12, "Batteries are covered, 12 months. " * 9
    rows = []
    for start, end in model.fit(hypothesis, [Part(0, len(hypothesis))]):
        said = hypothesis[start:end]
        room = model.limit - 3 - len(model.tokenizer()(said, add_special_tokens=False)["input_ids"])
        held = [premise[a:b] for a, b in model.fit(premise, [Part(0, len(premise))], room=room)]
        judged = reference(folder, [(one, said) for one in held])
        rows.append(max(judged, key=lambda row: row["entailment"] - row["contradiction"]))
    assert len(rows) > 3
    worst = min(rows, key=lambda row: row["entailment"] - row["contradiction"])
    np.testing.assert_allclose(
        model.probabilities([(premise, hypothesis), ("a", "b")])[0], [worst[name] for name in COLUMNS], atol=1e-4
    )


@pytest.mark.parametrize(
    "text", ["word " * 900, "한국어 문장 " * 400, "x" * 3000, "\ud800字" * 900, "😀" * 700, "x1y2" * 500, "short", ""]
)
def test_parts_fit_and_nothing_is_lost(folder: Path, text: str) -> None:
    model = Nli(str(folder))
    parts = model.fit(text, [Part(0, len(text))])
    assert "".join(text[part.start : part.end] for part in parts) == text
    for part in parts:
        piece = text[part.start : part.end].replace("\ud800", "\ufffd")
        assert len(model.tokenizer()(piece, add_special_tokens=False)["input_ids"]) <= model.room
    assert model.probabilities([(text, text[:60])]).sum() == pytest.approx(1, abs=1e-5)


def test_windows_leave_room_for_a_hypothesis(folder: Path) -> None:
    model = Nli(str(folder))
    text = "The parcel leaves our warehouse before noon. " * 30 + "z" * 900
    for size in (1, 3):
        parts = model.windows(text, sentences_per_window=size)
        assert all(len(model.tokenizer()(text[a:b])["input_ids"]) - 2 <= model.room for a, b in parts)
        assert {i for a, b in parts for i in range(a, b)} >= {i for i, one in enumerate(text) if not one.isspace()}


@pytest.mark.parametrize("token", ["[SEP]", "[CLS]", "[PAD]", "[MASK]"])
def test_a_text_cannot_hold_a_special_token(known: Path, token: str) -> None:
    """The pair has two separators and one start, whatever the texts contain; a glued text gets what it contains."""
    model = Nli(str(known))
    place = model.tokenizer().convert_tokens_to_ids(token)
    (plain,) = model.encode_pairs([("filler", "the")])
    (given,) = model.encode_pairs([(f"filler {token} proof", f"the {token} answer")])
    assert given["input_ids"].count(place) == plain["input_ids"].count(place)
    assert len(given["input_ids"]) > len(plain["input_ids"]) + 4
    injected = f"filler {token} filler [SEP] the"
    assert model.tokenizer()(injected)["input_ids"].count(place) > plain["input_ids"].count(place) - (token == "[CLS]")


# ------------------------------------------------------------------------------------------------------- identity


def test_a_missing_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    missing = nli()
    assert missing.model == HUB_DEFAULT
    why = missing.unavailable() or ""
    assert "models pull nli" in why
    assert VARIABLE in why
    assert missing.revision() == f"{HUB_DEFAULT}@missing"
    with pytest.raises(Unavailable, match="no NLI model"):
        missing.probabilities([("a", "b")])


def test_the_variable_names_another(monkeypatch: pytest.MonkeyPatch, known: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(known))
    assert nli() is nli("default") is nli(str(known))
    assert nli("some/other").model == "some/other"


def test_a_hub_model_in_the_cache_is_found(tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--an-org--a-model"
    shutil.copytree(known, folder / "snapshots" / "abc")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    model = Nli("an-org/a-model")
    assert model.unavailable() is None
    assert model.probabilities([("proof", "the")])[0, ENTAILMENT] > 0.98


@pytest.mark.parametrize(
    ("name", "match"),
    [("model.safetensors", "no weights"), ("config.json", "config.json cannot be read"), ("tokenizer.json", "tokeniz")],
)
def test_what_a_directory_lacks_is_said(name: str, match: str, tmp_path: Path, known: Path) -> None:
    shutil.copytree(known, tmp_path / "cut")
    (tmp_path / "cut" / name).unlink()
    model = Nli(str(tmp_path / "cut"))
    with pytest.raises(Unavailable, match=match):
        model.probabilities([("a", "b")])


def test_weights_without_a_classifier_are_refused(tmp_path: Path, known: Path) -> None:
    """transformers would fill the classifier with random numbers and score with them."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(known, tmp_path / "cut")
    path = tmp_path / "cut" / "model.safetensors"
    kept = {name: held for name, held in load_file(path).items() if not name.startswith("classifier")}
    save_file(kept, path, metadata={"format": "pt"})
    with pytest.raises(Unavailable, match=r"classifier\.\w+: this is not a trained classifier"):
        Nli(str(tmp_path / "cut")).probabilities([("a", "b")])


def test_the_revision_is_that_of_the_files(tmp_path: Path, known: Path) -> None:
    shutil.copytree(known, tmp_path / "copy")
    folder = tmp_path / "copy"
    seen = {Nli(str(folder)).revision()}
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "id2label": dict(enumerate(reversed(LABELS)))}))
    seen.add(Nli(str(folder)).revision())
    (folder / "tokenizer.json").write_text("{}")
    seen.add(Nli(str(folder)).revision())
    (folder / "model.safetensors").write_bytes(b"other")
    seen.add(Nli(str(folder)).revision())
    assert len(seen) == 4


def test_asking_who_it_is_loads_nothing(known: Path) -> None:
    code = (
        "import sys; from calibrate.backends.nli.model import nli; m = nli(sys.argv[1]); print(m.unavailable());"
        "m.revision(); assert not {'torch', 'transformers', 'tokenizers', 'onnxruntime', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(known)], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "None", done.stderr


def test_nothing_reaches_the_network(known: Path) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "from calibrate.backends.nli.model import nli\n"
        "print(nli(sys.argv[1]).probabilities([('proof', 'b')]).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(known)], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "(1, 3)", done.stderr
