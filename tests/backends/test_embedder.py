"""The embedder against sentence-transformers itself, and what it promises: offline, pinned, nothing truncated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calibrate.backends.embedding import model as module
from calibrate.backends.embedding.model import PACKAGED, PACKAGED_SHA256, Embedder, embedder
from calibrate.backends.text.segments import Part
from calibrate.errors import Unavailable

TEXTS = ["A short one.", "The Pacific is the largest ocean. " * 12, "中文", "", "😀", "A short one.", "x" * 400]


@pytest.fixture
def packaged() -> Embedder:
    if why := embedder().unavailable():
        pytest.skip(why)
    return embedder()


@pytest.mark.model
def test_equals_sentence_transformers(packaged: Embedder) -> None:
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(packaged.directory()), device="cpu")
    ours = packaged.encode(TEXTS)
    assert ours.dtype == np.float32
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(ours[row], reference.encode(text, normalize_embeddings=True), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)


@pytest.mark.model
def test_distinct_texts_are_encoded_once(packaged: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    forward = packaged._forward
    monkeypatch.setattr(packaged, "_forward", lambda texts: given.append(texts) or forward(texts))
    packaged.forget()
    packaged.encode(["one", "two", "one"])
    packaged.encode(["two", "three"])
    assert given == [["one", "two"], ["three"]]


@pytest.mark.model
def test_the_memory_is_bounded(packaged: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_ENTRIES", 3)
    packaged.forget()
    first = packaged.encode([f"text {i}" for i in range(6)])
    assert len(packaged._cache) == 3
    np.testing.assert_allclose(packaged.encode(["text 0"])[0], first[0], atol=1e-5)


@pytest.mark.model
@pytest.mark.parametrize("text", ["word " * 900, "한국어 문장 " * 400, "x" * 3000, "\ud800字" * 900, "short"])
def test_long_parts_are_cut_to_fit_and_nothing_is_lost(packaged: Embedder, text: str) -> None:
    parts = packaged.fit(text, [Part(0, len(text))])
    assert "".join(text[part.start : part.end] for part in parts) == text
    tokenizer = packaged._tokenizer()
    for part in parts:
        piece = text[part.start : part.end].replace("\ud800", "\ufffd")
        assert len(tokenizer.encode(piece, add_special_tokens=False).ids) <= packaged.limit + 1


def test_revision_needs_no_model(packaged: Embedder) -> None:
    code = (
        "import sys; from calibrate.backends.embedding.model import embedder; print(embedder().revision());"
        "assert not {'torch', 'sentence_transformers', 'tokenizers', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == f"{PACKAGED}@{PACKAGED_SHA256[:12]}", done.stderr


@pytest.mark.model
def test_nothing_reaches_the_network(packaged: Embedder) -> None:
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "from calibrate.backends.embedding.model import embedder\n"
        "print(embedder().encode(['a']).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "(1, 384)", done.stderr


def test_there_is_one_of_each_in_a_process() -> None:
    assert embedder() is embedder(PACKAGED) is embedder(model=PACKAGED)


def test_a_missing_model_says_how_to_get_it() -> None:
    missing = Embedder("some-org/no-such-model")
    assert "hf download some-org/no-such-model" in (missing.unavailable() or "")
    assert missing.revision() == "some-org/no-such-model@missing"
    with pytest.raises(Unavailable, match="no embedding model"):
        missing.encode(["a"])


def test_other_weights_under_the_packaged_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    model = Embedder(PACKAGED)
    monkeypatch.setattr(model, "directory", lambda: tmp_path)
    with pytest.raises(Unavailable, match="not the published"):
        model.encode(["a"])


def test_a_directory_is_known_by_its_weights(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"one")
    before = Embedder(str(tmp_path)).revision()
    weights.write_bytes(b"other")
    assert Embedder(str(tmp_path)).revision() != before
