"""An upload that was taken over is not kept in the server's memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from db import open_store
from tests.browser.conftest import serve, settled

pytestmark = pytest.mark.browser
MB = 1 << 20


def resident(pid: int) -> int:
    """Megabytes of memory in use."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_an_upload_leaves_memory_once_it_is_on_disk(browser: Any, tmp_path: Path) -> None:
    file, answer = tmp_path / "large.jsonl", "word " * 20_000
    with file.open("w") as out:
        for number in range(800):
            out.write(json.dumps({"trace_id": f"t{number}", "answer": answer, "sources": {"1": "s"}}) + "\n")
    size = file.stat().st_size // MB
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    server, address = serve(store.url, tmp_path / "server.log")
    try:
        page = browser.new_page()
        page.goto(address)
        page.get_by_role("link", name="This week").wait_for()
        page.goto(f"{address}/import")
        page.locator("input[type=file]").wait_for(state="attached")
        settled(page)
        before = resident(server.pid)
        page.locator("input[type=file]").set_input_files(str(file))
        page.get_by_role("button", name="Import", exact=True).wait_for()
        settled(page)
        assert resident(server.pid) - before < size / 2
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_text("800 traces imported").wait_for()
        page.close()
    finally:
        server.terminate()
        server.wait(timeout=20)
        store.close()
