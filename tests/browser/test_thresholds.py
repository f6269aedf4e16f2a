"""The one screen of the Thresholds page: its chart, the curves laid over, its addresses, screens of every width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from calibrate.report.sentences.tuning.threshold_figures import figures_at
from calibrate.stats.choosing import policy
from calibrate.types import Label
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import operating_points
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.browser.tune import open_details, threshold, type_threshold
from tests.workflow.making import DETECTOR, NOW, draw, fill, give_scores

pytestmark = pytest.mark.browser
OTHER, THIRD, SILENT = "rouge_l", "bleu", "token_logprob"
TITLES = {DETECTOR: "Token overlap", OTHER: "ROUGE-L", THIRD: "BLEU precision"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """120 labelled traces, three detectors with scores, and one that could score none of them."""
    folder = tmp_path_factory.mktemp("thresholds")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    labels, scores = draw(120)
    fill(store, labels, scores)
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    for place, name in enumerate((OTHER, THIRD)):
        give_scores(store, traces, draw(120, seed=8 + place)[1], name=name)
    give_scores(store, traces, [None] * 120, name=SILENT)
    bad = next(place for place, one in enumerate(labels) if one)
    kinds = Label("", "gold", "hallucinated", kinds=("fabrication",))
    store.labels.add(store.traces.find(f"t{bad}") or 0, kinds, sample_id=None, now=NOW)
    server, address = serve(store.url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture
def page(own: App, browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(LONG)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=own.url)
    opened = context.new_page()
    opened.goto(own.url)
    opened.get_by_role("link", name="This week").wait_for()
    yield opened
    context.close()


def opened(page: Any, own: App, more: str = "") -> None:
    page.goto(f"{own.url}/tune?detector={DETECTOR}&sample=All labelled traces{more}")
    page.locator(".plot svg").wait_for()
    page.locator(".verdict p").wait_for()
    settled(page)


def figures(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".figures dd:not(.note)").all_inner_texts()]


def where(page: Any) -> dict[str, list[str]]:
    """What the address says."""
    return parse_qs(urlsplit(page.url).query)


def test_one_screen_without_scrolling(own: App, page: Any) -> None:
    opened(page, own)
    heights = (
        "[document.documentElement, document.querySelector('[data-testid=stMain]')].map((one) => one.scrollHeight)"
    )
    assert max(page.evaluate(heights)) <= 900
    page.get_by_text("Details", exact=True).wait_for()


def test_a_drag_moves_figures_and_verdict_while_the_server_is_away(own: App, page: Any) -> None:
    opened(page, own)
    page.context.set_offline(True)
    page.route_web_socket("**/*", lambda route: None)
    data = loading.load_evidence(own.store, DETECTOR)
    box = page.locator(".plot").bounding_box()
    said = set()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    page.mouse.down()
    for part in (0.35, 0.5, 0.65, 0.8):
        page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)
        point = operating_points.choose_point(data, policy.Policy("manual", threshold(page)))
        assert figures(page)[:3] == [figure.large for figure in figures_at(point, None)[:3]]
        said.add(page.locator(".verdict").inner_text())
    page.mouse.up()
    assert len(said) > 1
    page.context.set_offline(False)


def test_the_pointer_shows_figures_and_leaves_the_handle(own: App, page: Any) -> None:
    opened(page, own)
    before, shown = threshold(page), figures(page)
    box = page.locator(".plot").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    tip = page.locator(".tip")
    tip.wait_for()
    data = loading.load_evidence(own.store, DETECTOR)
    words = tip.locator("span").all_inner_texts()
    text = words[0].split()[-1]
    near = min(data.sweep.thresholds, key=lambda one: abs(float(one) - float(text)))
    point = operating_points.choose_point(data, policy.Policy("manual", float(near)))
    for word, figure in zip(words[1:4], figures_at(point, None)[:3], strict=True):
        assert word.endswith(f" {figure.large}")
    assert (threshold(page), figures(page)) == (before, shown)
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")


def test_a_copied_link_opens_the_same_state(own: App, page: Any) -> None:
    opened(page, own, f"&overlay={OTHER}")
    scores = sorted(loading.load_evidence(own.store, DETECTOR).sweep.thresholds.tolist())
    page.get_by_role("radio", name="Recall at least").click()
    until(page, lambda: where(page).get("policy", [""])[0].startswith("recall"))
    settled(page)
    type_threshold(page, scores[40])
    until(page, lambda: "threshold" in where(page))
    settled(page)
    page.locator(".share summary").click()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Link copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    said = parse_qs(urlsplit(link).query)
    assert said["detector"] == [DETECTOR]
    assert (float(said["threshold"][0]), said["overlay"]) == (scores[40], [OTHER])
    shown = figures(page)
    other = page.context.new_page()
    other.goto(link)
    other.locator(".verdict p").wait_for()
    settled(other)
    assert (threshold(other), figures(other)) == (scores[40], shown)
    assert other.locator(".beside p").count() == 2
    other.get_by_role("radio", name="By hand", checked=True).wait_for()


def test_two_are_laid_over_and_combined(own: App, page: Any) -> None:
    opened(page, own)
    lines = page.locator(".plot path[stroke-width='1.75']")
    assert lines.count() == 0
    for name, count in ((OTHER, 2), (THIRD, 4)):
        page.get_by_role("checkbox", name=f"Overlay {TITLES[name]}").click()
        until(page, lambda count=count: lines.count() == count)
        settled(page)
    assert where(page)["overlay"] == [f"{OTHER},{THIRD}"]
    rows = page.locator(".beside p").all_inner_texts()
    assert [any(TITLES[name] in row for row in rows) for name in (OTHER, THIRD)] == [True, True]
    # At the loosest threshold all three flag what they can; before it none of them flags more than the one at hand.
    data, other = (loading.load_evidence(own.store, name) for name in (DETECTOR, OTHER))
    here = data.sweep.at(threshold(page))
    rate = data.sweep.flag_rate[here]
    there = max(place for place, one in enumerate(other.sweep.flag_rate) if one <= rate + 1e-9)
    assert (
        f"{100 * other.sweep.recall[there]:.0f}%" in next(row for row in rows if TITLES[OTHER] in row).split("Finds")[1]
    )
    page.get_by_role("link", name="Combine these 3").click()
    page.get_by_role("heading", name="Combine").wait_for()
    settled(page)
    assert sorted(where(page)["names"][0].split(",")) == sorted([DETECTOR, OTHER, THIRD])
    page.get_by_text("together they find").first.wait_for()


@pytest.mark.parametrize(("old", "tab", "shows"), [
    ("compare", "Side by side", "labels that both scored"), ("scoreboard", "Scoreboard", "leads with an AUROC of"),
])  # fmt: skip
def test_an_old_address_opens_what_it_showed(own: App, page: Any, old: str, tab: str, shows: str) -> None:
    page.goto(f"{own.url}/{old}?sample=All labelled traces&detector={OTHER}")
    page.get_by_role("tab", name=tab, selected=True).wait_for()
    page.get_by_text(shows).first.wait_for()
    assert urlsplit(page.url).path == "/tune"
    assert (where(page)["sample"], where(page)["detector"]) == (["All labelled traces"], [OTHER])
    page.reload()
    page.get_by_role("tab", name=tab, selected=True).wait_for()


def test_what_it_finds_of_each_kind_follows_the_threshold(own: App, page: Any) -> None:
    opened(page, own)
    open_details(page, "By kind")
    page.get_by_text("finds, by kind: fabrication").wait_for()
    scores = sorted(loading.load_evidence(own.store, DETECTOR).sweep.thresholds.tolist())
    # The loosest threshold flags every hallucinated answer, the strictest not the one with a kind.
    for at, finds in ((scores[0], "fabrication 0% (0 of 1"), (scores[-1], "fabrication 100% (1 of 1")):
        type_threshold(page, at)
        until(page, lambda at=at: where(page).get("threshold") == [repr(at)])
        page.get_by_text(f"finds, by kind: {finds}").wait_for()
    assert where(page)["details"] == ["kinds"]


def test_false_alarms_are_counted_at_the_threshold(own: App, page: Any) -> None:
    opened(page, own)
    open_details(page, "False alarms")
    page.get_by_text("of clean traces flagged at this threshold").wait_for()
    settled(page)
    data = loading.load_evidence(own.store, DETECTOR)
    clean = [row.value for row in data.rows if row.gold == "clean"]
    scores = sorted(data.sweep.thresholds.tolist())
    for at in (scores[0], scores[-1]):
        type_threshold(page, at)
        until(page, lambda at=at: where(page).get("threshold") == [repr(at)])
        settled(page)
        flagged = sum(value is not None and value <= at for value in clean)
        page.get_by_text(
            re.compile(rf"clean traces flagged at this threshold .* {flagged} of {len(clean)} clean$")
        ).wait_for()
    assert where(page)["details"] == ["alarms"]


def test_what_scored_nothing_is_folded_with_its_reason(own: App, page: Any) -> None:
    opened(page, own)
    fold = page.get_by_text("1 could score nothing")
    fold.click()
    page.locator(".rail .why", has_text="no context").wait_for()
    page.get_by_text(re.compile(r"Baseline: (answer length|answering model) 0\.")).wait_for()


def test_on_a_phone_the_rail_is_one_selector(own: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    context.set_default_timeout(LONG)
    page = context.new_page()
    page.goto(own.url)
    page.get_by_role("link", name="This week").first.wait_for()
    opened(page, own)
    fold = page.locator(".rail .fold")
    fold.wait_for()
    assert page.get_by_role("button", name=TITLES[OTHER]).count() == 0
    assert fold.bounding_box()["y"] < page.locator(".plot").bounding_box()["y"]
    fold.click()
    page.get_by_role("button", name=TITLES[OTHER]).click()
    until(page, lambda: where(page)["detector"] == [OTHER])
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    small = page.evaluate(
        "[...document.querySelectorAll('.st-key-tune-screen *')].flatMap((one) => [...(one.shadowRoot"
        "?.querySelectorAll('button, summary, input:not([type=checkbox])') ?? [])])"
        ".filter((one) => one.offsetParent && one.getBoundingClientRect().height < 44).map((one) => one.outerHTML)"
    )
    assert small == []
    context.close()
