"""Choosing a threshold and releasing it, as an engineer does: by policy, by the handle, by a click, and once only."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from calibrate.report.sentences.tuning.threshold_figures import figures_at
from calibrate.runtime import decide, load
from calibrate.stats.choosing import policy
from calibrate.types import Member, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import operating_points
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled, until
from tests.browser.tune import choose_other_policy, counts, threshold, type_threshold
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
    page.goto(f"{own.url}/tune?detector={detector}&sample={labels}&details=words")
    page.get_by_role("heading", name="Tune").wait_for()
    settled(page)


def verdict(page: Any) -> Any:
    """The words of the verdict box."""
    return page.locator(".verdict")


def take(page: Any, what: str) -> None:
    """An entry of the menu Share."""
    page.locator(".share summary").click()
    page.get_by_role("button", name=what, exact=True).click()


def still(page: Any, target: Any) -> dict[str, float]:
    """Where the target is, once it no longer moves."""
    seen: list[Any] = [None]

    def stands() -> bool:
        seen.append(target.bounding_box())
        return seen[-1] is not None and seen[-1] == seen[-2]

    until(page, stands)
    return dict(seen[-1])


def measured(own: App, at: float) -> tuple[int, ...]:
    found = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("manual", at))
    return found.true_positives, found.false_positives, found.false_negatives, found.true_negatives


def test_the_policy_chooses_and_the_page_counts_what_the_statistics_count(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    page.locator(".ts-matrix").wait_for(state="attached")
    chosen = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("precision", 0.7))
    until(page, lambda: counts(page) == measured(own, chosen.threshold))
    until(page, lambda: page.get_by_text("not certified").count() == 1)
    choose_other_policy(page, "Elbow")
    elbow = operating_points.choose_point(loading.load_evidence(own.store, DETECTOR), policy.Policy("elbow"))
    until(page, lambda: counts(page) == measured(own, elbow.threshold))
    until(page, lambda: "policy=elbow" in page.url)
    page.reload()  # what was chosen is in the address
    page.locator(".ts-matrix").wait_for(state="attached")
    until(page, lambda: counts(page) == measured(own, elbow.threshold))


def test_an_emptied_field_leaves_the_threshold_where_it_is(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    page.locator(".ts-matrix").wait_for(state="attached")
    before = threshold(page)
    for field in (page.get_by_role("textbox", name="Threshold"), page.get_by_role("spinbutton", name="Target, %")):
        field.fill("")
        page.keyboard.press("Tab")
        settled(page)
        assert counts(page) == measured(own, before)
        assert "precision%3E%3D0.01" not in page.url


def shown_figures(page: Any) -> list[str]:
    """The large texts of the four figures under the chart."""
    return [str(text) for text in page.locator(".figures dd:not(.note)").all_inner_texts()]


def test_a_click_on_the_chart_takes_the_nearest_label_and_an_arrow_key_the_next(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    scores = sorted(loading.load_evidence(own.store, DETECTOR).sweep.thresholds.tolist())
    place = still(page, page.locator(".plot"))
    page.mouse.click(place["x"] + place["width"] / 3, place["y"] + place["height"] / 2)
    clicked = threshold(page)
    assert clicked in scores
    until(page, lambda: counts(page) == measured(own, clicked))
    page.get_by_role("slider", name="Threshold").focus()
    page.keyboard.press("ArrowRight")
    following = scores[scores.index(clicked) + 1]
    assert threshold(page) == following
    until(page, lambda: counts(page) == measured(own, following))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    earlier = scores[scores.index(clicked) - 1]
    assert threshold(page) == earlier
    until(page, lambda: f"threshold={earlier!r}" in page.url)


def test_figures_move_without_the_server_and_say_what_python_says(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    data = loading.load_evidence(own.store, DETECTOR)
    scores = sorted(data.sweep.thresholds.tolist())
    type_threshold(page, scores[30])
    until(page, lambda: counts(page) == measured(own, scores[30]))
    settled(page)
    page.context.set_offline(True)
    page.route_web_socket("**/*", lambda route: None)
    page.get_by_role("slider", name="Threshold").focus()
    for at in scores[31:36]:
        page.keyboard.press("ArrowRight")
        point = operating_points.choose_point(data, policy.Policy("manual", at))
        assert threshold(page) == at
        assert shown_figures(page)[:3] == [figure.large for figure in figures_at(point, None)[:3]]
    page.context.set_offline(False)


def test_few_flagged_labels_show_the_interval_first(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    data = loading.load_evidence(own.store, DETECTOR)
    strict = sorted(data.sweep.thresholds.tolist(), reverse=data.flag_when == "above")
    type_threshold(page, strict[6])
    until(page, lambda: sum(counts(page)[:2]) < 30)
    assert "–" in shown_figures(page)[0]
    type_threshold(page, strict[-10])
    until(page, lambda: sum(counts(page)[:2]) >= 30)
    assert "–" not in shown_figures(page)[0]


def test_the_handle_says_where_it_stands_and_is_large_enough_to_touch(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    handle = page.get_by_role("slider", name="Threshold")
    assert "Right when it flags" in handle.get_attribute("aria-valuetext")
    box = still(page, handle)
    assert (box["width"], box["height"] >= 44) == (44, True)


def test_the_chart_is_saved_as_an_image_and_as_a_table(own: App, page: Any, tmp_path: Path) -> None:
    tuning(page, own, DETECTOR)
    with page.expect_download() as download:
        take(page, "CSV")
    table = list(csv.DictReader(download.value.path().read_text().splitlines()))
    sweep = loading.load_evidence(own.store, DETECTOR).sweep
    assert [float(row["threshold"]) for row in table] == sweep.thresholds.tolist()
    assert [int(row["true_positives"]) for row in table] == sweep.tp_count.tolist()
    assert [float(row["recall"]) for row in table] == pytest.approx(sweep.recall.tolist(), abs=1e-6)
    with page.expect_download() as download:
        take(page, "PNG")
    download.value.save_as(tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as image:
        assert image.width > 600
        assert len(image.convert("RGB").getcolors(1 << 20) or []) > 20  # bars, curves and letters, not a blank


@pytest.mark.parametrize("width", [390, 768, 1024, 1440, 1920])
def test_the_page_fits_every_screen(own: App, page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    tuning(page, own, DETECTOR)
    page.locator(".plot svg").wait_for()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    box = still(page, page.locator(".plot"))
    assert 0 <= box["x"] <= width - box["width"]


def test_a_threshold_set_by_hand_outlives_a_reload(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR)
    chosen = threshold(page)
    by_hand = float(sorted(loading.load_evidence(own.store, DETECTOR).sweep.thresholds)[7])
    type_threshold(page, by_hand)
    until(page, lambda: f"threshold={by_hand!r}" in page.url)
    settled(page)
    page.reload()
    page.locator(".ts-matrix").wait_for(state="attached")
    until(page, lambda: counts(page) == measured(own, by_hand))
    page.get_by_role("radio", name="By hand", checked=True).wait_for()
    page.get_by_role("radio", name="Precision at least").click()
    until(page, lambda: "threshold=" not in page.url)
    until(page, lambda: threshold(page) == chosen)


@pytest.mark.parametrize("text", ["nan", "99999"])
def test_a_threshold_in_the_address_that_is_none_is_passed_over(own: App, page: Any, text: str) -> None:
    page.goto(f"{own.url}/tune?detector={DETECTOR}&sample=All labelled traces&details=words&threshold={text}")
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
        folded = page.locator("details.item", has=page.locator(f'article.card[data-trace="{row.trace_id}"]'))
        folded.locator("summary").click()
        page.locator(f'article.card[data-trace="{row.trace_id}"]').wait_for()
    wrong = sum(row.gold == "clean" for row in near.flagged) + sum(row.gold == "hallucinated" for row in near.passed)
    until(page, lambda: page.get_by_text("gold says").count() == wrong)


def test_a_policy_that_nothing_meets_is_never_passed_over(own: App, page: Any) -> None:
    tuning(page, own, ABOVE)
    verdict(page).get_by_text("No threshold reaches a precision of 70%").wait_for()
    verdict(page).get_by_text("Do not release this").wait_for()
    assert page.get_by_role("button", name="Save as operating point").count() == 0
    page.get_by_role("button", name="Take the nearest by hand").click()
    verdict(page).get_by_text("below the 70% last asked for").wait_for()  # by hand it is no better
    settled(page)
    assert page.get_by_role("button", name="Save as operating point").count() == 0
    page.get_by_role("button", name="Save anyway…").wait_for()


def test_what_is_known_to_be_wrong_is_saved_only_for_a_reason(own: App, page: Any) -> None:
    """Three flagged labels, all of them hallucinated: an interval from 30 to 100%."""
    scores = sorted(float(score) for score in loading.load_evidence(own.store, DETECTOR).scores if score == score)
    page.goto(f"{own.url}/tune?detector={DETECTOR}&sample=All labelled traces&threshold={scores[2]!r}")
    verdict(page).get_by_text("Do not release this").wait_for()
    settled(page)
    assert page.get_by_role("button", name="Save as operating point").count() == 0
    page.get_by_role("button", name="Save anyway…").click()
    page.get_by_role("button", name="Save anyway", exact=True).click()
    page.get_by_text("say in the field beside the button why").wait_for()
    settled(page)
    assert DETECTOR not in own.store.points.latest()
    if not page.get_by_label("Reason to save it all the same").is_visible():
        page.get_by_role("button", name="Save anyway…").click()
    page.get_by_label("Reason to save it all the same").fill("a pilot of one week")
    page.get_by_role("button", name="Save anyway", exact=True).click()
    page.get_by_text("Saved: Token overlap flags at").wait_for()
    saved = own.store.points.latest()[DETECTOR]
    assert (saved.data.reason, saved.data.state and saved.data.state.why) == ("a pilot of one week", "few flagged")
    settled(page)  # Streamlit drops a click on a link that it is drawing anew
    page.get_by_role("link", name="Release it").click()
    page.get_by_text("Saved because: a pilot of one week").wait_for()
    failed = page.locator(f".st-key-item-failed-evidence-{DETECTOR}")
    assert "Only" not in failed.inner_text()
    assert "takes a reason" in failed.inner_text()


def test_one_class_says_what_is_missing_and_where_to_get_it(own: App, page: Any) -> None:
    tuning(page, own, DETECTOR, "only clean")
    page.get_by_text("All 8 labels are clean").wait_for()
    page.get_by_role("link", name="Label traces").wait_for()


def test_save_and_release_once_and_the_file_decides_as_the_page_said(own: App, page: Any, tmp_path: Path) -> None:
    save(own.store, "precision>=0.99", name=ABOVE)  # infeasible
    tuning(page, own, DETECTOR)
    page.locator(".ts-matrix").wait_for(state="attached")
    settled(page)
    shown = counts(page)
    page.get_by_role("button", name="Save as operating point").click()
    page.get_by_text("Saved: Token overlap flags at").wait_for()
    settled(page)
    page.get_by_role("link", name="Release it").click()
    page.get_by_role("heading", name="Release").wait_for()
    page.get_by_text("cannot be released").wait_for()
    assert page.get_by_role("checkbox", name="Citation validity").is_disabled()
    page.get_by_label("Note").fill("first <b>note</b> ![](http://evil.example/x.png)")
    out = tmp_path / "live.json"
    page.get_by_text("Advanced", exact=True).click()
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
    assert f"load('{out}')" in page.get_by_test_id("stCode").first.inner_text()
    thresholds = load(out)
    rows = loading.load_evidence(own.store, DETECTOR).rows
    flagged = [row for row in rows if decide(thresholds, {DETECTOR: row.value}).flags]
    hits = sum(row.gold == "hallucinated" for row in flagged)
    assert (hits, len(flagged) - hits) == shown[:2]
    page.reload()
    page.get_by_text("Nothing changes against v1").wait_for()
    settled(page)
    assert page.get_by_role("button", name=re.compile("Release v2")).count() == 0
    until(page, lambda: page.get_by_text("first <b>note</b>").count() == 1)
    assert len(own.store.releases.list()) == 1
