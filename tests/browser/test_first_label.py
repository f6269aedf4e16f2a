"""From a fresh store to the first label: three clicks and a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from db import open_store
from tests.browser.conftest import LONG, App, serve, until

pytestmark = pytest.mark.browser


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[App]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    store = open_store(url)
    server, address = serve(url, tmp_path / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


def test_three_clicks(fresh: App, browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "logged.jsonl"
    traces = [{"question": f"Q{n}?", "answer": f"Answer {n} [1].", "sources": {"1": f"Fact {n}."}} for n in range(12)]
    file.write_text("\n".join(json.dumps(trace | {"trace_id": f"t{n}"}) for n, trace in enumerate(traces)))
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(LONG)
    page = context.new_page()
    page.goto(fresh.url)
    page.get_by_role("button", name="Import traces").click()
    page.locator("input[type=file]").set_input_files(str(file))
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("12 traces imported").wait_for()
    page.get_by_text("can run now").wait_for()
    page.get_by_text("Your traces lack").first.wait_for()
    page.get_by_role("button", name="Label the first ones").click()
    page.get_by_text("Trace 1 of 12").first.wait_for()
    page.keyboard.press("a")
    until(page, lambda: sum(fresh.store.labels.gold_counts().values()) == 1)
    context.close()
