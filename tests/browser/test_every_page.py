"""What holds of every page: axe-core finds nothing, nothing scrolls sideways, a finger hits what it aims at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from db import open_store
from pages.shell import navigation
from tests.browser.conftest import LONG, ROOT, App, serve, settled

pytestmark = pytest.mark.browser

PAGES = [key for tabs in navigation.SECTIONS.values() for key in tabs]
WIDTHS = (390, 768, 1024, 1440, 1920)
SIDEWAYS = """() => {
  const main = document.querySelector('.stMain')
  return Math.max(document.documentElement.scrollWidth, main.scrollWidth) - window.innerWidth
}"""
# Scrollbars beside each other: the window's own and that of the page, which fills it; or the page's and those of the
# labelling surface, which fills the page.
DOUBLE = """() => {
  const main = document.querySelector('.stMain')
  const fills = main.querySelector('.touchstone-surface.whole') && main.scrollHeight > main.clientHeight + 1
  return document.documentElement.scrollHeight > window.innerHeight || Boolean(fills)
}"""
AIMS = ".stMain :is(button, [role=tab], [role=radio], input), .ts-bar :is(a, button)"
# What a finger aims at, and does not hit: (what it says, its width, its height). Links within a sentence are text.
SMALL = """(AIMS) => [...document.querySelectorAll(AIMS)]
  .filter((node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && node.offsetParent)
  .map((node) => [node.closest('label, [data-baseweb], [data-testid=stNumberInputContainer]') || node, node])
  .map(([target, node]) => [node.getAttribute('aria-label') || node.textContent || node.type, target])
  .map(([name, target]) => [name.trim().slice(0, 40), target.getBoundingClientRect()])
  .filter(([, box]) => box.width && box.height && (box.width < 24 || box.height < 43.5))
  .map(([name, box]) => `${name} ${Math.round(box.width)}x${Math.round(box.height)}`)"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server on the sample store, in which every page has something to show."""
    folder = tmp_path_factory.mktemp("demo")
    url = f"sqlite:///{folder / 'store.db'}"
    subprocess.run([sys.executable, "-m", "calibrate", "demo", "--store", url], cwd=ROOT, check=True)
    store = open_store(url)
    server, address = serve(url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


def test_in_the_light_axe_finds_nothing_and_no_page_scrolls_sideways_or_twice(demo: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    context.set_default_timeout(LONG)
    page = context.new_page()
    problems, wide = [], []
    for key in PAGES:
        open_page(page, f"{demo.url}/{key}")
        problems += violations(page, key)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844 if width < 500 else 900})
            settled(page)
            over, twice = page.evaluate(SIDEWAYS), page.evaluate(DOUBLE)
            wide += [f"{key} at {width} px: {over} px too wide, double scrollbar: {twice}"] * (over > 0 or twice)
        page.set_viewport_size({"width": 1440, "height": 900})
    context.close()
    assert (problems, wide) == ([], [])


def test_in_the_dark_axe_finds_nothing(demo: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    context.set_default_timeout(LONG)
    page = context.new_page()
    problems = []
    for key in PAGES:
        open_page(page, f"{demo.url}/{key}")
        problems += violations(page, key)
    context.close()
    assert problems == []


def test_a_finger_hits_what_it_aims_at(demo: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    context.set_default_timeout(LONG)
    page = context.new_page()
    small = {}
    for key in PAGES:
        open_page(page, f"{demo.url}/{key}")
        if targets := page.evaluate(SMALL, AIMS):
            small[key] = targets
    context.close()
    assert small == {}


def violations(page: Any, key: str) -> list[str]:
    """What axe-core finds on the page that is open, and is more than minor."""
    return [
        f"{key}: {rule['id']} ({rule['impact']}): {node['target']} {node['html'][:100]}"
        for rule in Axe().run(page).response["violations"]
        if rule["impact"] != "minor"
        for node in rule["nodes"]
    ]


def open_page(page: Any, address: str) -> None:
    page.goto(address)
    page.locator("header.ts-bar").wait_for()
    settled(page)
    page.wait_for_function("!document.querySelector('[data-testid=stSpinner]')")
    page.wait_for_timeout(500)  # what a component draws of itself
