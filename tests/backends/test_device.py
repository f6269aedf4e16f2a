"""Where models compute: what the settings refuse, what they change of a score's identity, and that batches as a GPU
takes them give the processor's scores. They are run on the processor, and on a real GPU where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from calibrate import settings
from calibrate.backends import device
from calibrate.backends.device import Device
from calibrate.backends.embedding.model import PACKAGED, PACKAGED_SHA256, Embedder, embedder
from calibrate.backends.nli.model import Nli
from calibrate.detectors.semantic_similarity import SemanticSimilarity
from calibrate.errors import BadInput, TouchstoneError
from calibrate.runtime.planning import revision_of
from tests.tiny_nli import known_model, random_model

ROOT = Path(__file__).parents[2]
TEXTS = [
    f"{'The parcel leaves our warehouse before noon. ' * (number % 7)}Order {number} is covered for two years."
    for number in range(40)
]
PAIRS = [(text, f"order {number} is covered") for number, text in enumerate(TEXTS)]
OFF_BY_HALF = 0.005
needs_no_gpu = pytest.mark.skipif(
    torch.cuda.is_available() or torch.backends.mps.is_available(), reason="a GPU is here: nothing to refuse"
)


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOUCHSTONE_DEVICE", "TOUCHSTONE_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOUCHSTONE_CACHE_MB", "0")  # vectors of one device must not be handed to the other


@pytest.fixture(scope="module", params=["bert", "deberta-v2"])
def nli_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_model(tmp_path_factory.mktemp(request.param), request.param)


def packaged(monkeypatch: pytest.MonkeyPatch, chosen: Device) -> Embedder:
    """A packaged embedder of its own on this device."""
    if why := embedder().unavailable():
        pytest.skip(why)
    monkeypatch.setattr(device, "resolve", lambda: chosen)
    return Embedder(PACKAGED)


# ------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("auto", False)),
        ({"TOUCHSTONE_DEVICE": "", "TOUCHSTONE_PRECISION": " "}, ("auto", False)),
        ({"TOUCHSTONE_DEVICE": " CUDA ", "TOUCHSTONE_PRECISION": "Half"}, ("cuda", True)),
        ({"TOUCHSTONE_DEVICE": "cpu", "TOUCHSTONE_PRECISION": "full"}, ("cpu", False)),
        ({"TOUCHSTONE_DEVICE": "mps"}, ("mps", False)),
    ],
)
def test_settings_are_read(variables: dict[str, str], expected: tuple[str, bool]) -> None:
    asked = settings.devices(variables)
    assert (asked.device, asked.is_half) == expected


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"TOUCHSTONE_DEVICE": "gpu"}, "TOUCHSTONE_DEVICE cannot be 'gpu'; it is auto, cpu, cuda or mps"),
        ({"TOUCHSTONE_PRECISION": "fp16"}, "TOUCHSTONE_PRECISION cannot be 'fp16'; it is full or half"),
        ({"TOUCHSTONE_PRECISION": "half", "TOUCHSTONE_DEVICE": "cpu"}, "needs a GPU, and TOUCHSTONE_DEVICE is 'cpu'"),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch, nli_folder: Path
) -> None:
    with pytest.raises(BadInput) as refused:
        settings.devices(variables)
    assert message in str(refused.value)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert message in (Nli(str(nli_folder)).unavailable() or "")
    with pytest.raises(TouchstoneError, match="TOUCHSTONE_"):
        Nli(str(nli_folder)).probabilities([("a", "b")])


@needs_no_gpu
@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("TOUCHSTONE_DEVICE", "cuda", "a CUDA build of torch"),
        ("TOUCHSTONE_DEVICE", "mps", "Apple silicon"),
        ("TOUCHSTONE_PRECISION", "half", "unset it"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(
    name: str, value: str, remedy: str, monkeypatch: pytest.MonkeyPatch, nli_folder: Path
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=f"{name} is '{value}'.*{remedy}"):
        device.resolve()
    assert remedy in (Nli(str(nli_folder)).unavailable() or "")
    with pytest.raises(TouchstoneError, match=remedy):
        Nli(str(nli_folder)).probabilities([("a", "b")])
    if embedder().directory() is not None:
        assert remedy in (embedder().unavailable() or "")


@needs_no_gpu
@pytest.mark.parametrize("asked", ["auto", "cpu"])
def test_without_a_gpu_the_processor_computes(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_DEVICE", asked)
    assert device.resolve() == Device("cpu")
    assert device.problem() is None


# ------------------------------------------------------------------------------------------------------- identity


def test_only_half_precision_is_part_of_the_revision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = f"{PACKAGED}@{PACKAGED_SHA256[:12]}"
    folder = known_model(tmp_path / "known")
    judge = Nli(str(folder)).revision()
    for asked in ("auto", "cpu", "cuda", "mps", "wrong"):
        monkeypatch.setenv("TOUCHSTONE_DEVICE", asked)
        assert (embedder().revision(), Nli(str(folder)).revision()) == (plain, judge)
        assert revision_of(SemanticSimilarity()).split("+")[0] == plain, "a released threshold stays in force"
    monkeypatch.setenv("TOUCHSTONE_DEVICE", "cuda")
    monkeypatch.setenv("TOUCHSTONE_PRECISION", "half")
    assert embedder().revision() == f"{plain}-fp16"
    assert Nli(str(folder)).revision() == f"{judge}-fp16"
    assert embedder().revision() in SemanticSimilarity().revision().split("+")


def test_an_onnx_model_keeps_its_own_precision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ONNX Runtime computes in the types that the file names: neither torch nor the precision asked for matters."""
    folder = known_model(tmp_path / "known")
    (folder / "model.safetensors").unlink()
    (folder / "model.onnx").write_bytes(b"not read here")
    revision = Nli(str(folder)).revision()
    monkeypatch.setenv("TOUCHSTONE_DEVICE", "cuda")
    monkeypatch.setenv("TOUCHSTONE_PRECISION", "half")
    assert Nli(str(folder)).revision() == revision
    assert Nli(str(folder)).unavailable() is None


def test_a_revision_in_half_precision_imports_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_PRECISION", "half")
    code = (
        "import sys; from calibrate.backends.embedding.model import embedder; print(embedder().revision());"
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip().endswith("-fp16"), done.stderr


# -------------------------------------------------------------------------------------------------------- batches


@pytest.mark.model
def test_an_embedder_gives_the_same_in_a_gpus_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers import SentenceTransformer

    pooled, on_gpu = packaged(monkeypatch, Device("cpu")), packaged(monkeypatch, Device("cpu", is_gpu=True))
    monkeypatch.setattr(device, "GPU_BATCH_TOKENS", 4096)
    reference = SentenceTransformer(str(on_gpu.directory()), device="cpu")
    vectors = on_gpu.encode(TEXTS)
    assert on_gpu._device.is_gpu
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, reference.encode(TEXTS, normalize_embeddings=True), atol=1e-5)
    monkeypatch.setattr(device, "resolve", lambda: Device("cpu"))
    np.testing.assert_allclose(vectors, pooled.encode(TEXTS), atol=1e-5)
    for ours, theirs in zip(on_gpu.tokens(TEXTS), pooled.tokens(TEXTS), strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    counts = [len(list(model._batches(TEXTS * 4, "sentence_embedding"))) for model in (on_gpu, pooled)]
    assert counts[0] < counts[1]


def test_an_nli_model_gives_the_same_in_a_gpus_batches(monkeypatch: pytest.MonkeyPatch, nli_folder: Path) -> None:
    expected = Nli(str(nli_folder)).probabilities(PAIRS)
    monkeypatch.setattr(device, "resolve", lambda: Device("cpu", is_gpu=True))
    monkeypatch.setattr(device, "GPU_BATCH_TOKENS", 2048)
    rows = Nli(str(nli_folder)).probabilities(PAIRS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected, atol=1e-5)


@pytest.mark.model
def test_cosines_in_half_precision_are_within_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    full = packaged(monkeypatch, Device("cpu")).encode(TEXTS)
    half = packaged(monkeypatch, Device("cpu", is_gpu=True, is_half=True)).encode(TEXTS)
    off = np.abs(half @ half.T - full @ full.T).max()
    assert 1e-6 < off < OFF_BY_HALF, "nothing was rounded" if off <= 1e-6 else ""


def test_verdicts_in_half_precision_are_within_the_tolerance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = known_model(tmp_path)
    words = [("proof of it", "the"), ("a lie", "the"), ("filler", "a"), ("filler " * 40, "proof")]
    full = Nli(str(folder)).probabilities(words)
    monkeypatch.setattr(device, "resolve", lambda: Device("cpu", is_gpu=True, is_half=True))
    np.testing.assert_allclose(Nli(str(folder)).probabilities(words), full, atol=OFF_BY_HALF)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried"), RuntimeError("MPS backend out of memory")]
)
def test_a_batch_too_large_for_the_gpu_is_divided(error: Exception) -> None:
    def forward(batch: list[int]) -> list[int]:
        if len(batch) > 3:
            raise error
        return [-place for place in batch]

    given = [list(range(10)), [10], list(range(11, 20))]
    results = list(device.run_batches(forward, given, on_gpu=True))
    assert [place for batch, _ in results for place in batch] == list(range(20))
    assert all(result == [-place for place in batch] for batch, result in results)


def test_an_input_too_large_for_the_gpu_and_other_errors_are_raised() -> None:
    calls: list[int] = []

    def fail_with(message: str) -> None:
        def forward(batch: list[int]) -> None:
            calls.append(len(batch))
            raise RuntimeError(message)

        with pytest.raises(RuntimeError, match=message):
            list(device.run_batches(forward, [[0, 1, 2, 3]], on_gpu=True))

    fail_with("out of memory")
    assert calls == [4, 2, 1]
    calls.clear()
    fail_with("device-side assert")
    assert calls == [4]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_output_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(TouchstoneError, match="TOUCHSTONE_PRECISION"):
        device.require_finite(np.array([[0.5, value]], dtype=np.float32))


# ----------------------------------------------------------------------------------------------------- a real GPU


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")
@pytest.mark.parametrize(("precision", "tolerance"), [("full", 1e-4), ("half", OFF_BY_HALF)])
def test_cuda_gives_the_scores_of_the_processor(
    precision: str, tolerance: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = str(known_model(tmp_path))
    models = {}
    for asked, width in (("cpu", "full"), ("cuda", precision)):
        monkeypatch.setenv("TOUCHSTONE_DEVICE", asked)
        monkeypatch.setenv("TOUCHSTONE_PRECISION", width)
        model = Embedder(PACKAGED)
        models[asked] = model.encode(TEXTS), model.tokens(TEXTS[:3]), Nli(folder).probabilities(PAIRS)
        assert model._device.name == asked
    (vectors, tokens, rows), (expected, expected_tokens, expected_rows) = models["cuda"], models["cpu"]
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=tolerance)
    for ours, theirs in zip(tokens, expected_tokens, strict=True):
        np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=tolerance)
    np.testing.assert_allclose(rows, expected_rows, atol=tolerance)
