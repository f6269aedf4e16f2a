"""A chat endpoint, an NLI model and baselines for the detectors that need them, so that the contract holds for them
too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.types import Baseline
from calibrate.workspace import Workspace, using
from tests.detectors import scripted
from tests.detectors.test_http_scorer import Server
from tests.detectors.test_learned import HEAD
from tests.tiny_grounding import modernbert
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
        monkeypatch.setenv("TOUCHSTONE_HTTP_URL", request.getfixturevalue("sensible_scorer").url)


@pytest.fixture(scope="module")
def sensible_scorer() -> Iterator[Server]:
    """A scorer over HTTP: the share of the answer's characters that are capitals, with the first one as its span."""

    def reply(_: int, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        answer = body["answer"]
        score = sum(character.isupper() for character in answer) / len(answer)
        return 200, {"score": score, "reason": "capitals", "spans": [{"start": 0, "end": 1, "probability": score}]}, {}

    server = Server(reply)
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture(scope="session")
def nli_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small NLI model with random weights; no test may depend on what it says."""
    return random_model(tmp_path_factory.mktemp("nli"), limit=256)


@pytest.fixture(scope="session")
def grounding_directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small groundedness models with random weights; no test may depend on what they say."""
    make = tmp_path_factory.mktemp
    return {
        "TOUCHSTONE_GROUNDED_MODEL": modernbert(make("grounded"), labels=("grounded", "hallucinated"), limit=512),
        "TOUCHSTONE_SPANS_MODEL": modernbert(make("spans"), task="token", limit=512),
    }


@pytest.fixture(autouse=True)
def contract_nli(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract tests run on that model, whatever the machine has set; other tests choose their own."""
    if request.module.__name__ == CONTRACT and {"name", "detector"} & set(request.fixturenames):
        monkeypatch.setenv("TOUCHSTONE_NLI_MODEL", str(request.getfixturevalue("nli_directory")))
        for variable, folder in request.getfixturevalue("grounding_directories").items():
            monkeypatch.setenv(variable, str(folder))


@pytest.fixture(autouse=True)
def contract_baselines(request: pytest.FixtureRequest) -> Iterator[None]:
    """The contract tests find a baseline of the examples' model and a learned head; other tests put in their own."""
    if request.module.__name__ != CONTRACT:
        yield
        return
    at = datetime(2026, 11, 21, tzinfo=UTC)
    made = [Baseline(f"entropy/{how}/top2", "m", 0.5, 0.2, 40, at) for how in ("mean", "max", "top_decile")]
    with using(Workspace(baselines={(one.statistic, one.model): one for one in made}, head=HEAD)):
        yield
