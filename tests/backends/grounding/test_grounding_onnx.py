"""Groundedness models with a layout or a head of their own give on ONNX Runtime what torch gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calibrate.backends.grounding import Wanted, choice, grounder, span_finder
from tests.tiny_grounding import hhem, minicheck_t5, modernbert

PAIRS = [("the warranty lasts 24 months.", "the moon is made of cheese."), ("a", "proof of the ocean")]
KINDS: dict[str, Callable[[Path], object]] = {
    "minicheck-t5": minicheck_t5,
    "hhem": hhem,
    "spans": lambda folder: modernbert(folder, task="token", seed=3),
}


def judge(folder: Path, kind: str) -> tuple[list[float], str]:
    """Probabilities by a model that is loaded anew, and its revision."""
    choice._grounders.cache_clear()
    choice._finders.cache_clear()
    if kind == "spans":
        finder = span_finder(Wanted(str(folder)), "en")
        return [token.probability for tokens in finder.probabilities(PAIRS) for token in tokens], finder.revision()
    model = grounder(Wanted(str(folder)))
    return model.probabilities(PAIRS)[:, 0].tolist(), model.revision()


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_gives_what_torch_gives(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(tmp_path / "cache"))
    KINDS[kind](tmp_path / "model")
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "torch")
    by_torch, revision = judge(tmp_path / "model", kind)
    monkeypatch.setenv("TOUCHSTONE_INFERENCE", "onnx")
    by_onnx, other_revision = judge(tmp_path / "model", kind)
    np.testing.assert_allclose(by_onnx, by_torch, atol=1e-4)
    assert list((tmp_path / "cache").rglob("model.onnx"))
    assert revision != other_revision
