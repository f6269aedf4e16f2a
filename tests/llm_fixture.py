"""Fixtures: a real language model behind a chat endpoint, started once for all tests that ask for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from calibrate import workspace
from tests.llm import Llm, serving, unavailable

LONGEST = 40  # tokens of an answer, at 50 ms each; as at any server with a limit, a longer one ends with "length"
VARIABLES = ("URL", "MODEL", "KEY", "CONCURRENCY", "TIMEOUT")


@pytest.fixture(scope="session")
def llm() -> Iterator[Llm]:
    """A local chat endpoint with a real model; skips, saying so, where the model is absent, but on CI fails."""
    if why := unavailable():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why)
    with serving(longest=LONGEST) as running:
        yield running


@pytest.fixture
def no_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """No chat endpoint in the environment, whatever the machine has set."""
    for name in (*(f"TOUCHSTONE_CHAT_{variable}" for variable in VARIABLES), "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def llm_chat(llm: Llm, no_chat: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Llm]:
    """The same with the environment set, so that `chat()` asks it, whatever replies an earlier test keeps."""
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", llm.url)
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", llm.model)
    with workspace.using(workspace.Workspace()):
        yield llm
