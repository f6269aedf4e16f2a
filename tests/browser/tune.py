"""What tests do on the Tune page: read the threshold, type it, press its keys."""

from __future__ import annotations

from typing import Any


def threshold(page: Any) -> float:
    """Where the handle stands, in all its digits."""
    return float(page.get_by_role("slider", name="Threshold").get_attribute("aria-valuenow"))


def type_threshold(page: Any, value: float) -> None:
    field = page.get_by_role("textbox", name="Threshold")
    field.fill(repr(value))
    page.keyboard.press("Enter")


def choose_other_policy(page: Any, name: str) -> None:
    """A policy that is not in sight: it is under More."""
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name=name, exact=True).click()


def open_details(page: Any, tab: str) -> None:
    """Opens Details at one of its tabs."""
    name = page.get_by_role("tab", name=tab, exact=True)
    if not name.is_visible():
        page.locator(".st-key-tune-details summary").first.click()
    name.click()


def counts(page: Any) -> tuple[int, ...]:
    """The four counts of labels that the page says in words; they are there while folded, too."""
    return tuple(int(cell.replace(",", "")) for cell in page.locator(".ts-matrix td").all_text_contents())
