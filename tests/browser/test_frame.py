"""The bar above every page: where it leads, what it marks, its palette, and addresses that no page has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from calibrate.types import Trace
from tests.browser.conftest import LONG, App, settled, take_sample, turn_to

pytestmark = pytest.mark.browser

FIXED = "[...document.querySelectorAll('.ts-bar [aria-current=page]')].map((link) => link.textContent)"
WIDE = "Math.max(document.documentElement.scrollWidth, document.querySelector('.stMain').scrollWidth) - innerWidth"


def test_the_bar_leads_through_the_pages_within_one_session(app: App, visit: Callable[..., Any]) -> None:
    from playwright.sync_api import expect

    app.fill([Trace(f"frame-{n}", "an answer") for n in range(3)], sample="framed")
    page = visit("/week")
    page.get_by_role("heading", name=re.compile("^Week")).wait_for()
    settled(page)
    assert (page.title(), page.evaluate(FIXED)) == ("This week · Touchstone", ["This week"])
    assert page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts() == [
        "This week", "Traces", "Label", "Detect", "Thresholds", "Release", "Watch",
    ]  # fmt: skip
    page.evaluate("window.same = 'page'")
    turn_to(page, "Release", "Who did what")
    page.get_by_role("heading", name="Who did what").wait_for()
    expect(page).to_have_title("Who did what · Release · Touchstone")
    assert page.evaluate(FIXED) == ["Release", "Who did what"]
    # By the keyboard alone: a trace by its id, and the focus back where it was.
    settled(page)
    page.get_by_role("button", name="Keys and words").focus()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to a page").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "?"
    page.keyboard.press("Control+k")
    page.keyboard.type("frame-1")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="frame-1").wait_for()
    assert "trace=frame-1" in page.url
    assert page.evaluate("window.same") == "page", "the page was loaded anew"
    # The labels that the page chooses are those that the bar tells of.
    page.goto(f"{app.url}/label?sample=framed")
    expect(page.locator(".ts-sample")).to_have_text("framed")


def test_the_palette_leads_to_a_page_by_the_keyboard_alone(app: App, visit: Callable[..., Any]) -> None:
    from playwright.sync_api import expect

    page = visit("/detect")
    page.get_by_role("heading", name="Detect", exact=True).wait_for()
    settled(page)
    began = page.get_by_role("button", name="Keys and words")
    began.focus()
    # Escape leaves everything as it was, whatever was typed, and gives the focus back.
    palette, field = page.get_by_role("dialog", name="Go to"), page.get_by_role("combobox", name="Go to a page")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("no such thing")
    expect(palette.get_by_role("option")).to_have_text(["Open the trace no such thingtrace"])
    address = page.url
    page.keyboard.press("Escape")
    expect(palette).to_have_count(0)
    expect(began).to_be_focused()
    assert page.url == address
    # Typing narrows; the arrows mark one after another, and round the ends; Enter takes what is marked.
    page.keyboard.press("Control+k")
    expect(field).to_have_value("")
    page.keyboard.type("Re")
    options = palette.get_by_role("option")
    names = options.locator("span").all_inner_texts()
    assert {"Release: Release", "Watch: Recheck"} <= set(names)
    assert "Label: Guidelines" not in names
    marked = palette.get_by_role("option", selected=True)
    expect(marked.locator("span")).to_have_text(names[0])
    page.keyboard.press("ArrowUp")
    expect(marked.locator("span")).to_have_text(names[-1])
    for _ in range(1 + names.index("Watch: Recheck")):
        page.keyboard.press("ArrowDown")
    expect(marked.locator("span")).to_have_text("Watch: Recheck")
    assert field.get_attribute("aria-activedescendant") == marked.get_attribute("id")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Recheck", exact=True).wait_for()
    expect(palette).to_have_count(0)
    assert page.url.startswith(f"{app.url}/recheck")
    assert page.evaluate(FIXED) == ["Watch", "Recheck"]


def test_an_address_that_no_page_has_leads_home(app: App, visit: Callable[..., Any]) -> None:
    for address in ("/nonsense", "/reports/2026?x=1"):
        page = visit(address)
        page.get_by_role("heading", name="There is no such page").wait_for()
        assert page.get_by_text("Page not found").count() == 0
    page.get_by_role("link", name="Go to This week").click()
    page.get_by_role("heading", name=re.compile("^Week")).wait_for()
    page = visit("/thresholds?detector=rouge_l")
    page.get_by_role("heading", name="Tune").wait_for()
    assert page.url.startswith(f"{app.url}/tune")


def test_a_narrow_screen_scrolls_the_bar_and_not_the_page(app: App, visit: Callable[..., Any]) -> None:
    page = visit("/recheck", viewport={"width": 390, "height": 800})
    page.get_by_role("heading", name="Recheck").wait_for()
    settled(page)
    assert page.evaluate(WIDE) <= 0
    boxes = [page.locator(".ts-bar [aria-current=page]").nth(place).bounding_box() for place in (0, 1)]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)


def test_the_bar_alone_chooses_the_sample_and_the_name(app: App, visit: Callable[..., Any]) -> None:
    from playwright.sync_api import expect

    for name in ("first", "second"):
        app.fill([Trace(f"{name}-{n}", f"an answer of {name}") for n in range(2)], sample=name)
    page = visit("/label?sample=first")
    page.locator("article.card[data-trace^=first]:visible").wait_for()
    take_sample(page, "second")
    page.locator("article.card[data-trace^=second]:visible").wait_for()
    assert "sample=second" in page.url
    turn_to(page, "Detect")
    expect(page.locator(".ts-sample")).to_have_text("second")
    settled(page)
    page.get_by_role("button", name="Change your name").click()
    page.get_by_role("textbox", name="Your name").fill("  Robin  Day ")
    page.keyboard.press("Enter")
    expect(page.locator(".ts-who")).to_have_text("Robin Day (unverified)", timeout=LONG)
