"""A trace may say anything. It shows as text: nothing it says runs, loads, or changes the page."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from calibrate.types import Evidence, Label, Score, Source, Trace
from tests.browser.conftest import take_sample

pytestmark = pytest.mark.browser

QUESTION = "<script>window.owned = 1</script> ![](http://127.0.0.1:9/question.png)"
ANSWER = (
    "<img src=http://127.0.0.1:9/answer.png onerror='window.owned = 2'> ![beacon](http://127.0.0.1:9/beacon.png) "
    "\x1b[31mred\x1b[0m \u202egnitset\u202c zero\u200bwidth **bold** $x^2$ :material/home: "
    "<style>* {display: none}</style> [1] [link](javascript:window.owned=3)"
)
SOURCE = "<iframe src='http://127.0.0.1:9/frame'></iframe> <svg onload='window.owned = 4'> \u2066bidi\u2069"
REMARK = "<b onmouseover='window.owned=5'>remark</b> ![](http://127.0.0.1:9/remark.png)"


@pytest.fixture(scope="module", autouse=True)
def sample(app: Any) -> Any:
    trace = Trace(
        id="hostile <b>![](http://127.0.0.1:9/id.png)",
        question=QUESTION,
        answer=ANSWER,
        sources=(Source("1", SOURCE, "<h1>title</h1> \u202e"), Source("</section>", "odd number")),
        alternatives=("<script>window.owned = 6</script>",),
        schema={"title": "<script>window.owned = 7</script>"},
        model="<b>model</b> https://127.0.0.1:9/model www.model.example m@model.example",
        attributes={"<i>name</i>": "![](http://127.0.0.1:9/attribute.png)"},
    )
    found = app.fill([trace, Trace(id="tame", answer="Yes.")], sample="hostile ![](http://127.0.0.1:9/sample.png)")
    (pk, content), (tame, plain) = app.store.samples.keys(found.id)
    config = app.store.scores.config("token_overlap", "1", {}, "", now=found.created_at)
    score = Score("x", 0.5, evidence=(Evidence(REMARK, 0.1, 0, 4, "1", (0, 7)),))
    app.store.scores.save(config.id, [(content, score), (plain, Score("x", 0.9))], now=found.created_at)
    label = Label(trace.id, "<b>who</b>", "unsure", note=REMARK)
    app.store.labels.add(pk, label, sample_id=found.id, now=found.created_at)
    for key, verdict in ((pk, "hallucinated"), (tame, "clean")):  # so that the Tune page has something to show
        app.store.labels.add(key, Label("", REMARK, verdict), sample_id=found.id, now=found.created_at)  # type: ignore[arg-type]
    return found


def test_on_the_label_page(visit: Any, sample: Any) -> None:
    page = visit("/label")
    take_sample(page, sample.name)
    card = page.locator("article.card[data-trace^=hostile]:visible")
    card.wait_for()
    _shows_as_text(page, card)
    page.keyboard.press("Space")
    page.locator("article.card[data-trace=tame]").wait_for()


def test_on_the_traces_page(visit: Any) -> None:
    page = visit("/traces?trace=hostile %3Cb%3E!%5B%5D(http://127.0.0.1:9/id.png)")
    card = page.locator("article.card")
    card.wait_for()
    _shows_as_text(page, card)
    assert REMARK in card.inner_text()
    for summary in card.locator("summary").all():
        summary.click()
    assert "<script>window.owned = 6</script>" in card.inner_text()
    assert "![](http://127.0.0.1:9/attribute.png)" in card.inner_text()


@pytest.mark.parametrize(
    "address", ["/", "/import", "/sample", "/label", "/detect", "/tune", "/release", "/watch?details=models"]
)
def test_no_page_runs_or_loads_anything(visit: Any, sample: Any, address: str) -> None:
    page = visit(f"{address}?sample={quote(sample.name)}")
    page.locator(".stApp[data-test-script-state=notRunning]").wait_for()
    if address == "/tune":
        folded = page.locator("details.item summary").first
        assert QUESTION in folded.inner_text()
        folded.click()
        page.locator("article.card").first.wait_for()
        assert QUESTION in page.locator("article.card").first.inner_text()
    page.wait_for_timeout(500)  # a beacon would go out by now
    assert page.evaluate("window.owned") is None
    assert page.locator("img[src*='127.0.0.1:9'], iframe[src*='127.0.0.1:9']").count() == 0
    assert page.locator("a[href*='127.0.0.1:9'], a[href*='model.example']").count() == 0
    assert page.get_by_text("Something went wrong").count() == 0


def test_a_filter_in_the_address_is_text_too(visit: Any) -> None:
    page = visit("/traces?text=![](http://127.0.0.1:9/filter.png)&trace=<script>window.owned=8</script>")
    page.get_by_text("There is no trace").wait_for()
    assert page.evaluate("window.owned") is None


def _shows_as_text(page: Any, card: Any) -> None:
    text = card.inner_text()
    assert QUESTION in text
    assert "<img src=http://127.0.0.1:9/answer.png onerror='window.owned = 2'>" in text
    assert "**bold** $x^2$ :material/home: <style>* {display: none}</style>" in text
    assert "<iframe src='http://127.0.0.1:9/frame'></iframe>" in text
    for unseen in ("\x1b", "\u202e", "\u202c", "\u200b", "\u2066", "\u2069"):
        assert unseen not in text
    chips = card.locator(".chip").all_inner_texts()
    assert {"ESC", "RLO", "U+202C", "U+200B", "LRI", "PDI"} <= set(chips)
    assert card.locator("script, img, iframe, svg, style, a").count() == 0
    page.wait_for_timeout(300)  # a beacon would go out by now
    assert page.evaluate("window.owned") is None
