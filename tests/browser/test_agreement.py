"""The Disputes page: from one labeller to two, disputes decided one by one, doubted labels, and what errors do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate.stats.choosing.policy import parse
from calibrate.types import Evidence, Label, Score, Source, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.labelling import flags
from calibrate.workflow.tuning import operating_points
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled, until

pytestmark = pytest.mark.browser
NOTE = "<img src=x onerror=alert(1)> ![](http://example.org/b.png)"


@pytest.fixture
def own(tmp_path: Any) -> Iterator[App]:
    """60 traces, every third hallucinated by the one person who labelled, and scored by a detector that sees it."""
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    server, address = serve(store.url, tmp_path / "server.log")
    app = App(address, store)
    traces = [Trace(f"t{n}", answer=f"Answer {n}.", sources=(Source("1", f"Source {n}."),)) for n in range(60)]
    app.fill(traces, sample="w47")
    config = store.scores.config("token_overlap", "1", {"variant": "default"}, "", now=datetime.now(UTC))
    marked = (Evidence("1 of 2 words", None, 0, 6),)
    scores = [
        (trace.content_hash(), Score(trace.id, 0.2 if n % 3 == 0 else 0.8, evidence=marked))
        for n, trace in enumerate(traces)
    ]
    store.scores.save(config.id, scores, now=datetime.now(UTC))
    for n in range(60):
        say(app, n, "ann@example.org", "hallucinated" if n % 3 == 0 or n == 1 else "clean")
    yield app
    server.terminate()
    server.wait(timeout=20)
    store.close()


def say(app: App, n: int, who: str, verdict: str, note: str | None = None) -> None:
    key = app.store.traces.find(f"t{n}") or 0
    app.store.labels.add(key, Label("", who, verdict, note=note), sample_id=None, now=datetime.now(UTC))  # type: ignore[arg-type]


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_two_people_agree_dispute_and_decide(own: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    context.set_default_timeout(LONG)
    outside: list[str] = []
    context.on("request", lambda request: outside.extend([request.url] * ("example.org" in request.url)))
    page = context.new_page()
    page.goto(own.url)
    page.get_by_role("link", name="This week").wait_for()
    page.goto(f"{own.url}/agreement")
    page.get_by_text("agreement needs two").wait_for()
    press(page, "Draw 100 to double-label")
    page.get_by_text("w47-double is drawn").or_(page.get_by_text("-double")).first.wait_for()
    (double,) = (one for one in own.store.samples.list() if one.design == "enriched")
    assert double.size == 60
    press(page, "Label them")
    page.get_by_text("0 / 60").wait_for()

    for n in range(30):
        wrong = n in (0, 4)
        say(own, n, "bob", "hallucinated" if (n % 3 == 0 or n == 1) != wrong else "clean", NOTE if wrong else None)
    page.goto(f"{own.url}/agreement?sample={double.name}")
    page.get_by_text("2 traces to decide.").wait_for()
    page.get_by_text("agree on 93% of 30 traces").wait_for()
    page.get_by_text(NOTE).wait_for()
    settled(page)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    # Decided by the keyboard alone, with a reason; what both said stands above the answer.
    page.get_by_text("0 / 2").wait_for()
    assert page.locator(".voices li").count() == 2
    page.keyboard.press("n")
    page.keyboard.type("ax: source 1 says so")
    page.keyboard.press("Enter")
    page.keyboard.press("x")
    page.get_by_text("1 / 2").wait_for()
    until(page, lambda: own.store.labels.gold_counts().get("disputed") == 1)
    (decided,) = (one for one in own.store.labels.export() if one.adjudicates)
    assert (decided.labeller, decided.verdict, decided.note) == ("tester", "hallucinated", "ax: source 1 says so")

    page.get_by_text("Second look", exact=True).click()
    page.get_by_text("Why these").wait_for()
    page.locator(".voices li").first.wait_for()
    # What a detector marks stands in the answers, on request and without the model's name.
    page.get_by_text("Why these").click()
    page.get_by_text(re.compile(", against (clean|hallucinated)$")).first.click()
    page.locator("[data-evidence]").first.wait_for()
    page.get_by_text("Why these").click()
    settled(page)
    page.keyboard.press("u")
    until(page, lambda: own.store.labels.gold_counts().get("unsure") == 1)

    page.get_by_text("If labellers err", exact=True).click()
    page.get_by_text("No operating point yet.").wait_for()
    data = loading.load_evidence(own.store, "token_overlap")
    point = operating_points.choose_point(data, parse("elbow"))
    operating_points.save_point(own.store, data, point, by="tester", now=datetime.now(UTC))
    page.goto(f"{own.url}/agreement?view=errors")
    page.get_by_text("Decide the 1 disputed trace first").wait_for()
    page.get_by_role("slider").first.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.get_by_text("5%", exact=True).wait_for()
    context.close()
    assert outside == []


def test_a_flag_waits_for_the_lead_on_this_page(app: Any, visit: Any) -> None:
    sample = app.fill([Trace("flagged-trace", "An answer.")], sample="flagged")
    key = app.store.traces.find("flagged-trace")
    flags.raise_flag(app.store, key, "ann", note="<b>is this</b> _ours_?", sample=sample, now=datetime.now(UTC))
    page = visit("/agreement")
    page.get_by_text("1 flag for the lead.").wait_for()
    page.get_by_text("“<b>is this</b> _ours_?”").wait_for()
    page.get_by_role("link", name="flagged-trace").wait_for()
    page.get_by_role("button", name="Settled").click()
    page.get_by_text("1 flag for the lead.").wait_for(state="detached")
    assert flags.open_flags(app.store) == []
