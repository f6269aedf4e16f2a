"""The list of traces beside the open one: by keyboard, by score, from the address, and with hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calibrate.types import Label, Record, Score, Source, Trace
from calibrate.workflow.sampling.hand_picked import hand_picked
from db import open_store
from tests.browser.conftest import App, serve, settled

pytestmark = pytest.mark.browser

MANY = 450
BEGAN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOSTILE = "<img src=http://127.0.0.1:9/list.png onerror='window.owned = 1'> **bold** \u202e"


def score_of(n: int) -> float:
    """Scores in an order of their own, each once."""
    return (n * 7 % MANY) / MANY


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("traces")
    url = f"sqlite:///{folder / 'store.db'}"
    store = open_store(url)
    traces = [
        Trace(
            f"t{n:03d}", f"Answer {n}.", question=HOSTILE if n == 7 else f"Question {n}?",
            sources=(Source("1", f"S {n}."),), model="new" if n % 2 else "old", timestamp=BEGAN - timedelta(minutes=n),
        )
        for n in range(MANY)
    ]  # fmt: skip
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=BEGAN)
    config = store.scores.config("token_overlap", "1", {}, "", now=BEGAN)
    pairs = [(trace.content_hash(), Score(trace.id, score_of(n))) for n, trace in enumerate(traces) if n != 3]
    store.scores.save(config.id, pairs, now=BEGAN)
    store.labels.add(store.traces.find("t002") or 0, Label("t002", "ann", "clean"), sample_id=None, now=BEGAN)
    server, address = serve(url, Path(folder) / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture
def page(own: App, browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def opened(page: Any, trace_id: str) -> None:
    page.get_by_role("heading", name=trace_id, exact=True).wait_for()
    page.locator(f"article.card[data-trace={trace_id}]").wait_for()
    page.wait_for_url(f"**/traces?*trace={trace_id}*")


def ids_in_sight(page: Any) -> list[str]:
    """The questions of the rows from the top."""
    texts: list[str] = page.locator(".row .question").all_inner_texts()
    return [f"t{int(text.split()[1].rstrip('?')):03d}" for text in texts if text.startswith("Question")]


def test_keys_move_through_the_list_and_open_what_they_reach(own: App, page: Any) -> None:
    page.goto(f"{own.url}/traces")
    opened(page, "t000")
    page.keyboard.press("j")
    opened(page, "t001")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    opened(page, "t002")
    page.get_by_role("listbox", name="Traces").focus()
    page.keyboard.press("ArrowDown")
    opened(page, "t003")
    assert page.locator(".row[aria-selected=true] .question").inner_text() == "Question 3?"


def test_letters_in_the_search_field_stay_there(own: App, page: Any) -> None:
    page.goto(f"{own.url}/traces")
    opened(page, "t000")
    page.get_by_role("textbox", name="Search").press_sequentially("jk")
    settled(page)
    assert page.get_by_role("textbox", name="Search").input_value() == "jk"
    opened(page, "t000")


def test_the_whole_list_is_reached_a_window_at_a_time(own: App, page: Any) -> None:
    page.goto(f"{own.url}/traces")
    opened(page, "t000")
    page.get_by_text("450 traces", exact=True).wait_for()
    assert page.locator(".row").count() < 60
    box = page.get_by_role("listbox", name="Traces")
    for _ in range(12):
        box.evaluate("box => box.scrollTo(0, box.scrollHeight)")
        page.wait_for_timeout(150)
    page.locator(".row .question", has_text="Question 449?").wait_for()
    assert page.locator(".row").count() < 60


def test_sorted_and_filtered_by_score(own: App, page: Any) -> None:
    """Lower is more suspicious for this detector. The oracle: Python's own sort of the scores that were given."""
    page.goto(f"{own.url}/traces?sort=suspicious")
    expected = sorted((n for n in range(MANY) if n != 3), key=score_of)
    opened(page, f"t{expected[0]:03d}")
    assert ids_in_sight(page)[:6] == [f"t{n:03d}" for n in expected[:6]]
    page.get_by_text("449 traces, 1 more without a score", exact=True).wait_for()
    page.goto(f"{own.url}/traces?sort=trusted&low=0.2&high=0.3")
    inside = [n for n in reversed(expected) if 0.2 <= score_of(n) <= 0.3]
    opened(page, f"t{inside[0]:03d}")
    page.get_by_text(f"{len(inside)} traces", exact=True).wait_for()
    assert ids_in_sight(page)[:6] == [f"t{n:03d}" for n in inside[:6]]


def test_the_address_restores_the_view_and_the_open_trace(own: App, page: Any) -> None:
    page.goto(f"{own.url}/traces?label=clean&sort=suspicious&trace=t010")
    opened(page, "t010")
    page.get_by_text("1 trace", exact=True).wait_for()
    assert ids_in_sight(page) == ["t002"]
    page.get_by_role("button", name="Filters (1)").wait_for()
    address = page.url
    assert "label=clean" in address
    assert "sort=suspicious" in address
    page.reload()
    opened(page, "t010")
    assert ids_in_sight(page) == ["t002"]


def test_hostile_text_in_the_list_is_text(own: App, page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{own.url}/traces?trace=t007")
    opened(page, "t007")
    row = page.locator(".row[aria-selected=true] .question")
    assert "<img src=http://127.0.0.1:9/list.png onerror=" in row.inner_text()
    assert "**bold**" in row.inner_text()
    assert "\u202e" not in row.inner_text()
    assert page.evaluate("window.owned") is None
    assert not [url for url in asked if "127.0.0.1:9/" in url]


def test_labelled_now_and_added_to_a_hand_picked_sample(own: App, page: Any) -> None:
    page.goto(f"{own.url}/traces?trace=t020")
    opened(page, "t020")
    page.get_by_role("button", name="Label now").click()
    page.locator(".touchstone-surface article[data-trace=t020]").wait_for()
    page.get_by_role("tab", name="Answer and sources").wait_for(state="detached")
    assert "labelling=t020" in page.url
    page.keyboard.press("x")
    page.get_by_text("It is labelled").wait_for()
    page.get_by_role("button", name="Back to the trace").click()
    page.get_by_text("Gold: hallucinated").wait_for()
    assert "labelling" not in page.url
    page.locator(".row[aria-selected=true] .gold", has_text="Hallucinated").wait_for()
    [label] = own.labels("t020", "tester")
    assert (label.verdict, label.sample) == ("hallucinated", None)
    page.get_by_role("button", name="Add to sample").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Added to Hand-picked").wait_for()
    (sample,) = hand_picked(own.store)
    assert [line.trace_id for line in own.store.samples.lines(sample.id)] == ["t020"]


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_screen(own: App, browser: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    found = context.new_page()
    found.goto(f"{own.url}/traces?trace=t001")
    found.locator("article.card[data-trace=t001]").wait_for(timeout=60_000)
    settled(found)
    assert found.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1440:
        main = "document.querySelector('[data-testid=stMain]')"
        assert found.evaluate(f"{main}.scrollHeight <= {main}.clientHeight + 1")
    context.close()
