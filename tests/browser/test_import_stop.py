"""A long import: its progress is in sight, Stop keeps what is in, a new tab finds it, and it can go on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibrate.types import TraceFilter
from db import open_store
from tests.browser.conftest import LONG, serve, settled

pytestmark = pytest.mark.browser
MANY = 60_000


def test_a_stopped_import_goes_on_from_where_it_was(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    lines = (json.dumps({"trace_id": f"t{n}", "answer": f"Answer {n}.", "sources": {"1": "s"}}) for n in range(MANY))
    file.write_text("\n".join(lines))
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    server, address = serve(store.url, tmp_path / "server.log")
    try:
        page = browser.new_page()
        page.set_default_timeout(LONG)
        page.goto(f"{address}/import")
        page.locator("input[type=file]").wait_for(state="attached")
        settled(page)
        page.locator("input[type=file]").set_input_files(str(file))
        page.get_by_role("button", name="Import", exact=True).click()
        line = re.compile(r"[\d,]+ of about [\d,]+ traces · [\d,]+/s · about \d+ (s|min) left")
        page.get_by_text(line).wait_for()
        page.close()  # its work goes on

        page = browser.new_page()
        page.set_default_timeout(LONG)
        page.goto(f"{address}/import")
        page.get_by_text(line).wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped.").wait_for()
        kept = store.traces.count(TraceFilter())
        assert 0 < kept < MANY
        page.get_by_text(f"{kept:,} traces imported before that").wait_for()
        page.get_by_role("button", name="Go on").click()
        page.get_by_text(f"{MANY - kept:,} traces imported").wait_for()
        assert store.traces.count(TraceFilter()) == MANY
        page.close()
    finally:
        server.terminate()
        server.wait(timeout=20)
        store.close()
