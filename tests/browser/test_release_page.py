"""The Release page as the lead meets it: a guard that asks why, a second person, one click back, all of history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from calibrate import settings
from calibrate.types import Label
from calibrate.workflow.releasing import approval, history
from calibrate.workflow.releasing import release as step
from calibrate.workflow.releasing.candidate import build_candidate
from db import open_store
from db.releases import ReleaseRequest
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.workflow.making import DETECTOR, NOW, draw, fill, save

pytestmark = pytest.mark.browser

LOGIN = settings.read({}).user  # whom the server takes anybody at this machine for


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server of its own, on which releases need a second person; v12 is live."""
    folder = tmp_path_factory.mktemp("release")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    labels, scores = draw(120)
    fill(store, labels, scores)
    save(store, "manual:0.55")
    for place in range(12):
        tier: Any = "page" if place % 2 else "signal"
        step.release(store, ReleaseRequest(tiers={DETECTOR: tier}, note=f"release {place + 1}", by="ann"), now=NOW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOUCHSTONE_APPROVAL", "1")
        server, address = serve(store.url, folder / "server.log", TOUCHSTONE_USER="")  # whoever is logged in
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture
def page(own: App, browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(LONG)
    opened = context.new_page()
    opened.goto(own.url)
    opened.get_by_role("link", name="This week").wait_for()
    opened.goto(f"{own.url}/release")
    opened.get_by_role("heading", name="Release", exact=True).wait_for()
    settled(opened)
    yield opened
    context.close()


def test_history_goes_back_to_the_first(own: App, page: Any) -> None:
    page.get_by_text("release 3", exact=True).wait_for()
    assert page.get_by_text("release 2", exact=True).count() == 0
    page.get_by_role("button", name="Show 2 older of 2").click()
    page.get_by_text("release 1", exact=True).wait_for()
    assert page.get_by_role("button", name=re.compile("older")).count() == 0
    # v10 decides as the live v12 does: there is nothing to go back to.
    assert page.get_by_role("button", name="Roll back to v10", exact=True).count() == 0


def test_one_click_rolls_back_once(own: App, page: Any) -> None:
    page.get_by_role("button", name="Roll back to v11", exact=True).dblclick()
    page.get_by_text("v13 is released").wait_for()
    page.get_by_text("v11's points are on offer again: the next release starts from them.").wait_for()
    settled(page)
    newest = own.store.releases.list(limit=1)[0]
    was = own.store.releases.get(11)
    assert was is not None
    assert own.store.releases.count() == 13
    assert history.content(history.read_release(newest)) == history.content(history.read_release(was))
    page.get_by_text("Nothing changes against v13:").wait_for()  # v12, live before, had another tier


def test_a_worse_point_needs_a_reason_and_a_second_person(own: App, page: Any) -> None:
    save(own.store, "manual:0.2")
    page.reload()
    page.get_by_text("Token overlap is worse than in v").wait_for()
    settled(page)
    (check,) = [row.check for row in _seen(own) if row.check]
    assert check.paired
    page.get_by_text(f"{check.paired.second.flagged} flagged, measured").wait_for()  # the n beside a precision
    button = page.get_by_role("button", name=re.compile(r"Propose v\d+ with 1 detector"))
    assert button.is_disabled()
    page.get_by_label("Reason").fill("Too many pages at night.")
    page.keyboard.press("Control+Enter")
    until(page, button.is_enabled)
    settled(page)
    before = own.store.releases.count()
    button.click()
    page.get_by_text("waits for a second person").wait_for()
    page.get_by_text("It is yours").wait_for()
    assert page.get_by_role("button", name=re.compile("Approve and release")).is_disabled()
    assert own.store.releases.count() == before
    (mine,) = approval.waiting(own.store)
    approval.decline(own.store, mine.id, by=LOGIN, now=NOW)
    approval.propose(
        own.store, ReleaseRequest(note="quiet nights", reason="Too many pages at night.", by="ann"), now=NOW
    )
    page.reload()
    page.get_by_text("by ann.").wait_for()
    settled(page)
    page.get_by_role("button", name=re.compile("Approve and release")).click()
    page.get_by_text(f"v{before + 1} is released").wait_for()
    file = history.live_release(own.store)
    assert file is not None
    assert (file.released_by, file.extra["x-approved-by"]) == ("ann", LOGIN)
    assert file.extra["x-reason"] == "Too many pages at night."


def test_the_checklist_says_what_is_open_and_where_it_is_mended(own: App, page: Any) -> None:
    """Two labellers disagree about one label; the reader names what is live."""
    store = own.store
    save(store, "manual:0.55")
    key = store.traces.find("t0")
    assert key is not None
    (before,) = [label for label in store.labels.of_trace(key) if label.labeller == "gold"]
    other = "clean" if before.verdict == "hallucinated" else "hallucinated"
    store.labels.add(key, Label("", "ada", other), sample_id=None, now=NOW)  # type: ignore[arg-type]
    page.reload()
    open_one = page.locator(f".st-key-item-caution-disputes-{DETECTOR}")
    open_one.get_by_text("1 label is disputed and in no figure.").wait_for()
    page.locator(f".st-key-item-passed-evidence-{DETECTOR}").wait_for()
    settled(page)
    live = store.releases.list(limit=1)[0].version
    page.get_by_role("tab", name="HTTP").click()
    page.get_by_text(f"/thresholds/{live}.json").wait_for()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.locator(".stMain").get_by_role("link", name="Settle disputes").click()
    page.wait_for_url("**/agreement?**view=disputed**")


def _seen(own: App) -> Any:
    from calibrate.workflow.releasing.impact import impact

    before = history.live_release(own.store)
    assert before is not None
    after = build_candidate(
        own.store, ReleaseRequest(by=""), points=own.store.points.latest(), previous=before, now=NOW
    )
    return impact(own.store, before, after).rows
