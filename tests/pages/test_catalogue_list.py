"""The list of groundedness models on Detect: what is not here has no button, and what cannot be loaded says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibrate.backends.catalogue import entries, entry


def script(url: str) -> None:
    from db import open_store
    from pages.detect import catalogue

    catalogue.show(open_store(url), {})


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return AppTest.from_function(script, kwargs={"url": f"sqlite:///{tmp_path / 'store.db'}"}, default_timeout=30)


def test_every_model_is_listed_with_licence_figure_and_way(listed: AppTest) -> None:
    listed.run()
    assert not listed.exception
    assert listed.expander[0].label == f"{len(entries())} groundedness models that you could add"
    assert not listed.button
    text = " ".join(part.value for part in [*listed.markdown, *listed.caption]).replace("\\", "")  # escapes
    assert all(model.licence in text for model in entries())
    assert "HaluBench, accuracy" in text
    assert all(model.hub in text for model in entries())
    assert "reads 4,096 tokens · flags ≥ 0.5 · MIT" in text
    assert text.count("models pull NAME") == 1
    helps = " ".join(part.help for part in listed.caption if part.help).replace("\\", "")
    assert "labels: 0=unsupported, 1=supported" in helps
    assert "revision: main, not pinned" in helps
    assert text.count("NC: no commercial use") == 2


def test_a_model_that_is_here_and_cannot_be_loaded_says_why(listed: AppTest, tmp_path: Path) -> None:
    model = entry("tinylettuce-17m")
    assert model is not None
    folder = tmp_path / "hub" / f"models--{model.hub.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("c" * 40)
    (folder / "snapshots" / ("c" * 40)).mkdir(parents=True)
    listed.run()
    assert not listed.exception
    assert listed.expander[0].label.endswith("1 of them here")
    assert not listed.button
    assert any("not usable" in part.value for part in listed.markdown)
