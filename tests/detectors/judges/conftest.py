"""Fixtures: judges at an endpoint that says what a test wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calibrate.workspace import Workspace, using
from tests.detectors import scripted
from tests.detectors.judges.judging import Start
from tests.detectors.scripted import Endpoint, Script


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts an endpoint with a script, or one that always replies the same, and points `chat()` at it."""
    running = []

    def begin(script: Script | str) -> Endpoint:
        always = (lambda body: script) if isinstance(script, str) else script
        running.append(scripted.endpoint(always))
        found = running[-1].__enter__()
        monkeypatch.setenv("TOUCHSTONE_CHAT_URL", found.url)
        monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", scripted.MODEL)
        monkeypatch.delenv("TOUCHSTONE_CHAT_CONCURRENCY", raising=False)
        return found

    with using(Workspace()):
        yield begin
    for one in running:
        one.__exit__(None, None, None)
