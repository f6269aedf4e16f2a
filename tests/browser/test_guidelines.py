"""Guidelines: calibrators change them, labellers read them, every change is a version with a history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from db import open_store
from tests.browser.conftest import LONG, App, serve

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)> **bold** [link](http://example.org)"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[App, Path]]:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    team = tmp_path / "team.toml"
    team.write_text('[calibrator]\nusers = ["tester"]\n')
    server, address = serve(store.url, tmp_path / "server.log", TOUCHSTONE_ROLES=str(team))
    yield App(address, store), team
    server.terminate()
    server.wait(timeout=20)
    store.close()


def test_a_version_is_saved_shown_with_its_changes_and_read_by_labellers(own: tuple[App, Path], browser: Any) -> None:
    app, team = own
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(LONG)
    outside: list[str] = []
    context.on("request", lambda request: outside.extend([request.url] * ("example.org" in request.url)))
    page = context.new_page()
    page.goto(f"{app.url}/guidelines")
    page.get_by_text("Version 0, came with Touchstone.").wait_for()
    text = page.get_by_role("textbox", name="Guidelines")
    text.fill(f"Judge by the sources.\n{HOSTILE}")
    text.press("Tab")
    why = page.get_by_label("Why (optional)")
    why.fill("shorter")
    why.press("Tab")
    page.get_by_role("button", name="Save as a new version").click()
    page.get_by_text("Version 1 is saved.").wait_for()
    (saved,) = app.store.guides.history()
    assert (saved.text, saved.saved_by, saved.why) == (f"Judge by the sources.\n{HOSTILE}", "tester", "shorter")
    assert [kind.key for kind in saved.kinds][:2] == ["fabrication", "contradiction"]
    assert app.store.audit.entries()[0].verb == "guide changed"
    page.locator("summary", has_text="History").click()
    page.get_by_text("+Judge by the sources.").first.wait_for()

    team.write_text('[labeller]\nusers = ["tester"]\n')
    page.reload()
    page.get_by_text(HOSTILE).first.wait_for()
    assert page.get_by_role("button", name="Save as a new version").count() == 0
    assert page.get_by_role("textbox", name="Guidelines").count() == 0
    context.close()
    assert outside == []
