"""The Detectors page as a team uses it: read, run, reword a prompt, keep a limit, compare two settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate import registry
from calibrate.backends import files
from calibrate.types import Label, Score, Source, Trace
from calibrate.workflow.detection import detect
from db import open_store
from tests.backends.chat_stub import Asked, Say, stubbed
from tests.browser.conftest import LONG, App, serve, settled, turn_to

pytestmark = pytest.mark.browser

SAMPLE = "w47"
JUDGE = "judge_yes_no"


def says_no(asked: Asked) -> Say:
    """A judge that says NO to everything; 100 tokens in, 10 out."""
    message = {"role": "assistant", "content": "NO. <img src=x onerror=alert(1)> It is not in the context."}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Say(body=json.dumps({"id": "1", "model": "gpt-4o-mini", "choices": choices, "usage": usage}).encode())


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server of its own with a chat endpoint that costs what gpt-4o-mini does."""
    folder = tmp_path_factory.mktemp("detectors")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    with stubbed(says_no) as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOUCHSTONE_CHAT_URL", stub.url)
        patch.setenv("TOUCHSTONE_CHAT_MODEL", "gpt-4o-mini")
        patch.setenv("TOUCHSTONE_CHAT_KEY", "not a key")
        server, address = serve(store.url, folder / "server.log")
        app = App(address, store)
        app.fill(traces(), sample=SAMPLE)
        for place, trace in enumerate(traces()):
            verdict = "hallucinated" if place % 3 == 0 else "clean"
            key = store.traces.find(trace.id) or 0
            label = Label("", "gold", verdict)  # type: ignore[arg-type]
            store.labels.add(key, label, sample_id=None, now=datetime.now(UTC))
        yield app
        server.terminate()
        server.wait(timeout=20)
    store.close()


def traces() -> list[Trace]:
    """Answers of which every third says more than its source; the last one declines."""
    made = [
        Trace(
            f"t{n}",
            question=f"When does parcel {n} leave?",
            answer=f"Parcel {n} leaves at {n} o'clock" + (", on golden wings." if n % 3 == 0 else "."),
            sources=(Source("1", f"Parcel {n} leaves the house at {n} o'clock."),),
        )
        for n in range(24)
    ]
    return [*made, Trace("declined", answer="I cannot answer that question.", sources=(Source("1", "Text."),))]


@pytest.fixture
def page(own: App, browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    context.set_default_timeout(LONG)
    outside: list[str] = []
    hosts = (own.url, own.url.replace("http", "ws", 1), "data:", "blob:")
    context.on("request", lambda request: outside.extend([request.url] * (not request.url.startswith(hosts))))
    opened = context.new_page()
    opened.goto(own.url)
    opened.get_by_role("link", name="This week").wait_for()
    yield opened
    context.close()
    assert outside == []


def at(page: Any, own: App, name: str) -> None:
    page.goto(f"{own.url}/detectors?detector={name}&sample={SAMPLE}")
    page.get_by_role("heading", name=registry.get(name).title, exact=True).wait_for()
    settled(page)


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def write(page: Any, field: Any, text: str) -> None:
    field.fill(text)
    field.blur()
    settled(page)


def test_a_row_of_the_table_leads_to_the_page_of_its_detector(own: App, page: Any) -> None:
    """The sheet in the table has its settings; its page the prompt, the lists and two settings compared."""
    page.goto(f"{own.url}/detect")
    page.get_by_role("button", name="Settings of BLEU precision").click()
    sheet = page.get_by_role("dialog")
    sheet.get_by_text("Not run yet", exact=True).wait_for()
    settled(page)
    sheet.get_by_role("link", name="Its page").click()
    page.get_by_role("heading", name="BLEU precision", exact=True).wait_for()
    settled(page)
    assert "detector=bleu" in page.url
    assert page.locator("[data-testid=stBaseButton-primary]").count() == 1
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.get_by_role("link", name="All detectors").click()
    page.get_by_text("Needs setup", exact=False).or_(page.get_by_text("Your traces lack")).first.wait_for()


def test_a_run_scores_what_is_missing_and_leaves_its_speed(own: App, page: Any) -> None:
    at(page, own, "token_overlap")
    page.get_by_text("How long it takes is known after the first run.").wait_for()
    press(page, "Run over 25 traces")
    page.get_by_text("24 of 25 traces scored, nothing left to do").wait_for()
    page.get_by_text("24 of 25 scored").wait_for()
    page.get_by_text("Not scored: a refusal (1)").wait_for()
    assert page.locator("[data-testid=stBaseButton-primary]").count() == 0
    (run,) = [one for one in own.store.runs.recent() if "token_overlap" in one.counts]
    assert (run.scope, run.options, run.counts["token_overlap"]["scored"]) == ({"sample": SAMPLE}, None, 24)


def test_two_settings_are_compared_on_the_same_labels(own: App, page: Any) -> None:
    for params in ({}, {"variant": "plain"}):
        detect.work(own.store, run_id=detect.queue(own.store, ["rouge_l"], {"sample": SAMPLE}, params=params).id)
    at(page, own, "rouge_l")
    page.get_by_text("with variant plain").wait_for()
    page.get_by_text("Compare two settings").click()
    page.get_by_text("24 labels of the sample w47 that both scored, 8 hallucinated.").wait_for()
    page.get_by_text("A: variant default").wait_for()
    page.get_by_text("B: variant plain").wait_for()
    assert page.get_by_text(", 95% ").count() == 2


def test_a_judge_says_its_cost_keeps_a_limit_and_what_it_spent(own: App, page: Any) -> None:
    at(page, own, JUDGE)
    page.get_by_text("24 requests; about").wait_for()
    page.get_by_text("At most $0.0").wait_for()
    limit = page.get_by_role("spinbutton", name="Stop at $")
    limit.fill("2.5")
    limit.press("Enter")
    settled(page)
    press(page, "Run over 25 traces")
    page.get_by_text("24 of 25 traces scored, nothing left to do").wait_for()
    page.get_by_text("24 requests, 2,400 tokens read, 240 written, under $0.01").wait_for()
    (run,) = [one for one in own.store.runs.recent() if JUDGE in one.counts]
    assert run.options == {"budget": 2.5}
    assert run.counts[JUDGE]["usage"]["cost"] == pytest.approx(24 * (100 * 0.15 + 10 * 0.60) / 1e6)

    # On the Detect page the limit is asked for only where something costs, and nothing that costs is ticked unasked.
    turn_to(page, "Detect")
    judge = page.get_by_role("checkbox", name="Judge: claim by claim", exact=True)
    judge.wait_for()
    assert not judge.is_checked()
    assert page.get_by_role("spinbutton", name="Stop at $").count() == 0
    page.get_by_text("Judge: claim by claim", exact=True).click()
    page.get_by_role("spinbutton", name="Stop at $").wait_for()
    page.get_by_role("button", name="at most $").wait_for()
    assert page.get_by_role("checkbox", name="Citation validity", exact=True).is_checked()


def test_a_prompt_is_reworded_refused_and_ours_again(own: App, page: Any) -> None:
    at(page, own, "judge_verdict")
    name = "prompts/judge_verdict.txt"
    ours = files.packaged(name)
    page.get_by_text("Prompt", exact=True).click()
    text = page.get_by_label("Text of prompts")
    assert text.input_value() == ours
    write(page, text, "Is {answer} right?")
    press(page, "Save")
    page.get_by_text("lacks {context}").wait_for()
    assert text.input_value() == "Is {answer} right?"
    assert own.store.files.current() == {}

    write(page, text, f"{ours}\n<script>alert(1)</script> ![x](http://evil.example/p.png)")
    press(page, "Save")
    page.get_by_text("saved by tester").wait_for()
    assert own.store.files.current()[name].startswith(ours)
    settled(page)
    assert text.input_value().endswith("p.png)")
    press(page, "Ours again")
    page.get_by_text("as it comes with Touchstone").first.wait_for()
    assert own.store.files.current() == {}
    assert [one.saved_by for one in own.store.files.history(name)] == ["tester", "tester"]
    settled(page)
    assert text.input_value() == ours


def test_lists_and_prices_are_edited_in_the_same_way(own: App, page: Any) -> None:
    at(page, own, "token_overlap")
    page.get_by_text("Lists and prices", exact=True).click()
    text = page.get_by_label("Text of prices")
    write(page, text, "model,prompt,completion,as_of\ngpt-4o-mini,cheap,1,\n")
    press(page, "Save")
    page.get_by_text("prices.csv, line 2: 'cheap' is no price").wait_for()
    assert own.store.files.history("prices.csv") == []


def test_a_hostile_trace_stays_out_of_the_reasons(own: App, page: Any) -> None:
    """Reasons may quote a trace: they are shown as text."""
    detector = registry.make("bleu")
    evil = Score("evil", None, "<img src=x onerror=alert(1)> ![x](http://evil.example/p.png)", "failed")
    hashes = [one.content_hash() for one in traces()]
    own.store.scores.save(detect.config_id(own.store, detector), [(one, evil) for one in hashes], now=datetime.now(UTC))
    at(page, own, "bleu")
    page.get_by_text("Not scored: <img src=x onerror=alert(1)> ![x](http://evil.example/p.png) (25)").wait_for()
    assert page.locator("img[src*=evil], img[src=x]").count() == 0


def test_a_judge_stands_beside_people_and_its_prompt_is_made_from_labels(own: App, page: Any) -> None:
    """The judge says NO to every answer: people call 16 of 24 clean. The saved prompt needs other scores, and nothing
    shows that it gains: it takes a reason."""
    name = f"prompts/{JUDGE}.txt"
    detect.work(own.store, run_id=detect.queue(own.store, [JUDGE], {"sample": SAMPLE}).id)
    at(page, own, JUDGE)
    page.get_by_text("Judge and people", exact=True).click()
    page.get_by_text("On 16 of 24 labels the judge is on the other side than people.").wait_for()
    assert "view=people" in page.url
    page.goto(page.url)
    page.get_by_text("On 16 of 24 labels the judge is on the other side than people.").wait_for()
    settled(page)
    card = page.locator("[class*=st-key-apart-]").first
    for text in ("When does parcel 1 leave?", "Parcel 1 leaves at 1 o'clock.", "1, leaning to hallucinated", "Clean"):
        card.get_by_text(text, exact=True).first.wait_for()
    card.get_by_text("img src=x onerror=alert(1)> It is not in the context.").first.wait_for()
    assert page.locator("img[src=x]").count() == 0
    assert page.get_by_text("the endpoint gave no usable log-probabilities").count() == 1
    card.get_by_text("The answer beside its 1 source").click()
    card.get_by_text("Parcel 1 leaves the house at 1 o'clock.").wait_for()
    assert "trace=t1" in (card.get_by_role("link", name="t1").get_attribute("href") or "")
    assert page.get_by_role("link", name="Improve the guidelines").count() == 1

    page.get_by_text(f"python -m calibrate align compare {JUDGE} --estimate").wait_for()
    page.get_by_text("out of calibration for good").wait_for()
    page.get_by_text("Save it all the same", exact=True).click()
    press(page, "Save this prompt anyway")
    page.get_by_text("nothing was saved").wait_for()
    settled(page)
    assert own.store.files.history(name) == []
    write(page, page.get_by_label("Reason", exact=True), "we try it for a week")
    press(page, "Save this prompt anyway")
    page.get_by_text("The prompt is saved.").wait_for()
    settled(page)
    page.get_by_text("has none yet").wait_for()
    page.get_by_text("Saved because: we try it for a week").wait_for()
    (saved,) = own.store.prompt_examples.versions(name)
    assert (saved.saved_by, saved.set_aside) == ("tester", len(own.store.prompt_examples.set_aside()))
    assert "Parcel" in own.store.files.current()[name]
    press(page, "Run over 25 traces")
    page.get_by_text("has none yet").wait_for(state="detached")
    page.get_by_text("of 24 labels the judge is on the other side").wait_for()
