"""ONNX files made of torch models: the same scores, made once, made again when damaged, never mixed with torch's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate import settings
from calibrate.backends.inference import Classifier, Encoded, export
from calibrate.backends.inference.classifier import softmax
from calibrate.backends.nli.model import Nli
from calibrate.cli import main
from calibrate.errors import BadInput, Unavailable
from tests.tiny_nli import LABELS, random_model, random_modernbert, random_t5

ROOT = Path(__file__).parents[3]
PAIRS = [
    ("The warranty of the X200 lasts 24 months from delivery.", "It is covered for two years."),
    ("a", "proof of the ocean"),
    ("Keep the invoice as proof of purchase. " * 2, "Keep it."),
    ("The parcel leaves our warehouse before noon. " * 7, "Two batteries are covered by water in six months."),
]
INT8 = 0.15  # on average; these weights are large and random, trained ones stay closer


class Tokens(Classifier):
    task = "token-classification"


class FirstToken(Classifier):
    task = "first-token"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TOUCHSTONE_INFERENCE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def any_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let networks of random weights be quantised, which move further than trained ones may."""
    monkeypatch.setattr(export, "INT8_LARGEST", 1.0)
    monkeypatch.setattr(export, "INT8_MEAN", 1.0)


def judge(model: Classifier, pairs: Sequence[tuple[str, str]] = PAIRS) -> np.ndarray:
    """Probabilities of every pair, or of every token of every pair."""
    inputs = model.encode_pairs(pairs)
    if model.task == "token-classification":
        return np.concatenate([softmax(rows) for rows in model.token_logits(inputs)])
    if model.task == "first-token":
        inputs = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in inputs]
    return softmax(model.logits(inputs))


def made(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "onnx").glob("*") if path.is_dir())


MODELS: dict[str, tuple[type[Classifier], Any]] = {
    "bert": (Classifier, lambda folder: random_model(folder)),
    "deberta": (Classifier, lambda folder: random_model(folder, "deberta-v2")),
    "bert, tokens": (Tokens, lambda folder: random_model(folder, task="token")),
    "modernbert, tokens": (Tokens, lambda folder: random_modernbert(folder)),
    "t5, first token": (FirstToken, lambda folder: random_t5(folder)),
}


@pytest.mark.usefixtures("any_rounding")
@pytest.mark.parametrize("name", MODELS)
def test_an_export_scores_as_torch_does(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kind, make = MODELS[name]
    folder = make(tmp_path / "model")
    expected, revisions = judge(kind(str(folder))), [kind(str(folder)).revision()]
    assert np.ptp(expected, axis=0).max() > 0.1, "the verdicts hardly differ: nothing was compared"
    for setting in ("onnx", "onnx-int8"):
        monkeypatch.setenv("TOUCHSTONE_INFERENCE", setting)
        model = kind(str(folder))
        assert model.unavailable() is None
        off = np.abs(judge(model) - expected)
        assert off.max() < 1e-4 if setting == "onnx" else 1e-4 < off.mean() < INT8
        revisions.append(model.revision())
    assert revisions[1:] == [f"{revisions[0]}-onnx1", f"{revisions[0]}-onnx1-int8"]


def test_batches_do_not_change_an_exports_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    model = Nli(str(random_model(tmp_path / "model")))
    pairs = [(first, f"{second} {at}") for at in range(9) for first, second in PAIRS]
    together = model.probabilities(pairs)
    model.forget()
    np.testing.assert_allclose([model.probabilities([pair])[0] for pair in pairs], together, atol=1e-5)


@pytest.mark.usefixtures("any_rounding")
def test_it_is_made_once_and_needs_no_torch_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    folder = random_model(tmp_path / "model")
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx-int8")
    expected = Nli(str(folder)).probabilities(PAIRS)
    files = [(path, path.stat().st_mtime_ns) for place in made(cache) for path in place.iterdir()]
    code = (
        "import sys; sys.modules['torch'] = None; import json\n"
        "from calibrate.backends.nli.model import Nli\n"
        "print(json.dumps(Nli(sys.argv[1]).probabilities(json.loads(sys.argv[2])).tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), json.dumps(PAIRS)], capture_output=True, text=True, cwd=ROOT
    )
    np.testing.assert_allclose(json.loads(done.stdout or "[]"), expected, atol=1e-6, err_msg=done.stderr)
    assert [(path, path.stat().st_mtime_ns) for place in made(cache) for path in place.iterdir()] == files


@pytest.mark.parametrize("damage", ["cut", "changed", "no list", "half a list", "no file"])
def test_a_damaged_file_is_made_again(
    damage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    folder = random_model(tmp_path / "model")
    expected = Nli(str(folder)).probabilities(PAIRS)
    (place,) = made(cache)
    graph, manifest = place / export.MODEL, place / export.MANIFEST
    whole = graph.read_bytes()
    if damage == "cut":
        graph.write_bytes(whole[: len(whole) // 2])
    elif damage == "changed":
        graph.write_bytes(whole[:-400] + bytes(400))
    elif damage == "no list":
        manifest.unlink()
    elif damage == "half a list":
        manifest.write_text(manifest.read_text()[:40])
    else:
        graph.unlink()
    np.testing.assert_allclose(Nli(str(folder)).probabilities(PAIRS), expected, atol=1e-6)
    assert made(cache) == [place]
    exported = Nli(str(folder)).exported()
    assert exported is not None
    assert exported.is_intact()


def test_what_a_killed_process_left_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    rest = cache / "onnx" / "tmp-killed" / "export"
    rest.mkdir(parents=True)
    (rest / "model.onnx").write_bytes(b"half")
    Nli(str(random_model(tmp_path / "model"))).probabilities(PAIRS[:1])
    assert len(made(cache)) == 1
    assert not rest.exists()


def test_those_that_start_together_make_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    """The lock that keeps processes apart keeps threads with models of their own apart as well."""
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    folder, built = random_model(tmp_path / "model"), []

    class Counted(Nli):
        def build(self, folder: Path) -> Any:
            built.append(folder)
            return super().build(folder)

    with ThreadPoolExecutor(3) as pool:
        rows = list(pool.map(lambda _: Counted(str(folder)).probabilities(PAIRS), range(3)))
    assert len(built) == len(made(cache)) == 1
    np.testing.assert_array_equal(rows[0], rows[2])


def test_other_weights_or_another_graph_are_another_file(tmp_path: Path) -> None:
    first, second = random_model(tmp_path / "first"), random_model(tmp_path / "second", seed=1)
    exports = [
        export.Export(folder, graph, is_int8)
        for folder in (first, second)
        for graph in "ab"
        for is_int8 in (True, False)
    ]
    assert len({item.folder for item in exports}) == 8
    shutil.copytree(first, tmp_path / "copy")
    assert export.Export(tmp_path / "copy", "a", True).folder == exports[0].folder


@pytest.mark.usefixtures("any_rounding")
def test_an_onnx_directory_is_used_as_it_is_and_quantised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    folder = random_model(tmp_path / "model")
    expected = Nli(str(folder)).probabilities(PAIRS)
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    Nli(str(folder)).probabilities(PAIRS)
    (place,) = made(cache)
    shutil.copytree(folder, tmp_path / "onnx", ignore=shutil.ignore_patterns("*.safetensors"))
    shutil.copy(place / export.MODEL, tmp_path / "onnx")
    plain = Nli(str(tmp_path / "onnx"))
    assert plain.exported() is None
    assert "-onnx" not in (revision := plain.revision()).rsplit("@")[-1]
    np.testing.assert_allclose(plain.probabilities(PAIRS), expected, atol=1e-4)
    before = sorted((tmp_path / "onnx").iterdir())
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx-int8")
    quantised = Nli(str(tmp_path / "onnx"))
    assert 1e-4 < np.abs(quantised.probabilities(PAIRS) - expected).mean() < INT8
    assert quantised.revision() == f"{revision}-onnx1-int8"
    assert sorted((tmp_path / "onnx").iterdir()) == before, "a team's own directory is left as it was"
    assert len(made(cache)) == 2


def test_int8_is_held_to_its_tolerance(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two networks that differ in the size of their last layer, the one whose probabilities move is refused."""
    from safetensors.torch import load_file, save_file

    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx-int8")
    folders = {scale: random_model(tmp_path / str(scale)) for scale in (0.01, 8.0)}
    for scale, folder in folders.items():
        state = load_file(str(folder / "model.safetensors"))
        state["classifier.weight"] *= scale
        save_file(state, str(folder / "model.safetensors"), metadata={"format": "pt"})
    with pytest.raises(Unavailable, match=r"move by up to \d.\d\d, .*set TOUCHSTONE_INFERENCE to onnx"):
        Nli(str(folders[8.0])).probabilities(PAIRS)
    assert made(cache) == []

    small = Nli(str(folders[0.01]))
    quantised = small.probabilities(PAIRS)
    exported = small.exported()
    assert exported is not None
    difference = exported.difference()
    assert difference is not None
    assert 0 < difference.mean <= difference.largest <= 0.15
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "torch")
    full = Nli(str(folders[0.01])).probabilities(PAIRS)
    assert np.abs(full - quantised).max() == pytest.approx(difference.largest, abs=0.02)

    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx-int8")
    monkeypatch.setenv("TOUCHSTONE_NLI_MODEL", str(folders[0.01]))
    assert main(["models", "list"]) == 0
    assert f"moved by up to {difference.largest:.2g}, {difference.mean:.2g} on average" in capsys.readouterr().out


def test_an_export_that_nobody_compared_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    model = Nli(str(random_model(tmp_path / "model")))
    model.probabilities(PAIRS[:1])
    (place,) = made(cache)
    document = json.loads((place / export.MANIFEST).read_text())
    del document["probability"]
    (place / export.MANIFEST).write_text(json.dumps(document))
    exported = model.exported()
    assert exported is not None
    assert not exported.is_intact()
    Nli(model.model).probabilities(PAIRS[:1])
    assert exported.is_intact()


class Branching(Classifier):
    """Computes what tracing cannot keep: a branch on the number of tokens."""

    def compute(self, module: Any, inputs: Any) -> Any:
        return super().compute(module, inputs) * (1.0 if inputs["input_ids"].shape[1] > 120 else 2.0)


class Failing(Classifier):
    def compute(self, module: Any, inputs: Any) -> Any:
        raise RuntimeError("an operator that ONNX lacks")


@pytest.mark.parametrize(("kind", "reason"), [(Branching, "its logits differ from torch's"), (Failing, "ONNX lacks")])
@pytest.mark.parametrize("setting", ["onnx", "onnx-int8"])
def test_what_cannot_be_exported_says_so(
    kind: type[Classifier],
    reason: str,
    setting: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cache: Path,
) -> None:
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", setting)
    model = kind(str(random_model(tmp_path / "model")))
    inputs: list[Encoded] = model.encode_pairs(PAIRS)
    with pytest.raises(Unavailable, match=rf"cannot be exported to ONNX: .*{reason}.*unset TOUCHSTONE_INFERENCE"):
        model.logits(inputs)
    assert reason in (model.unavailable() or ""), "it is not tried again for every trace"
    assert made(cache) == []


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match=r"cannot be written to .*file.*TOUCHSTONE_CACHE"):
        Nli(str(random_model(tmp_path / "model"))).probabilities(PAIRS)


def test_a_wrong_setting_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [settings.inference({"TOUCHSTONE_INFERENCE": text}) for text in ("", " ONNX ", "onnx-int8")] == [
        "torch",
        "onnx",
        "onnx-int8",
    ]
    with pytest.raises(BadInput, match="TOUCHSTONE_INFERENCE cannot be 'int8'; it is torch, onnx or onnx-int8"):
        settings.inference({"TOUCHSTONE_INFERENCE": "int8"})
    model = Nli(str(random_model(tmp_path / "model", labels=LABELS)))
    plain = model.revision()
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "int8")
    assert "TOUCHSTONE_INFERENCE cannot be 'int8'" in (model.unavailable() or "")
    assert model.revision() == plain


def test_a_revision_exports_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    folder = random_model(tmp_path / "model")
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx-int8")
    code = (
        "import sys; from calibrate.backends.nli.model import Nli; m = Nli(sys.argv[1]); print(m.unavailable(),"
        "m.revision()); assert not {'torch', 'transformers', 'onnx', 'onnxruntime', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip().endswith("-onnx1-int8"), done.stderr
    assert done.stdout.startswith("None ")
    assert not cache.exists()
