"""`models pull NAME` of the catalogue, from a hub on loopback: only safe files come, and errors are sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from calibrate.backends import weights
from calibrate.backends.catalogue import entry as listed
from calibrate.cli import main
from tests.backends.hub_server import GATED, serving
from tests.backends.test_models import process

SAFE = {
    "config.json": b'{"model_type": "modernbert"}',
    "tokenizer.json": b"{}",
    "vocab.txt": b"a",
    "model.safetensors": b"weights",
}
SAFE_TEXTS = {name: held for name, held in SAFE.items() if name != "model.safetensors"}
CODE = {"modeling_own.py": b"print('ran')", "pytorch_model.bin": b"pickle", "training_args.bin": b"pickle"}
HUBS = {
    name: listed(name).hub  # type: ignore[union-attr]
    for name in ("lettucedetect-base", "tinylettuce-17m", "groundcheck-modernbert", "hhem-2.1-open")
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    onnx = {"config.json": b"{}", "model.onnx": b"graph", "model.onnx_data": b"weights", **CODE}
    with serving(
        {
            HUBS["lettucedetect-base"]: {**SAFE, **CODE, "model.onnx": b"not wanted beside safetensors"},
            HUBS["tinylettuce-17m"]: onnx,
            HUBS["groundcheck-modernbert"]: {"config.json": b"{}", **CODE},
            HUBS["hhem-2.1-open"]: GATED,
            "an-org/pickled": {**SAFE_TEXTS, **CODE},
            "an-org/both": {**SAFE, **CODE},
        }
    ) as address:
        yield address


def test_only_weights_that_run_no_code_come(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    model = listed("lettucedetect-base")
    assert model is not None
    assert model.directory() is None
    code, pulled = process("pull", "lettucedetect-base", HF_ENDPOINT=endpoint)
    assert code == 0, pulled
    assert {path.name for path in Path(pulled["directory"]).iterdir()} == set(SAFE)
    assert model.directory() == Path(pulled["directory"])
    assert weights.directory(model.hub, Path(pulled["directory"]).name) == model.directory(), "a pinned commit is found"

    code, pulled = process("pull", "tinylettuce-17m", HF_ENDPOINT=endpoint)
    assert code == 0, pulled
    assert {path.name for path in Path(pulled["directory"]).iterdir()} == {
        "config.json", "model.onnx", "model.onnx_data",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("groundcheck-modernbert", "only as a pickle"),
        ("an-org/pickled", "only as a pickle"),
        ("hhem-2.1-open", "accept their terms"),
        ("minicheck-flan-t5-large", "no such model"),
    ],
)
def test_what_does_not_come_is_said(name: str, match: str, endpoint: str, tmp_path: Path) -> None:
    code, answer = process("pull", name, HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path))
    assert code == 1
    assert match in answer["error"]


def test_a_hub_id_is_fetched_as_safely(endpoint: str, tmp_path: Path) -> None:
    code, pulled = process("pull", "an-org/both", HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path))
    assert code == 0, pulled
    assert {path.name for path in Path(pulled["directory"]).iterdir()} == set(SAFE)


@pytest.mark.parametrize("name", ["lettucedetect-base", "an-org/both", "nli"])
def test_files_that_differ_from_the_listing_are_refused(name: str, tmp_path: Path) -> None:
    hubs = (HUBS["lettucedetect-base"], "an-org/both", "an-org/nli")
    with serving(dict.fromkeys(hubs, SAFE), spoilt="model.safetensors") as address:
        code, answer = process(
            "pull", name, HF_ENDPOINT=address, HF_HOME=str(tmp_path), TOUCHSTONE_NLI_MODEL="an-org/nli"
        )
    assert code == 1
    assert "did not arrive whole: model.safetensors" in answer["error"]


def test_a_model_that_is_served_is_not_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull", "lynx-8b"]) == 2
    assert "judge_template" in capsys.readouterr().err


def test_the_catalogue_lists_figures_licences_and_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "catalogue"]) == 0
    text = capsys.readouterr().out
    first, second, third, rest = text.split("\n\n", 3)
    assert "RAGTruth, F1 of answers" in first.splitlines()[0]
    assert "79.22" in first
    assert "LLM-AggreFact, balanced accuracy" in second.splitlines()[0]
    assert "HaluBench, accuracy" in third.splitlines()[0]
    assert "4,096" in first
    assert "≤ 0.5" in second, "supported answers score high"
    assert "CC BY-NC 4.0 (NC: no commercial use)" in second
    assert rest.count("python -m calibrate models pull NAME") == 1
    assert "none is pinned to a commit" in rest


def test_one_model_of_the_catalogue_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    model = listed("minicheck-deberta-large")
    assert model is not None
    assert main(["models", "catalogue", model.name]) == 0
    text = capsys.readouterr().out
    for known in (model.hub, model.source, model.labels, model.licence, "2,048 tokens", "main, not pinned", "≤ 0.5"):
        assert known in text
    assert "python -m calibrate models pull minicheck-deberta-large" in text
    assert main(["models", "catalogue", "no-such"]) == 2
    assert "no model 'no-such' in the catalogue" in capsys.readouterr().err
