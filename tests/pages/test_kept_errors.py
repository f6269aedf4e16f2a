"""An error that a button's callback keeps is shown by a page: one that nobody shows is lost."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "pages"


def keys(function: str) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in PAGES.rglob("*.py"))
    return {key for text in texts for key in re.findall(rf'\b{function}\("(\w+)"', text)}


def test_every_error_that_is_kept_is_shown() -> None:
    kept = keys("errors_kept")
    assert len(kept) > 5
    assert kept == keys("show_kept_error")
