"""What a directory of a model must hold before anything is loaded, and that nothing in it can run code."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibrate.backends.grounding import Wanted, grounder, span_finder
from calibrate.backends.inference import Classifier
from calibrate.backends.nli.model import Nli, nli
from calibrate.errors import Unavailable
from tests.tiny_nli import LABELS, random_model

PAIRS = [("the warranty lasts two years", "it lasts five years"), ("the moon is made of cheese", "proof of the ocean")]


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_model(tmp_path_factory.mktemp("whole"), labels=LABELS)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "model")


def refusal(folder: Path) -> str:
    """The sentence of `nli` and of `grounded`, which is the same; and neither loads anything."""
    models: list[Classifier] = [Nli(str(folder)), grounder(Wanted(str(folder)))]
    sentences = {model.unavailable() or "" for model in models}
    for model in models:
        with pytest.raises(Unavailable):
            model.logits(model.encode_pairs(PAIRS))
    (sentence,) = sentences
    return sentence


def write_index(folder: Path, **shards: str) -> None:
    (folder / "model.safetensors").unlink(missing_ok=True)
    index = {"metadata": {}, "weight_map": shards}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def test_a_whole_directory_is_ready(folder: Path) -> None:
    assert Nli(str(folder)).unavailable() is None
    assert grounder(Wanted(str(folder))).unavailable() is None


@pytest.mark.parametrize("left", [(), ("tokenizer_config.json",)])
def test_without_a_tokenizer_nothing_is_scored(left: tuple[str, ...], folder: Path) -> None:
    """transformers would make one up in which every word is unknown, and score all pairs nearly alike."""
    for path in folder.glob("tokenizer*"):
        if path.name not in left:
            path.unlink()
    assert "has no tokenizer.json" in refusal(folder)
    spans = random_model(folder.parent / "spans", labels=("supported", "hallucinated"), task="token")
    (spans / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in (span_finder(Wanted(str(spans)), "en").unavailable() or "")


def test_a_tokenizer_without_words_is_not_used(folder: Path) -> None:
    """A vocabulary that its class does not read leaves the special tokens alone."""
    for path in folder.glob("tokenizer*"):
        path.unlink()
    (folder / "other.model").write_bytes(b"")
    with pytest.raises(Unavailable, match="the tokenizer in"):
        Nli(str(folder)).probabilities(PAIRS)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors", "index"])
def test_a_pickle_is_never_read_whatever_its_name(name: str, folder: Path, tmp_path: Path) -> None:
    held = pickle.dumps(Planted(tmp_path / "ran"))
    (folder / "model.safetensors").unlink()
    if name == "index":
        write_index(folder, **{"classifier.weight": "w.bin"})
        name = "w.bin"
    (folder / name).write_bytes(held)
    assert "save them as model.safetensors" in refusal(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("shard", ["../weights.safetensors", "/tmp/weights.safetensors", "below/weights.safetensors"])
def test_shards_stay_in_the_directory(shard: str, folder: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder.parent / "weights.safetensors")
    write_index(folder, **{"classifier.weight": shard})
    assert f"names {shard!r}, which is no safetensors file beside it" in refusal(folder)


def test_shards_beside_their_list_are_loaded(folder: Path) -> None:
    from safetensors import safe_open

    with safe_open(str(folder / "model.safetensors"), "pt") as tensors:
        names = list(tensors.keys())
    expected = Nli(str(folder)).probabilities(PAIRS)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    write_index(folder, **dict.fromkeys(names, "model-00001-of-00001.safetensors"))
    assert Nli(str(folder)).probabilities(PAIRS) == pytest.approx(expected)
    (folder / "model-00001-of-00001.safetensors").rename(folder / "model-00002-of-00001.safetensors")
    assert "which is not there" in refusal(folder)


def test_a_configuration_does_not_choose_the_weights(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"transformers_weights": "below/other.safetensors"}))
    assert "names 'below/other.safetensors' as its weights" in refusal(folder)


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda held: held[: len(held) // 2], "is damaged"),
        (lambda held: held + b"more", "is damaged"),
        (lambda held: b"", "does not hold safetensors"),
        (lambda held: b"\xff" * 64, "does not hold safetensors"),
        (lambda held: held[:8] + b"x" + held[9:], "does not hold safetensors"),
        (lambda held: (2).to_bytes(8, "little") + b"[]", "does not hold safetensors"),
        (lambda held: (7).to_bytes(8, "little") + b'{"a":1}', "damaged list"),
    ],
)
def test_damaged_weights_are_found_by_their_header(damage: Callable[[bytes], bytes], match: str, folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    assert match in refusal(folder)


# -------------------------------------------------------------------------------------- files replaced meanwhile


def replace_weights(folder: Path) -> None:
    """Turn the classifier's verdicts around."""
    from safetensors.torch import load_file, save_file

    state = load_file(str(folder / "model.safetensors"))
    state["classifier.weight"] *= -1
    save_file(state, str(folder / "model.safetensors"), metadata={"format": "pt"})


def test_a_model_is_loaded_anew_once_its_weights_changed(folder: Path) -> None:
    old = nli(str(folder))
    before, revision = old.probabilities(PAIRS), old.revision()
    replace_weights(folder)
    new = nli(str(folder))
    assert new.revision() != revision
    assert new.probabilities(PAIRS) == pytest.approx(Nli(str(folder)).probabilities(PAIRS))
    assert new.probabilities(PAIRS) != pytest.approx(before, abs=0.05)
    assert (old.revision(), old.probabilities([PAIRS[0]])[0]) == (revision, pytest.approx(before[0]))


def test_weights_that_are_not_those_of_the_revision_are_not_loaded(folder: Path) -> None:
    model = nli(str(folder))
    model.revision()
    replace_weights(folder)
    with pytest.raises(Unavailable, match="were replaced meanwhile"):
        model.probabilities(PAIRS)
