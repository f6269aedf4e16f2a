"""The Detect page: three groups told beforehand, a run that is stopped half way, names that are no markup."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from calibrate.types import Source, Trace
from calibrate.workflow.detection import detect
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.detectors import scripted
from tests.detectors.scripted import Endpoint

pytestmark = pytest.mark.browser

JUDGE = "judge_yes_no"
MANY = 200  # at three seconds an answer, more than a busy machine gets through before Stop is pressed
HOSTILE = "<img src=x onerror=alert(1)> ![x](http://evil.example/p.png) :red[w48]"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, Endpoint, threading.Event]]:
    """Traces without tokens, alternatives and schema, in a sample with a hostile name, and a judge that takes its
    time until the event is set."""
    folder = tmp_path_factory.mktemp("detect")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    hurry = threading.Event()

    def reply(body: dict[str, Any]) -> Any:
        hurry.wait(3)
        return scripted.sensible(body)

    with scripted.endpoint(reply) as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOUCHSTONE_CHAT_URL", endpoint.url)
        patch.setenv("TOUCHSTONE_CHAT_MODEL", scripted.MODEL)
        patch.setenv("TOUCHSTONE_NLI_MODEL", "")
        server, address = serve(store.url, folder / "server.log")
        app = App(address, store)
        sources = (Source("1", "The parcel leaves at noon."),)
        app.fill([Trace(f"t{n}", f"Parcel {n} is late.", sources=sources) for n in range(MANY)], sample=HOSTILE)
        yield app, endpoint, hurry
        hurry.set()
        server.terminate()
        server.wait(timeout=20)
    store.close()


@pytest.fixture
def page(slow: tuple[App, Endpoint, threading.Event], browser: Any) -> Iterator[Any]:
    app = slow[0]
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(LONG)
    outside: list[str] = []
    hosts = (app.url, app.url.replace("http", "ws", 1), "data:", "blob:")
    context.on("request", lambda request: outside.extend([request.url] * (not request.url.startswith(hosts))))
    opened = context.new_page()
    opened.on("dialog", lambda dialog: outside.append(dialog.message))
    opened.goto(app.url)
    opened.get_by_role("link", name="This week").wait_for()
    opened.goto(f"{app.url}/detect")
    opened.get_by_role("button", name=re.compile(r"^Run \d+")).wait_for()
    settled(opened)
    yield opened
    context.close()
    assert outside == []


def test_three_groups_are_told_before_anything_runs(slow: Any, page: Any) -> None:
    app = slow[0]
    text = page.locator(".stMain").inner_text()
    assert f"{MANY} of {MANY}" in page.locator(".st-key-detect-row-token_overlap").inner_text()
    for words in ("Log-probabilities of tokens", "Other answers to the same question", "The schema of the answer"):
        assert f"{words}: on 0 of {MANY} traces." in text, words
    waiting = page.locator(".st-key-detect-cause-tokens").get_by_role("link")
    assert waiting.all_inner_texts() == ["Token entropy", "Token log-probability"]
    assert page.get_by_role("checkbox", name="Token entropy").count() == 0
    assert text.count("no NLI model".capitalize()) <= 1  # one message, however many wait for it
    page.locator(".st-key-detect-cause-tokens").get_by_role("button", name="How to log it").click()
    page.get_by_text('"logprob"').first.wait_for()
    # In sight wherever one reads.
    page.keyboard.press("Escape")
    page.locator(".st-key-detect-cause-tokens").scroll_into_view_if_needed()
    page.mouse.wheel(0, 5000)
    page.wait_for_timeout(300)
    button = page.get_by_role("button", name=re.compile(r"^Run \d+")).bounding_box()
    assert 0 <= button["y"] < 900
    assert app.store.runs.recent() == []
    # The sample's name is text.
    assert page.locator("img[src*=evil], img[src=x]").count() == 0
    assert page.get_by_role("radio").first.inner_text().startswith("<img src=x")


def test_stop_keeps_what_was_scored_and_the_table_stays(slow: Any, page: Any) -> None:
    app, _, hurry = slow
    page.get_by_role("button", name="None", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).wait_for()
    settled(page)  # the rows follow the button
    page.get_by_text("Judge: yes or no", exact=True).click()
    page.get_by_role("button", name=re.compile("^Run 1 · ")).click()
    row = page.locator(f".st-key-detect-row-going-{JUDGE}")
    row.get_by_role("progressbar").wait_for()
    page.locator(".st-key-detect-row-token_overlap").wait_for()  # the rest of the table stays
    until(page, lambda: any(tally.get("scored", 0) > 2 for tally in app.store.runs.get(1).counts.values()))
    row.get_by_text(re.compile(rf"\d+ of {MANY} · .*/s")).wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Run 1 stopped").wait_for()
    settled(page)
    scored = app.store.runs.get(1).counts[JUDGE]["scored"]
    assert 2 < scored < MANY
    page.get_by_text(f"{scored} of {MANY} scored, {MANY - scored} to go").wait_for()
    hurry.set()
    detect.work(app.store, run_id=detect.queue(app.store, [JUDGE], {"sample": HOSTILE}).id)
    page.reload()
    page.get_by_text(f"{MANY} of {MANY} scored").wait_for()
    assert app.store.runs.get(2).counts[JUDGE]["scored"] == MANY - scored  # nothing is asked twice


def test_which_traces_is_in_the_address(slow: Any, page: Any) -> None:
    page.get_by_role("radio", name=f"All traces · {MANY}").click()
    until(page, lambda: "traces=all" in page.url)
    page.reload()
    chosen = page.get_by_role("radio", name=f"All traces · {MANY}")
    chosen.wait_for()
    until(page, lambda: chosen.get_attribute("aria-checked") == "true")
