"""Labelling by keyboard, as a labeller does it."""

from __future__ import annotations

from typing import Any

import pytest

from calibrate.types import Score, Source, Trace

pytestmark = pytest.mark.browser
NAMES = ("one", "two", "three", "four")


@pytest.fixture(scope="module", autouse=True)
def sample(app: Any) -> Any:
    traces = [
        Trace(
            id=f"label-{name}",
            question=f"Question {name}?",
            answer=f"Answer {name} [1]. And 🙂 more [2].",
            sources=(Source("1", f"Passage {name}."), Source("2", "Another.", "Titled"), Source("3", "Not cited.")),
            model="secret-model-7",
            attributes={"truth": "hallucinated-for-sure"},
        )
        for name in NAMES
    ]
    found = app.fill(traces, sample="labelling")
    keys = app.store.samples.keys(found.id)
    config = app.store.scores.config("token_overlap", "1", {}, "", now=found.created_at)
    app.store.scores.save(config.id, [(content, Score("x", 0.98765)) for _, content in keys], now=found.created_at)
    return found


def test_keys_write_to_the_store_before_the_next_trace_shows(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=ann")
    showing(page, "one")
    page.keyboard.press("a")
    showing(page, "two")
    (label,) = app.labels("label-one", "ann")
    assert (label.verdict, label.sample) == ("clean", "labelling")
    assert label.seconds is not None
    assert 0 < label.seconds < 60
    page.keyboard.press("2")
    page.keyboard.press("x")
    showing(page, "three")
    assert [(one.verdict, one.kinds) for one in app.labels("label-two", "ann")] == [
        ("hallucinated", ("contradiction",))
    ]
    page.keyboard.press("u")
    showing(page, "four")
    assert [one.verdict for one in app.labels("label-three", "ann")] == ["unsure"]
    assert "3 / 4" in page.locator(".st-key-label-head").inner_text()


def test_back_shows_the_verdict_and_appends_a_new_one(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=ann")
    showing(page, "four")
    page.keyboard.press("Backspace")
    showing(page, "three")
    page.get_by_text("you said unsure").wait_for()
    page.keyboard.press("Backspace")
    showing(page, "two")
    page.keyboard.press("a")
    showing(page, "four")
    assert [one.verdict for one in app.labels("label-two", "ann")] == ["hallucinated", "clean"]


def test_skipped_traces_come_again_and_a_new_browser_goes_on(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=bea")
    showing(page, "one")
    page.keyboard.press("Space")
    showing(page, "two")
    page.keyboard.press("a")
    showing(page, "three")
    page.context.close()
    page = visit("/label?sample=labelling&user=bea")
    showing(page, "three")
    page.keyboard.press("a")
    showing(page, "four")
    page.keyboard.press("a")
    showing(page, "one")
    # Where nobody else has labelled the first trace, it holds back the others.
    page.get_by_text("the 1 you skipped, once more").or_(
        page.get_by_text("1 skipped trace holds back 3 labels")
    ).wait_for()
    page.keyboard.press("x")
    page.get_by_text("All 4 are labelled").wait_for()
    page.get_by_role("button", name="Run the detectors").wait_for()
    open_bar(page)
    assert [one.verdict for one in app.labels("label-one", "bea")] == ["hallucinated"]
    page.keyboard.press("Backspace")
    showing(page, "one")


def test_one_press_answers_one_trace(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=cleo")
    showing(page, "one")
    for _ in range(20):  # a held key repeats
        page.keyboard.down("a")
    page.keyboard.up("a")
    showing(page, "two")
    page.wait_for_timeout(600)
    assert [len(app.labels(f"label-{name}", "cleo")) for name in NAMES] == [1, 0, 0, 0]
    page.get_by_role("button", name="Clean").click()
    showing(page, "three")
    page.keyboard.press("Space")  # skips: it does not press the button clicked before
    showing(page, "four")
    assert [len(app.labels(f"label-{name}", "cleo")) for name in NAMES] == [1, 1, 0, 0]


def test_a_note_and_letters_in_it_are_not_verdicts(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=dora")
    showing(page, "one")
    page.get_by_placeholder("Note (optional)").fill("axe")
    page.get_by_placeholder("Note (optional)").press("u")
    page.get_by_placeholder("Note (optional)").press("Enter")
    page.keyboard.press("x")
    showing(page, "two")
    assert [(one.verdict, one.note) for one in app.labels("label-one", "dora")] == [("hallucinated", "axeu")]
    assert page.get_by_placeholder("Note (optional)").filter(visible=True).input_value() == ""


def test_the_keys_are_shown_and_do_nothing_then(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=emma")
    showing(page, "one")
    page.keyboard.press("h")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("a")
    page.keyboard.press("h")
    page.get_by_role("dialog").wait_for(state="detached")
    showing(page, "one")
    assert app.labels("label-one", "emma") == []


def test_labelling_is_blind(app: Any, visit: Any) -> None:
    """Ann and Bea have judged this trace, and a detector has scored it; Flora sees none of it."""
    page = visit("/label?sample=labelling&user=flora")
    showing(page, "one")
    seen = page.locator(".stMain").inner_text() + page.locator("article.card").inner_text()
    for hidden in ("0.98", "token_overlap", "secret-model-7", "for-sure", "ann", "bea", "you said", "Gold"):
        assert hidden not in seen


def test_cited_sources_come_first_and_marks_survive_wide_characters(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=gina")
    showing(page, "one")
    assert page.locator("article.card .cite").all_inner_texts() == ["[1]", "[2]"]
    assert page.locator("article.card .source .number").all_inner_texts() == ["[1]", "[2]", "[3]"]
    assert page.locator("article.card .source.uncited .number").all_inner_texts() == ["[3]"]


def test_the_verdict_bar_is_on_the_screen_and_does_not_move(app: Any, visit: Any) -> None:
    long = Trace(
        id="long",
        question="word " * 900,
        answer="x" * 5000,
        sources=tuple(Source(str(i), "y " * 900) for i in range(100)),
    )
    app.fill([Trace(id="short", answer="Short."), long], sample="long and short")
    page = visit("/label?sample=long and short&user=hanna", viewport={"width": 1280, "height": 720})
    bar = page.get_by_role("button", name="Clean")
    page.locator("article.card[data-trace=short]").wait_for()
    open_bar(page)
    before = bar.bounding_box()
    page.keyboard.press("a")
    page.locator("article.card[data-trace=long]").wait_for()
    open_bar(page)
    assert bar.bounding_box() == before
    assert before["y"] + before["height"] < 720
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def showing(page: Any, name: str) -> None:
    page.locator(f"article.card[data-trace=label-{name}]:visible").wait_for()  # Streamlit hides an old one for a while
    open_bar(page)


def open_bar(page: Any) -> None:
    """Waits until the next press counts. The screen is there a moment earlier, and a press then is not counted."""
    page.locator(".st-key-verdicts[data-open=yes]").wait_for()
