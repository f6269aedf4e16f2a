"""The Watch pages in a real browser: from an empty store over drift and a recheck to the next release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from calibrate import registry
from calibrate.types import Label, Record, Source, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.detect import utc_now
from calibrate.workflow.releasing import history, release
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.traces.stated_samples import keep_stated
from calibrate.workflow.watching import recheck
from db import Store, open_store
from db.releases import ReleaseRequest
from pages.components.text import middle
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.workflow.making import save

pytestmark = pytest.mark.browser

NAME = "token_overlap"
SOURCE = "the warranty covers parts and labour for two years after delivery"
NEW = "<b>new</b> *model* ![x](http://elsewhere.example/x.png)"
TITLE = registry.get(NAME).title
EMPTY = {
    "watch": "Nothing is live yet.",
    "models": "Nothing is live yet.",
    "drift": "Nothing is live yet.",
    "recheck": "Nothing is released yet.",
    "recalibrate": "Nothing is released yet.",
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("watch")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    server, address = serve(store.url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


def log(store: Store, count: int, *, hours: int, model: str, prompt: str, labelled: bool) -> None:
    records = []
    for place in range(count):
        bad = place % 3 == 0 or not labelled
        words = SOURCE.split()[: 5 + place % 6]
        answer = f"{' '.join(words)} {'and batteries for ever, said golden wings' if bad else ''} {place}"
        at = utc_now() - timedelta(hours=hours + place)
        trace = Trace(
            f"{labelled}-{place}", answer, sources=(Source("1", SOURCE),), model=model, timestamp=at,
            attributes={"prompt_version": prompt},
        )  # fmt: skip
        label = (Label(trace.id, "", "hallucinated" if bad else "clean"),) if labelled else ()
        records.append(Record(place + 1, trace, label))
    store.traces.add(records, labels_as="gold", now=utc_now() - timedelta(hours=hours))


def test_from_nothing_to_a_recalibrated_release(own: App, browser: Any) -> None:
    store = own.store
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    context.set_default_timeout(LONG)
    page = context.new_page()
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url) if "//elsewhere" in request.url[:60] else None)
    page.goto(own.url)
    page.get_by_role("link", name="This week").first.wait_for()
    for address, said in EMPTY.items():
        page.goto(f"{own.url}/{address}")
        page.get_by_text(said).first.wait_for()
        settled(page)
        if address in ("models", "drift"):
            assert f"/watch?details={address}" in page.url
    page.goto(f"{own.url}/watch")
    page.get_by_role("button", name="Import traces").wait_for()

    log(store, 60, hours=100, model="old", prompt="v1", labelled=True)
    detect.work(store, run_id=detect.queue(store, [NAME], {"all": True}).id)
    # Whoever imports them says how they were chosen: without that they choose and compare nothing.
    keep_stated(store, "first", [f"True-{place}" for place in range(60)], design="random", now=utc_now())
    save(store, "f1", sample="first")
    release.release(store, ReleaseRequest(by="ann"), now=utc_now() - timedelta(hours=99))
    log(store, 60, hours=2, model=NEW, prompt="v2", labelled=False)
    detect.work(store, run_id=detect.queue(store, [NAME], {"all": True}).id)

    # Watch: a row for the threshold, and what the new model needs.
    page.goto(f"{own.url}/watch")
    row = page.locator(".st-key-live-0")
    row.get_by_text(TITLE).wait_for()
    row.get_by_text("unknown model").wait_for()
    page.get_by_text("v1 was made without it: ").wait_for()
    page.get_by_role("button", name="Sample its answers").wait_for()
    settled(page)
    before = page.locator("[data-testid=stMain]").get_by_role("button").or_(page.get_by_role("radio"))
    assert before.count() <= 7 + 4 + 1, "at most seven controls, the four of Details, and the help of the title"

    # Models, by an old address: both, by prompt version too.
    page.goto(f"{own.url}/models")
    page.wait_for_url(re.compile("/watch.*details=models"))
    until(page, lambda: middle(NEW, 32) in page.locator(".legendtext").all_text_contents())
    page.goto(f"{own.url}/models?by=prompt_version")
    page.get_by_text("Share of the traffic by day").wait_for()
    page.get_by_text("Once traces of two of them are labelled").wait_for()

    # Drift, by an old address: the verdict first, and its chart.
    page.goto(f"{own.url}/drift")
    page.get_by_text(re.compile("Release v1 was made without")).wait_for()
    page.locator(".js-plotly-plot").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    # To the recheck from the row, and of the new model's traffic.
    settled(page)
    row.get_by_role("button", name="More").click()
    page.get_by_text("Recheck", exact=True).last.click()
    page.wait_for_url(re.compile(f"/recheck.*detector={NAME}"))
    page.get_by_role("link", name="Watch").first.wait_for()
    page.goto(f"{own.url}/recheck?detector={NAME}&model={quote(NEW)}")

    # Recheck: one flagged trace after another, until it is decided.
    begin = page.get_by_role("button", name=f"Recheck {TITLE}")
    page.get_by_text("No precision was promised for it. When it was released, ").wait_for()
    assert begin.is_disabled()
    page.get_by_label("Precision to hold, %").fill("70")
    page.keyboard.press("Tab")
    settled(page)
    begin.click()
    for number in range(40):
        settled(page)
        one = recheck.newest(store, NAME, model=NEW)
        assert one is not None
        if recheck.state(store, one, now=utc_now()).done:
            break
        page.locator(".touchstone-surface[data-open=yes]").wait_for()
        page.keyboard.press("a")
        until(page, partial(_labelled, store, one.sample_id, number + 1))
    page.get_by_text("Token overlap fell below").first.wait_for()
    page.get_by_role("button", name="Recalibrate").click()

    # Recalibrate: what a recheck labels is flagged, so the labels that choose are the same, and so are the thresholds.
    page.get_by_text("Token overlap fell below").first.wait_for()
    page.get_by_text("The same policies on these labels give the same thresholds").wait_for()
    page.get_by_text("in, label some of its answers").wait_for()
    page.get_by_role("link", name="Draw a sample").click()
    page.get_by_role("heading", name="Draw", exact=True).wait_for()

    # With a sample of all traffic: the same policy, released once.
    drawn = sampling.draw(store, "second", size=60, design="random", where=TraceFilter(), seed=1, now=utc_now())
    for member in store.samples.members(drawn.id):
        if not store.labels.of_trace(member.trace_pk):
            store.labels.add(member.trace_pk, Label("", "ann", "clean"), sample_id=drawn.id, now=utc_now())
    page.goto(f"{own.url}/recalibrate")
    page.get_by_role("button", name="Release v2").wait_for()
    settled(page)
    if page.get_by_label("Reason").count():
        page.get_by_label("Reason").fill("the new model changed the traffic")
        page.keyboard.press("Tab")
        settled(page)
    page.get_by_role("button", name="Release v2").click()
    page.get_by_text("v2 is released.").wait_for()
    assert [row.version for row in store.releases.list()] == [2, 1]
    assert [NEW in history.read_release(row).data.models for row in store.releases.list()] == [True, False]
    assert outside == []
    context.close()


def _labelled(store: Store, sample_id: int, least: int) -> bool:
    return sum(store.labels.gold_counts(sample_id).values()) >= least
