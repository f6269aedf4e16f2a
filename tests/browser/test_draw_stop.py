"""A draw by scores that takes a while: the page shows how far it is, and Stop leaves nothing half-drawn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from db import open_store
from tests.browser.conftest import LONG, ROOT, serve, settled
from tests.workflow.making import draw, fill

pytestmark = pytest.mark.browser
MANY = 400
# The workbench's process begins with this: its scores come in slowly.
SLOW = """
import time
import db.tables.numbers
db.tables.numbers.CHUNK = 10
quick = db.tables.numbers._streamed
def slow(*args):
    for part in quick(*args):
        time.sleep(0.25)
        yield part
db.tables.numbers._streamed = slow
"""


def test_a_stopped_draw_draws_nothing(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    fill(store, *draw(MANY))
    server, address = serve(store.url, tmp_path / "server.log", PYTHONPATH=f"{tmp_path}:{ROOT}")
    try:
        page = browser.new_page()
        page.set_default_timeout(LONG)
        page.goto(f"{address}/sample")
        button = page.get_by_role("button", name=re.compile(r"^Draw (all )?\d+"))
        button.wait_for()
        settled(page)
        button.click()
        page.get_by_text(re.compile(r"Ranking \d+ of \d+ traces · \d+/s · about \d+ s left")).wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped. Nothing was drawn.").wait_for()
        settled(page)
        assert store.samples.list() == []
        button.click()
        page.get_by_text("is drawn").wait_for()
        assert len(store.samples.list()) == 1
        page.close()
    finally:
        server.terminate()
        server.wait(timeout=20)
        store.close()
