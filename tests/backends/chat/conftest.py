"""Fixtures: what the tests of a failing chat endpoint share."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from calibrate.backends.chat import Chat, chat, flow
from tests.backends.chat.asking import KEY, Plan, Start
from tests.backends.chat_stub import Stub, stubbed


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, no_chat: None) -> Start:
    """Starts a stub and gives it with a Chat that asks it; waits between tries are short."""
    monkeypatch.setattr(flow, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(flow, "MAX_WAIT", 0.05)
    with ExitStack() as stack:

        def begin(plan: Plan, **variables: object) -> tuple[Stub, Chat]:
            stub = stack.enter_context(stubbed(plan))
            given = {"URL": stub.url, "MODEL": "stub", "KEY": KEY, **variables}
            for name, value in given.items():
                monkeypatch.setenv(f"TOUCHSTONE_CHAT_{name}", str(value))
            return stub, chat()

        yield begin  # type: ignore[misc]
