"""A chat endpoint, an NLI model and baselines for the detectors that need them, so that the contract holds for them
too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calibrate.types import Baseline
from calibrate.workspace import Workspace, using
from tests.detectors import scripted
from tests.tiny_nli import random_model

# What describes every detector; each with its own endpoint would be slower and prove nothing more.
CONTRACT = "tests.detectors.test_contract"


@pytest.fixture(scope="module")
def sensible_endpoint() -> Iterator[scripted.Endpoint]:
    with scripted.endpoint(scripted.sensible) as running:
        yield running


@pytest.fixture(autouse=True)
def contract_endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract tests run on a scripted endpoint, whatever the machine has set; other tests choose their own."""
    if request.module.__name__ == CONTRACT:
        monkeypatch.setenv("TOUCHSTONE_CHAT_URL", request.getfixturevalue("sensible_endpoint").url)
        monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", scripted.MODEL)


@pytest.fixture(scope="session")
def nli_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small NLI model with random weights; no test may depend on what it says."""
    return random_model(tmp_path_factory.mktemp("nli"), limit=256)


@pytest.fixture(autouse=True)
def contract_nli(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract tests run on that model, whatever the machine has set; other tests choose their own."""
    if request.module.__name__ == CONTRACT and {"name", "detector"} & set(request.fixturenames):
        monkeypatch.setenv("TOUCHSTONE_NLI_MODEL", str(request.getfixturevalue("nli_directory")))


@pytest.fixture(autouse=True)
def contract_baselines(request: pytest.FixtureRequest) -> Iterator[None]:
    """The contract tests find a baseline of the examples' model; other tests put their own in place."""
    if request.module.__name__ != CONTRACT:
        yield
        return
    at = datetime(2026, 11, 21, tzinfo=UTC)
    made = [Baseline(f"entropy/{how}/top2", "m", 0.5, 0.2, 40, at) for how in ("mean", "max", "top_decile")]
    with using(Workspace(baselines={(one.statistic, one.model): one for one in made})):
        yield
