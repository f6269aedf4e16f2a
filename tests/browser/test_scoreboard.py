"""Scoreboard and Side by side under Details in a real browser: who leads, what a score says in percent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate.types import Label, Source, Trace
from calibrate.workflow.detection import detect
from calibrate.workflow.tuning import probability
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled
from tests.browser.tune import open_details
from tests.workflow.making import save

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server with 60 labelled traces, every third answer saying more than its source, and two detectors' scores."""
    folder = tmp_path_factory.mktemp("scoreboard")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    server, address = serve(store.url, folder / "server.log")
    app = App(address, store)
    source = "The warranty of the X200 ends two years after delivery and covers parts and labour."
    said = (
        "The warranty ends two years after delivery",
        "The warranty covers parts and labour",
        "It ends after delivery",
    )
    traces = [
        Trace(
            f"t{n}",
            f"{said[n % 3]}{' and batteries for life' if n % 3 == 0 else ''}, case {n}.",
            sources=(Source("1", source),),
        )
        for n in range(60)
    ]
    app.fill(traces, sample="w47")
    for n, trace in enumerate(traces):
        verdict = "hallucinated" if n % 3 == 0 or n % 11 == 0 else "clean"
        label = Label("", "gold", verdict)  # type: ignore[arg-type]
        store.labels.add(store.traces.find(trace.id) or 0, label, sample_id=None, now=datetime.now(UTC))
    queued = detect.queue(store, ["token_overlap", "word_overlap"], detect.scope_of(labelled=True))
    detect.work(store, run_id=queued.id)
    yield app
    server.terminate()
    server.wait(timeout=20)
    store.close()


def test_the_leader_its_map_and_what_comes_next(own: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    context.set_default_timeout(LONG)
    page = context.new_page()
    page.goto(own.url)
    page.get_by_role("link", name="Label").first.wait_for()
    page.goto(f"{own.url}/scoreboard?sample=w47")
    page.get_by_text("Token overlap leads with an AUROC of").wait_for()
    page.get_by_text("Over the baseline word overlap").wait_for()
    page.get_by_text("60 labels, ").first.wait_for()
    settled(page)
    assert page.locator("[data-testid=stBaseButton-primary]").count() <= 1
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert "token_overlap" in download.value.path().read_text()
    open_details(page, "In percent")
    page.get_by_role("heading", name="What a score of Token overlap says in percent").wait_for()
    page.get_by_text("Its Brier score is").wait_for()
    page.get_by_text("none is saved for this one").wait_for()

    save(own.store, "elbow", name="token_overlap", sample="w47")
    page.reload()
    page.get_by_role("button", name="Keep with the operating point").click()
    page.get_by_text("Kept with the operating point").wait_for()
    kept = probability.kept_map(own.store.points.latest()["token_overlap"])
    assert kept == probability.fit(own.store, "token_overlap", sample="w47").fitted.map
    context.close()


def test_curves_side_by_side_and_what_there_is_to_compare(own: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    context.set_default_timeout(LONG)
    page = context.new_page()
    page.goto(own.url)
    page.get_by_role("link", name="Label").first.wait_for()
    page.goto(f"{own.url}/compare?sample=w47")
    page.get_by_text("60 labels that both scored").wait_for()
    page.locator(".js-plotly-plot .legend text", has_text="Word overlap").wait_for()
    settled(page)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.get_by_role("radio", name="Weeks").click()
    page.get_by_text("Nothing to compare yet.").wait_for()
    assert page.locator("[data-testid=stException]").count() == 0
    context.close()
