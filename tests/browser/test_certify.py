"""A certificate from plan to release in the workbench, with the page left and found again in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from calibrate.workflow.certification import attempts
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.workflow.certifying import Traffic, traffic
from tests.workflow.making import ABOVE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, Traffic]]:
    folder = tmp_path_factory.mktemp("certifying")
    made = traffic(open_store(f"sqlite:///{folder / 'store.db'}"))
    made.first()
    server, address = serve(made.store.url, folder / "server.log")
    yield App(address, made.store), made
    server.terminate()
    server.wait(timeout=20)
    made.store.close()


def panel(page: Any, own: App, sample: str = "w47") -> Any:
    page.goto(f"{own.url}/tune?detector={ABOVE}&sample={sample}")
    page.get_by_role("button", name=re.compile("Certify|Continue the certificate")).click()
    page.get_by_role("button", name="Back to the threshold").wait_for()
    found = page.locator(".st-key-certify")
    found.get_by_text("Certify on labels drawn for it").wait_for()
    settled(page)
    return found


def standing(own: App) -> attempts.CertificationStatus:
    found = attempts.latest_status(own.store, ABOVE)
    assert found is not None
    return found


def test_plan_draw_label_leave_come_back_certify_and_release(world: tuple[App, Traffic], browser: Any) -> None:
    own, truth = world
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(LONG)
    page = context.new_page()
    page.goto(own.url)
    page.get_by_role("link", name="This week").first.wait_for()

    found = panel(page, own)
    found.get_by_role("button", name="Plan").dblclick()
    found.get_by_text("Attempt 1: label 180 test traces of those flagged at ≥").wait_for()
    settled(page)
    assert len(own.store.certifications.of(ABOVE)) == 1
    found.get_by_role("button", name="Draw 180 test traces").dblclick()
    found.get_by_text("0 of 180 are labelled").wait_for()
    settled(page)
    fixed, drawn = standing(own).attempt.plan, standing(own).fresh
    assert drawn is not None
    assert len(own.store.samples.list()) == 2

    found.get_by_role("button", name="Label 180 test traces").click()
    page.get_by_role("button", name=re.compile("Hallucinated")).wait_for()
    page.get_by_text("0 / 180").wait_for()
    settled(page)
    page.keyboard.press("x")
    page.get_by_text("1 / 180").wait_for()
    truth.label(drawn, leave=30)
    found = panel(page, own, drawn.name)  # the labels that were at hand last
    found.get_by_text("Label 150 / 180").wait_for()
    assert found.get_by_role("button", name=re.compile("^Certify")).count() == 0

    truth.label(drawn)
    found = panel(page, own)
    found.get_by_role("button", name=re.compile("Certify$")).dblclick()
    found.get_by_text("Certified: of what is flagged at ≥").wait_for()
    settled(page)
    done = standing(own)
    assert (done.attempt.plan, done.stage) == (fixed, "certified")
    found.get_by_role("button", name="Save the certified point").click()
    found.get_by_text("It is the saved operating point").wait_for()
    until(page, lambda: own.store.points.latest()[ABOVE].point.guarantee.sample == drawn.name)
    found.get_by_role("link", name="Release it").click()
    page.get_by_role("heading", name="Release").wait_for()
    page.get_by_text("at least 70%").first.wait_for()
    page.get_by_text(re.compile("tier signal, certified")).wait_for()
    context.close()
