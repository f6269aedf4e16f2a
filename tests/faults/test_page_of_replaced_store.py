"""A page says that its store was replaced, and opens the one that is there now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from db import open_store
from tests.workflow.making import draw, fill

APP = Path(__file__).parents[2] / "pages/shell/workbench.py"


def texts(page: AppTest) -> str:
    return "\n".join(str(element.value) for element in [*page.text, *page.markdown, *page.caption, *page.error])


def test_a_page_of_a_replaced_store_says_so_once_and_reopens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "live.db"
    for name, size in (("live.db", 20), ("other.db", 7)):
        store = open_store(f"sqlite:///{tmp_path}/{name}")
        fill(store, *draw(size))
        store.close()
    monkeypatch.setenv("TOUCHSTONE_STORE", f"sqlite:///{path}")
    page = AppTest.from_file(str(APP), default_timeout=120).run()
    assert "20 traces" in texts(page)
    assert not page.exception
    shutil.copy(tmp_path / "other.db", tmp_path / "new.db")
    (tmp_path / "new.db").replace(path)
    page.run()
    assert texts(page).count("was replaced") == 1
    page.button(key="reopen_store").click().run()
    assert "was replaced" not in texts(page)
    assert "7 traces" in texts(page)
    assert not page.exception
    path.unlink()
    page.run()
    assert texts(page).count("is gone") == 1
    assert not [button for button in page.button if button.key == "reopen_store"]
