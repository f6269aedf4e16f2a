"""What must not matter to any of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from calibrate import registry
from calibrate.backends.embedding.model import embedder
from calibrate.backends.nli.model import nli
from tests.detectors.examples import trace
from tests.detectors.nli.asking import asked


@pytest.mark.parametrize("name", ["nli", "selfcheck_nli", "semantic_entropy"])
def test_awkward_alternatives_and_sources_never_raise(name: str, known: str) -> None:
    nasty = [
        "",
        " ",
        "😀🎉",
        "\x00\x00",
        "a \ud800 b",
        "。。。",
        "[SEP][CLS]",
        "9" * 5000,
        "[" * 2000,
        "\u202eproof\u202c",
    ]
    traces = [
        replace(trace(one, other, id=f"{i}-{j}"), alternatives=(one, other, "x"))
        for i, one in enumerate(nasty)
        for j, other in enumerate(nasty)
    ]
    for variant in ("default", "plain"):
        scores = list(registry.make(name, {"model": known, "variant": variant}).score(traces))
        assert [one.trace_id for one in scores] == [one.id for one in traces]
        assert not [one.reason for one in scores if one.status == "failed"]
        assert all(one.value is None or math.isfinite(one.value) for one in scores)


def test_a_text_without_end_fails_alone(known: str) -> None:
    """Two alternatives of 100,000 characters would take a million pairs; the other traces of the batch are scored."""
    endless = "filler of the ocean. " * 5_000
    traces = [asked("x", "proof", "proof a"), asked("x", endless, endless + "a"), asked("x", "a", "b")]
    first, second, third = registry.make("semantic_entropy", {"model": known}).score(traces)
    assert (first.value, third.value) == (0, pytest.approx(math.log(2)))
    assert second.status == "failed"
    assert "shorten the texts" in (second.reason or "")


@pytest.mark.parametrize("name", ["nli", "selfcheck_nli", "semantic_entropy"])
def test_without_a_model_it_fails_saying_how_to_get_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    detector = registry.make(name, {"model": "no-such/model"})
    assert "models pull" in (detector.unavailable() or "")
    (found,) = detector.score([replace(trace("The answer.", "A source."), alternatives=("a", "b"))])
    assert (found.status, found.value) == ("failed", None)
    assert "models pull" in (found.reason or "")


def test_the_revision_names_both_models(known: str) -> None:
    both = registry.make("nli", {"model": known}).revision()
    assert both == f"{nli(known).revision()}+{embedder().revision()}"
    assert registry.make("nli", {"model": known, "windows": "all"}).revision() == nli(known).revision()
