"""The Detect page takes a file of scores, and asks which side is suspicious before it lists their detector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calibrate.types import Trace
from db import open_store
from tests.browser.conftest import App, serve, settled, until

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)> :red[w]"


def test_scores_are_imported_and_their_direction_is_told(browser: Any, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    server, address = serve(store.url, tmp_path / "server.log")
    App(address, store).fill([Trace(f"t{n}", f"Parcel {n} is late.") for n in range(20)], sample="w48")
    file = tmp_path / "scores.csv"
    rows = [f't{n},{n / 20},"{HOSTILE}"\n' for n in range(20)]
    file.write_text("".join(["trace_id,faithfulness,reason\n", *rows, "nobody,0.1,\n", "t1,high,\n"]))
    try:
        page = browser.new_page(viewport={"width": 390, "height": 900})
        page.goto(f"{address}/detect")
        page.get_by_text("Import scores").first.click()
        page.locator("input[type=file]").set_input_files(str(file))
        page.get_by_role("button", name="Import scores", exact=True).wait_for()
        settled(page)
        assert page.get_by_label("Name of the detector").input_value() == "faithfulness"
        page.get_by_role("button", name="Import scores", exact=True).click()
        page.get_by_text("faithfulness: 20 new").wait_for()
        assert page.get_by_text("no trace 'nobody' in the store").count() == 1
        assert page.get_by_text("expected a finite number, not high").count() == 1
        assert page.locator("img[src=x]").count() == 0
        page.get_by_text("20 traces have a score, from 0 to 0.95, half of them up to 0.45").wait_for()
        page.get_by_role("button", name="Low scores", exact=True).last.click()
        until(page, lambda: store.external.all()[0].flag_when == "below")
        page.get_by_text("20 of 20 scored, revision 1 · low scores are suspicious").wait_for()
        # The trace shows the reason that came along, as text.
        page.goto(f"{address}/traces?trace=t3")
        page.get_by_text(HOSTILE).first.wait_for()
        assert page.locator("img[src=x]").count() == 0
        page.close()
    finally:
        server.terminate()
        server.wait(timeout=20)
        store.close()
