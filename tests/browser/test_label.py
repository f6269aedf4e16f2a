"""Labelling by keyboard, as a labeller does it."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate.types import Kind, Score, Source, Trace
from calibrate.workflow.labelling import flags, guides, repeats
from tests.browser.conftest import until

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


def test_a_key_shows_the_next_trace_and_writes_to_the_store(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=ann")
    showing(page, "one")
    page.keyboard.press("a")
    showing(page, "two")
    saved(page)
    (label,) = app.labels("label-one", "ann")
    assert (label.verdict, label.sample) == ("clean", "labelling")
    assert label.seconds is not None
    assert 0 < label.seconds < 60
    page.keyboard.press("2")
    page.keyboard.press("x")
    showing(page, "three")
    saved(page)
    assert [(one.verdict, one.kinds) for one in app.labels("label-two", "ann")] == [
        ("hallucinated", ("contradiction",))
    ]
    page.keyboard.press("u")
    showing(page, "four")
    saved(page)
    assert [one.verdict for one in app.labels("label-three", "ann")] == ["unsure"]
    assert page.locator(".touchstone-surface .count").inner_text() == "3 / 4"
    assert page.locator(".touchstone-surface [aria-live]").inner_text() == "Trace 4 of 4"


def test_back_shows_the_verdict_and_appends_a_new_one(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=ann")
    showing(page, "four")
    page.keyboard.press("Backspace")
    showing(page, "three")
    page.locator(".verdict.unsure[aria-pressed=true]").wait_for()
    page.keyboard.press("Backspace")
    showing(page, "two")
    page.keyboard.press("a")
    showing(page, "three")  # Back passed it: it comes again, and Space leaves it as it is
    page.keyboard.press("Space")
    showing(page, "four")
    saved(page)
    assert [one.verdict for one in app.labels("label-two", "ann")] == ["hallucinated", "clean"]


def test_skipped_traces_come_again_and_a_new_browser_goes_on(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=bea")
    showing(page, "one")
    page.keyboard.press("Space")
    showing(page, "two")
    page.keyboard.press("a")
    showing(page, "three")
    saved(page)
    page.context.close()
    page = visit("/label?sample=labelling&user=bea")
    showing(page, "three")
    page.keyboard.press("a")
    showing(page, "four")
    page.keyboard.press("a")
    showing(page, "one")
    page.keyboard.press("x")
    page.get_by_text("All 4 are labelled").wait_for()
    page.get_by_role("button", name="Run the detectors").wait_for()
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
    saved(page)
    assert [len(app.labels(f"label-{name}", "cleo")) for name in NAMES] == [1, 0, 0, 0]
    page.get_by_role("button", name="Clean").click()
    showing(page, "three")
    page.keyboard.press("Space")  # skips: it does not press the button clicked before
    showing(page, "four")
    saved(page)
    assert [len(app.labels(f"label-{name}", "cleo")) for name in NAMES] == [1, 1, 0, 0]


def test_a_note_and_letters_in_it_are_not_verdicts(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=dora")
    showing(page, "one")
    page.get_by_placeholder("Note (optional)").fill("axe")
    page.get_by_placeholder("Note (optional)").press("u")
    page.get_by_placeholder("Note (optional)").press("Enter")
    page.keyboard.press("x")
    showing(page, "two")
    saved(page)
    assert [(one.verdict, one.note) for one in app.labels("label-one", "dora")] == [("hallucinated", "axeu")]
    assert page.get_by_placeholder("Note (optional)").filter(visible=True).input_value() == ""


def test_the_keys_are_shown_and_do_nothing_then(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=emma")
    showing(page, "one")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("a")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for(state="detached")
    showing(page, "one")
    assert app.labels("label-one", "emma") == []


def test_a_flag_goes_to_the_lead_and_the_guide_is_a_key_away(app: Any, visit: Any) -> None:
    guide = guides.current(app.store)
    kinds = [*guide.kinds, Kind("dated", "<img src=x onerror=alert(1)>", "<b>Old</b>")]
    guides.save(app.store, "Look <script>alert(2)</script> twice.", kinds, by="lead", now=datetime.now(UTC))
    page = visit("/label?sample=labelling&user=flo")
    showing(page, "one")
    page.keyboard.press("g")
    sheet = page.locator(".touchstone-surface .sheet")
    assert "Look <script>alert(2)</script> twice." in sheet.inner_text()
    assert "<b>Old</b>" in sheet.inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.keyboard.type("axe <i>this</i>?")
    page.keyboard.press("Enter")
    page.locator(".touchstone-surface .flag[aria-pressed=true]").wait_for()
    saved(page)
    showing(page, "one")  # a flag is no answer
    assert [(flag.trace_id, flag.note) for flag in flags.open_flags(app.store)] == [("label-one", "axe <i>this</i>?")]
    assert app.labels("label-one", "flo") == []
    page.keyboard.press(str(len(kinds)))
    page.keyboard.press("x")
    showing(page, "two")
    saved(page)
    (label,) = app.labels("label-one", "flo")
    assert (label.kinds, label.guide) == (("dated",), guides.current(app.store).version)
    page.reload()
    showing(page, "two")
    page.keyboard.press("Backspace")
    showing(page, "one")
    page.keyboard.press("f")
    page.get_by_role("button", name="Take the flag back").click()
    until(page, lambda: flags.open_flags(app.store) == [])


def test_labelling_is_blind(app: Any, visit: Any) -> None:
    """Ann and Bea have judged this trace, and a detector has scored it; Flora sees none of it."""
    page = visit("/label?sample=labelling&user=flora")
    showing(page, "one")
    seen = page.locator(".stMain").inner_text() + page.locator("article.card").inner_text()
    for hidden in (
        "0.98",
        "token_overlap",
        "Token overlap",
        "secret-model-7",
        "for-sure",
        "ann",
        "bea",
        "you said",
        "Gold",
    ):
        assert hidden not in seen


def test_cited_sources_come_first_and_marks_survive_wide_characters(app: Any, visit: Any) -> None:
    page = visit("/label?sample=labelling&user=gina")
    showing(page, "one")
    assert page.locator("article.card .cite").all_inner_texts() == ["[1]", "[2]"]
    assert page.locator("article.card .source .number").all_inner_texts() == ["[1]", "[2]", "[3]"]
    page.locator("article.card .cite").last.click()
    assert page.locator("article.card .source.pointed .number").all_inner_texts() == ["[2]"]
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
    before = bar.bounding_box()
    page.keyboard.press("a")
    page.locator("article.card[data-trace=long]").wait_for()
    assert bar.bounding_box() == before
    assert before["y"] + before["height"] < 720
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_split_and_the_size_of_the_texts_last(app: Any, visit: Any) -> None:
    app.fill([Trace(f"split-{n}", f"Answer {n}.", question="Why?") for n in range(2)], sample="split")
    page = visit("/label?sample=split")
    page.locator("article.card[data-trace=split-0]").wait_for()

    def share() -> float:
        pane = "(node => node.offsetWidth / node.parentElement.offsetWidth)(document.querySelector('.answer-pane'))"
        return float(page.evaluate(pane))

    def size() -> str:
        return str(page.locator(".answer-pane").evaluate("node => getComputedStyle(node).fontSize"))

    until(page, lambda: (round(share(), 2), size()) == (0.5, "16px"))
    box = page.locator(".answer-pane").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 205, box["y"] + box["height"] - 5, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="A+").click()
    drawn = "document.querySelector('.answer-pane').style.width"  # The browser's own, until the page takes it over.
    until(page, lambda: not page.evaluate(drawn) and 0.25 < share() < 0.45)
    narrower = share()
    page.keyboard.press("a")
    page.locator("article.card[data-trace=split-1]").wait_for()
    until(page, lambda: (share(), size()) == (narrower, "18px"))
    page.reload()
    page.locator("article.card[data-trace=split-1]").wait_for()
    until(page, lambda: (share(), size()) == (narrower, "18px"))


def test_fast_presses_on_a_slow_network_all_count_in_order(app: Any, visit: Any) -> None:
    app.fill([Trace(id=f"fast-{n}", answer=f"Answer {n}.") for n in range(44)], sample="fast")
    page = visit("/label?sample=fast&user=ida")
    page.locator("article.card[data-trace=fast-0]").wait_for()
    page.wait_for_timeout(500)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 200, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    for place in range(40):
        page.keyboard.press("axu"[place % 3])
        page.wait_for_timeout(60)
    page.locator("article.card[data-trace=fast-40]").wait_for()
    saved(page)
    verdicts = [[label.verdict for label in app.labels(f"fast-{n}", "ida")] for n in range(41)]
    assert verdicts == [[("clean", "hallucinated", "unsure")[n % 3]] for n in range(40)] + [[]]
    sample = app.store.samples.get("fast")
    given = app.store.answers.labelled_by(sample.id, "ida", limit=99)
    assert given == [app.store.traces.find(f"fast-{n}") for n in range(40)]


def test_presses_outlive_a_lost_server_and_a_reload(app: Any, visit: Any) -> None:
    app.fill([Trace(id=f"lost-{n}", answer=f"Answer {n}.") for n in range(6)], sample="lost")
    page = visit("/label?sample=lost&user=jo")
    page.locator("article.card[data-trace=lost-0]").wait_for()
    page.route("**/labelling/a*", lambda route: route.abort())
    page.keyboard.press("a")
    page.keyboard.press("x")
    page.locator("article.card[data-trace=lost-2]").wait_for()
    page.get_by_text("2 waiting to send").wait_for()
    page.get_by_text("The server does not answer").wait_for()
    page.get_by_placeholder("Note (optional)").fill("half a note")
    page.wait_for_timeout(200)
    assert [app.labels(f"lost-{n}", "jo") for n in range(2)] == [[], []]
    page.unroute_all()
    page.reload()
    page.locator("article.card[data-trace=lost-2]").wait_for()
    saved(page)
    assert [[label.verdict for label in app.labels(f"lost-{n}", "jo")] for n in range(3)] == [
        ["clean"], ["hallucinated"], [],
    ]  # fmt: skip
    page.wait_for_function("document.querySelector('.touchstone-surface .note').value === 'half a note'")


def test_spans_by_sentence_and_by_drag_are_pythons(app: Any, visit: Any) -> None:
    answer = "One 👩‍👩‍👧 e\u0301 here. שלום עולם כאן. <img src=x onerror=alert(1)> ends."
    app.fill([Trace(id="span", answer=answer), Trace(id="next", answer="Next.")], sample="spans")
    page = visit("/label?sample=spans&user=kim")
    page.locator("article.card[data-trace=span]").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("1")
    page.locator("article.card .span").first.wait_for()
    page.keyboard.press("Escape")
    page.evaluate("""() => {
      const parts = [...document.querySelectorAll('article.card .answer [data-start]')]
      const part = parts.find((one) => one.textContent.includes('<img'))
      const at = part.firstChild.data.indexOf('<img')
      getSelection().setBaseAndExtent(part.firstChild, at, part.firstChild, part.firstChild.data.indexOf(' ends'))
      part.dispatchEvent(new PointerEvent('pointerup', { bubbles: true }))
    }""")
    page.locator("article.card .span").nth(1).wait_for()
    page.locator(".verdict.hallucinated[aria-pressed=true]").wait_for()
    page.keyboard.press("x")
    page.locator("article.card[data-trace=next]").wait_for()
    saved(page)
    (label,) = app.labels("span", "kim")
    assert [(answer[span.start : span.end], span.kind) for span in label.spans] == [
        ("שלום עולם כאן.", "fabrication"), ("<img src=x onerror=alert(1)>", None),
    ]  # fmt: skip


def test_two_tabs_conflict_and_undo_takes_back(app: Any, visit: Any) -> None:
    app.fill([Trace(id=f"tab-{n}", answer=f"Answer {n}.") for n in range(3)], sample="tabs")
    page = visit("/label?sample=tabs&user=lea")
    page.locator("article.card[data-trace=tab-0]").wait_for()
    stale = page.context.new_page()
    stale.goto(page.url)
    stale.locator("article.card[data-trace=tab-0]").wait_for()
    page.keyboard.press("a")
    page.locator("article.card[data-trace=tab-1]").wait_for()
    saved(page)
    stale.keyboard.press("x")
    stale.get_by_text("it stands as clean, and here you said hallucinated").wait_for()
    assert [label.verdict for label in app.labels("tab-0", "lea")] == ["clean"]
    stale.get_by_role("button", name="Make it hallucinated").click()
    saved(stale)
    assert [label.verdict for label in app.labels("tab-0", "lea")] == ["clean", "hallucinated"]
    page.route("**/labelling/a*", lambda route: route.abort())
    page.keyboard.press("u")
    page.keyboard.press("u")
    page.get_by_text("2 waiting to send").wait_for()
    page.keyboard.press("z")
    page.locator("article.card[data-trace=tab-2]").wait_for()


def test_a_trace_that_comes_again_looks_like_a_new_one(app: Any, visit: Any) -> None:
    """No number, no count and no step back tells it from the others."""
    sample = app.fill([Trace(id=f"again-{n}", answer=f"Answer {n}.") for n in range(50)], sample="again")
    keys = [key for key, _ in app.store.samples.keys(sample.id)]
    who = next(name for name in (f"nora{n}" for n in range(10_000)) if _again(name, keys[:30]) == [keys[0]])
    page = visit(f"/label?sample=again&user={who}")
    seen: list[str] = []
    for place in range(50):
        page.wait_for_function(
            "count => document.querySelector('.touchstone-surface .count')?.textContent === count", arg=f"{place} / 50"
        )
        page.locator("article.card").wait_for()
        seen.append(page.locator("article.card").get_attribute("data-trace"))
        assert page.locator(".touchstone-surface [aria-live]").inner_text() == f"Trace {place + 1} of 50"
        if place and seen[-1] == "again-0":
            break
        page.keyboard.press("a")
        saved(page)
    assert 21 <= place < 50, "it never came again"
    page.keyboard.press("Backspace")
    page.locator(f"article.card[data-trace={seen[-2]}]").wait_for()
    page.keyboard.press("Space")
    page.locator("article.card[data-trace=again-0]").wait_for()
    page.keyboard.press("x")
    page.locator("article.card[data-trace=again-0]").wait_for(state="detached")
    saved(page)
    assert [label.verdict for label in app.labels("again-0", who)] == ["clean"], "the second verdict is kept apart"
    (repeat,) = app.store.repeats.answered(sample.id)
    assert (repeat.labeller, repeat.before, repeat.again) == (who, "clean", "hallucinated")


def _again(who: str, keys: list[int]) -> list[int]:
    """The traces of these that come to this labeller again, by the hash that decides it."""
    digests = {key: hashlib.blake2b(f"again:{who}:{key}".encode(), digest_size=8).digest() for key in keys}
    return [key for key, digest in digests.items() if int.from_bytes(digest) < repeats.SHARE * 2**64]


def test_the_end_says_what_the_session_did(app: Any, visit: Any) -> None:
    """How many, how fast, and how the share hallucinated is known before and after."""
    app.fill([Trace(id=f"report-{n}", answer=f"Answer {n}.") for n in range(20)], sample="report")

    def label(first: int, last: int, page: Any) -> None:
        for n in range(first, last):
            page.locator(f"article.card[data-trace=report-{n}]").wait_for()
            page.keyboard.press("x" if n % 4 == 0 else "a")
        saved(page)

    page = visit("/label?sample=report&user=mia")
    label(0, 8, page)
    page.context.close()
    page = visit("/label?sample=report&user=mia")
    label(8, 20, page)
    page.get_by_text("All 20 are labelled").wait_for()
    page.get_by_text(re.compile(r"^You gave 12 answers in this session, \d+ s each\.$")).wait_for()
    page.locator(".touchstone-surface .learned").wait_for()
    words = page.locator(".touchstone-surface .learned").inner_text()
    now, before = re.findall(r"25% \((\d+)–(\d+)%\)", words)
    assert words == (
        f"Hallucinated in the traffic: 25% ({now[0]}–{now[1]}%). "
        f"Before this session it was 25% ({before[0]}–{before[1]}%)."
    )
    assert int(before[0]) < int(now[0]) <= 25 <= int(now[1]) < int(before[1])


def showing(page: Any, name: str) -> None:
    page.locator(f"article.card[data-trace=label-{name}]:visible").wait_for()


def saved(page: Any) -> None:
    """Waits until the server has every answer."""
    page.locator(".touchstone-surface .state[data-waiting='0']").wait_for()
    page.get_by_text("● saved").wait_for()
