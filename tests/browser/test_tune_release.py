"""Choosing a threshold and releasing it, as an engineer does: by policy, by slider, by a click, and once only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibrate.runtime import decide, load
from calibrate.stats.choosing import policy
from calibrate.types import Member, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import operating_points
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, save

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server of its own: points and releases belong to a whole store."""
    folder = tmp_path_factory.mktemp("tuning")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    labels, scores = draw(120)
    fill(store, labels, scores)
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    # Citation validity knows nothing: no threshold of it is any good.
    give_scores(store, traces, [float(place % 2) for place in range(120)], name=ABOVE)
    clean = [place for place, bad in enumerate(labels) if not bad][:8]
    members = [Member(store.traces.find(f"t{place}") or 0, 8 / 120, "all") for place in clean]
    store.samples.add(
        "only clean", design="random", by=None, seed=1, pool=120, undated=0, where=TraceFilter(),
        strata={"all": (120, 8)}, members=members, now=NOW,
    )  # fmt: skip
    server, address = serve(store.url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture
def page(own: App, browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(LONG)
    outside: list[str] = []
    hosts = (own.url, own.url.replace("http", "ws", 1), "data:", "blob:")
    context.on("request", lambda request: request.url.startswith(hosts) or outside.append(request.url))
    opened = context.new_page()
    opened.goto(own.url)
    opened.get_by_role("link", name="This week").wait_for()
    yield opened
    context.close()
    assert outside == []


def tuning(page: Any, own: App, detector: str, labels: str = "All labelled traces") -> None:
    page.goto(f"{own.url}/tune?detector={detector}&sample={labels}")
    page.get_by_role("heading", name="Tune").wait_for()
    settled(page)


def still(page: Any, target: Any) -> dict[str, float]:
    """Where the target is, once it no longer moves."""
    seen: list[Any] = [None]

    def stands() -> bool:
        seen.append(target.bounding_box())
        return seen[-1] is not None and seen[-1] == seen[-2]

    until(page, stands)
    return dict(seen[-1])


def counts(page: Any) -> tuple[int, ...]:
    return tuple(int(cell.replace(",", "")) for cell in page.locator(".ts-matrix td").all_inner_texts())


def threshold(page: Any) -> float:
    return float(page.get_by_role("spinbutton", name="Threshold").input_value())


def measured(own: App, at: float) -> tuple[int, ...]:
    found = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("manual", at))
    return found.true_positives, found.false_positives, found.false_negatives, found.true_negatives


def test_the_policy_chooses_and_the_page_counts_what_the_statistics_count(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    page.locator(".ts-matrix").wait_for()
    chosen = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("precision", 0.7))
    until(page, lambda: counts(page) == measured(own, chosen.threshold))
    until(page, lambda: page.get_by_text("not certified").count() == 1)
    page.get_by_role("radio", name="Elbow").or_(page.get_by_role("button", name="Elbow")).first.click()
    elbow = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("elbow"))
    until(page, lambda: counts(page) == measured(own, elbow.threshold))
    until(page, lambda: "policy=elbow" in page.url)
    page.reload()  # what was chosen is in the address
    page.locator(".ts-matrix").wait_for()
    until(page, lambda: counts(page) == measured(own, elbow.threshold))


def test_an_emptied_field_leaves_the_threshold_where_it_is(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    page.locator(".ts-matrix").wait_for()
    before = threshold(page)
    for field in (page.get_by_role("spinbutton", name="Threshold"), page.get_by_role("spinbutton", name="Target, %")):
        field.fill("")
        page.keyboard.press("Tab")
        settled(page)
        assert counts(page) == measured(own, before)
        assert "precision%3E%3D0.01" not in page.url


def test_a_click_on_a_bar_and_an_arrow_key_move_the_threshold(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    bars = page.locator(".js-plotly-plot").nth(1).locator(".bars .point path")
    place = still(page, bars.nth(25))
    page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] - 2)
    page.get_by_role("spinbutton", name="Threshold").wait_for()
    edges = loading.load_evidence(own.store, DETECTOR).histogram.edges[1:]
    until(page, lambda: min(abs(edges - threshold(page))) < 1e-4)
    clicked = threshold(page)
    nearest = float(min(edges, key=lambda edge: abs(edge - clicked)))
    until(page, lambda: counts(page) == measured(own, nearest))
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    until(page, lambda: threshold(page) > clicked)


def test_a_threshold_set_by_hand_outlives_a_reload(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    chosen = threshold(page)
    by_hand = float(sorted(loading.load_evidence(own.store, DETECTOR).sweep.thresholds)[7])
    field = page.get_by_role("spinbutton", name="Threshold")
    field.fill(repr(by_hand))
    page.keyboard.press("Tab")
    until(page, lambda: f"threshold={by_hand!r}" in page.url)
    page.reload()
    page.locator(".ts-matrix").wait_for()
    until(page, lambda: counts(page) == measured(own, by_hand))
    page.get_by_role("radio", name="By hand", checked=True).wait_for()
    page.get_by_role("radio", name="Precision at least").click()
    until(page, lambda: "threshold=" not in page.url)
    until(page, lambda: threshold(page) == chosen)


@pytest.mark.parametrize("text", ["nan", "99999"])
def test_a_threshold_in_the_address_that_is_none_is_passed_over(own: App, page: Any, text: str) -> None:
    page.goto(f"{own.url}/tune?detector={DETECTOR}&sample=All labelled traces&threshold={text}")
    page.get_by_text("shown is what the policy chooses").wait_for()
    settled(page)
    chosen = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("precision", 0.7))
    until(page, lambda: counts(page) == measured(own, chosen.threshold))
    assert "threshold=" not in page.url


def test_the_traces_on_either_side_are_read_in_place(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    point = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("precision", 0.7))
    near = loading.load_evidence(own.store, DETECTOR).nearby(point.threshold)
    for row in (*near.flagged, *near.passed):
        page.locator(f'article.card[data-trace="{row.trace_id}"]').wait_for()
    wrong = sum(row.gold == "clean" for row in near.flagged) + sum(row.gold == "hallucinated" for row in near.passed)
    until(page, lambda: page.get_by_text("gold says").count() == wrong)


def test_a_policy_that_nothing_meets_is_never_passed_over(own: App, page: Any) -> None:
    tuning(page, own, ABOVE)
    page.get_by_text("No threshold reaches a precision of 70%").wait_for()
    page.get_by_text("Do not release this").wait_for()
    assert page.get_by_role("button", name="Save as operating point").count() == 0
    page.get_by_role("button", name="Take the nearest by hand").click()
    page.get_by_text("below the 70% last asked for").wait_for()  # by hand it is no better
    settled(page)
    assert page.get_by_role("button", name="Save as operating point").count() == 0
    page.get_by_role("button", name="Save anyway").wait_for()


def test_what_is_known_to_be_wrong_is_saved_only_for_a_reason(own: App, page: Any) -> None:
    """Three flagged labels, all of them hallucinated: an interval from 30 to 100%."""
    scores = sorted(float(score) for score in loading.load_evidence(own.store, DETECTOR).scores if score == score)
    page.goto(f"{own.url}/tune?detector={DETECTOR}&sample=All labelled traces&threshold={scores[2]!r}")
    page.get_by_text("Do not release this").wait_for()
    settled(page)
    assert page.get_by_role("button", name="Save as operating point").count() == 0
    page.get_by_role("button", name="Save anyway").click()
    page.get_by_text("say in the field beside the button why").wait_for()
    assert DETECTOR not in own.store.points.latest()
    page.get_by_label("Reason to save it all the same").fill("a pilot of one week")
    page.get_by_role("button", name="Save anyway").click()
    page.get_by_text(f"Saved: {DETECTOR} flags at").wait_for()
    saved = own.store.points.latest()[DETECTOR]
    assert (saved.data.reason, saved.data.state and saved.data.state.why) == ("a pilot of one week", "few flagged")
    page.get_by_role("link", name="Release it").click()
    page.get_by_text("a pilot of one week").wait_for()


def test_one_class_says_what_is_missing_and_where_to_get_it(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR, "only clean")
    page.get_by_text("All 8 labels are clean").wait_for()
    page.get_by_role("link", name="Label traces").wait_for()


def test_save_and_release_once_and_the_file_decides_as_the_page_said(own: App, page: Any, tmp_path: Path) -> None:
    save(own.store, "precision>=0.99", name=ABOVE)  # infeasible
    tuning(page, own, DETECTOR)
    page.locator(".ts-matrix").wait_for()
    settled(page)
    shown = counts(page)
    page.get_by_role("button", name="Save as operating point").click()
    page.get_by_text(f"Saved: {DETECTOR} flags at").wait_for()
    page.get_by_role("link", name="Release it").click()
    page.get_by_role("heading", name="Release").wait_for()
    page.get_by_text("cannot be released").wait_for()
    assert page.get_by_role("checkbox", name=ABOVE).is_disabled()
    page.get_by_label("Note").fill("first <b>note</b> ![](http://evil.example/x.png)")
    out = tmp_path / "live.json"
    page.get_by_label("Also write to a file").fill(str(out))
    page.keyboard.press("Tab")
    settled(page)
    page.get_by_role("button", name="Release v1 with 1 detector").dblclick()
    page.get_by_text("v1 is released").wait_for()
    settled(page)
    (version,) = own.store.releases.list()
    assert out.read_text() == version.document
    with page.expect_download() as download:
        page.get_by_role("button", name="Download v1").last.click()
    download.value.save_as(tmp_path / "downloaded.json")
    assert (tmp_path / "downloaded.json").read_bytes() == out.read_bytes()
    thresholds = load(out)
    rows = loading.load_evidence(own.store, DETECTOR).rows
    flagged = [row for row in rows if decide(thresholds, {DETECTOR: row.value}).flags]
    hits = sum(row.gold == "hallucinated" for row in flagged)
    assert (hits, len(flagged) - hits) == shown[:2]
    page.reload()
    page.get_by_text("Nothing changes against v1").wait_for()
    until(page, page.get_by_role("button", name=re.compile("Release v2")).is_disabled)
    until(page, lambda: page.get_by_text("first <b>note</b>").count() == 1)
    assert len(own.store.releases.list()) == 1
