"""The week's loop on published traces, by keyboard: from a file of logs to the decision of a runtime."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from calibrate.runtime import decide, load
from calibrate.types import Sample
from calibrate.workflow.evidence import loading
from db import open_store
from tests.browser.conftest import LONG, ROOT, App, serve, settled
from tests.browser.tune import counts, open_details
from tests.shared_data import path, records

pytestmark = [pytest.mark.browser, pytest.mark.shared]

MOST_TABS = 150
DRAWN, BY_HAND, SEED = 60, 20, 47
DETECTORS = {"token_overlap": "Token overlap", "rouge_l": "ROUGE-L", "citation_validity": "Citation validity"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A copy in the only folder that the pages may read."""
    return Path(shutil.copy(path("ragtruth_qa"), tmp_path))


@pytest.fixture
def truth(file: Path) -> dict[str, str]:
    """The published verdict of every trace."""
    return {record["trace_id"]: record["label"] for record in records("ragtruth_qa")}


@pytest.fixture
def fresh(file: Path, tmp_path: Path) -> Iterator[App]:
    """A server of its own, on an empty store."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    store = open_store(url)
    server, address = serve(url, tmp_path / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture
def page(fresh: App, browser: Any) -> Iterator[Any]:
    """A browser that keeps to its own host and has nothing to complain about; both are looked at in the end."""
    own = (fresh.url + "/", fresh.url.replace("http", "ws", 1) + "/", "data:", "blob:")
    asked: list[str] = []
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(LONG)
    context.on("request", lambda request: asked.append(request.url))
    opened = context.new_page()
    opened.on("websocket", lambda socket: asked.append(socket.url))
    opened.on("pageerror", lambda error: errors.append(f"a script failed: {error}"))
    opened.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    opened.goto(fresh.url)
    yield opened
    context.close()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(own)] == []
    assert errors == []


def test_from_logs_to_a_decision(fresh: App, page: Any, file: Path, truth: Mapping[str, str], tmp_path: Path) -> None:
    _import(fresh, page, file, truth)
    sample = _draw(fresh, page)
    by_hand = _label(fresh, page, sample, truth)
    _detect(fresh, page)
    counts = _tune(fresh, page, sample)
    thresholds = _release(fresh, page, tmp_path)
    _decides_as_shown(fresh, sample, thresholds, counts, truth, by_hand)


def _import(app: App, page: Any, file: Path, truth: Mapping[str, str]) -> None:
    press(page, page.get_by_role("button", name="Import traces"))
    pick(page, "Where are the traces?", "A file on this machine")
    write(page, page.get_by_role("textbox", name="Path"), str(file))
    write(page, page.get_by_label("As the labels of"), "published")
    press(page, page.get_by_role("button", name="Import", exact=True))
    page.get_by_text(f"{len(truth)} traces imported").wait_for()
    page.get_by_text(f"{len(truth)} labels kept").wait_for()
    assert Counter(app.store.labels.gold_counts()) == Counter(truth.values())
    press(page, page.get_by_role("button", name="Draw a sample"))


def _draw(app: App, page: Any) -> Sample:
    """None of these traces has a time: the window is all of them."""
    pool = app.store.traces.summary().traces
    page.locator("summary", has_text="Advanced").click()
    page.get_by_text(f"The pool: {pool} traces").wait_for()
    page.get_by_text(f"{pool} undated traces in").wait_for()
    write(page, page.get_by_label("Name", exact=True), "whole loop")
    write(page, page.get_by_label("Traces", exact=True), str(DRAWN))
    write(page, page.get_by_label("Seed", exact=True), str(SEED))
    press(page, page.get_by_role("button", name=f"Draw {DRAWN} of {pool}"))
    page.get_by_text(f"is drawn: {DRAWN} of {pool} traces.").wait_for()
    (sample,) = app.store.samples.list()
    assert (sample.name, sample.size, sample.pool, sample.undated) == ("whole loop", DRAWN, pool, pool)
    assert (sample.design, sample.seed) == ("random", SEED)
    press(page, page.get_by_role("button", name="Label them"))
    return sample


def _label(app: App, page: Any, sample: Sample, truth: Mapping[str, str]) -> list[str]:
    """Says of each trace on the screen what its publishers say; the trace is known by what the store holds of it."""
    said: dict[str, str] = {}
    for member in app.store.samples.members(sample.id)[:BY_HAND]:
        stored = app.store.traces.get(member.trace_pk)
        assert stored is not None
        shown = stored.trace.id
        page.locator(f'article.card[data-trace="{shown}"]:visible').wait_for()
        assert "published" not in page.locator(".stMain").inner_text()
        page.keyboard.press({"clean": "a", "hallucinated": "x"}[truth[shown]])
        said[shown] = truth[shown]
    page.get_by_text(f"{BY_HAND} / {DRAWN}").wait_for()
    page.locator(".touchstone-surface .state[data-waiting='0']").wait_for()
    kept = [label for label in app.store.labels.export(sample.id) if label.labeller == "tester"]
    assert {label.trace_id: label.verdict for label in kept} == said
    assert len(kept) == BY_HAND
    assert set(said.values()) == {"clean", "hallucinated"}
    return list(said)


def _detect(app: App, page: Any) -> None:
    pages = page.get_by_role("navigation", name="Pages")
    press(page, pages.get_by_role("link", name="Detect", exact=True))
    press(page, page.get_by_role("button", name="None", exact=True))
    page.get_by_role("button", name="Run", exact=True).wait_for()
    assert page.get_by_role("radio", name=f"whole loop · {DRAWN}").get_attribute("aria-checked") == "true"
    for number, title in enumerate(DETECTORS.values(), 1):
        press(page, page.get_by_role("checkbox", name=named(title)), "Space")
        page.get_by_role("button", name=re.compile(rf"Run {number} · ")).wait_for()
    press(page, page.get_by_role("button", name=f"Run {len(DETECTORS)} · "))
    page.get_by_text("Run 1 done").wait_for()
    (run,) = app.store.runs.recent()
    assert run.status == "done"
    assert set(run.counts) == set(DETECTORS)
    for tally in run.counts.values():
        assert (tally["scored"] + tally["abstained"], tally["failed"]) == (DRAWN, 0)
    press(page, page.get_by_role("button", name="Tune thresholds"))


def _tune(app: App, page: Any, sample: Sample) -> tuple[int, ...]:
    """The elbow of token_overlap, saved. Returns the confusion counts that the page shows for it."""
    page.wait_for_url("**/tune?**")
    settled(page)
    detector = page.get_by_role("button", name="Token overlap")
    if detector.get_attribute("aria-pressed") == "false":
        press(page, detector)
    page.wait_for_url("**detector=token_overlap**")
    page.get_by_text("60 labels").first.wait_for()
    press(page, page.get_by_role("button", name="More", exact=True))
    press(page, page.get_by_role("button", name="Elbow", exact=True))
    page.wait_for_url("**policy=elbow**")
    settled(page)
    press(page, page.get_by_role("button", name="Save as operating point"))
    page.get_by_text("Saved: Token overlap flags at").wait_for()
    settled(page)
    open_details(page, "In words")
    page.locator(".ts-matrix").wait_for()
    settled(page)
    shown = counts(page)
    saved = app.store.points.latest()["token_overlap"]
    names = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    assert shown == tuple(getattr(saved.point, name) for name in names)
    assert (saved.point.policy, saved.point.feasible) == ("elbow", True)
    assert saved.data.samples == (sample.name,)
    assert shown[0] + shown[1] > 0
    press(page, page.get_by_role("link", name="Release it"))
    return shown


def _release(app: App, page: Any, folder: Path) -> Path:
    write(page, page.get_by_role("textbox", name="Note"), "The whole loop, by keyboard", then="Control+Enter")
    press(page, page.get_by_role("button", name="Release v1 with 1 detector"))
    page.get_by_text("v1 is released.").wait_for()
    settled(page)
    with page.expect_download() as download:
        press(page, page.get_by_role("button", name="Download v1").first)
    thresholds = folder / "thresholds.json"
    download.value.save_as(thresholds)
    (version,) = app.store.releases.list()
    assert thresholds.read_text(encoding="utf-8") == version.document
    assert (version.version, version.note) == (1, "The whole loop, by keyboard")
    return thresholds


def _decides_as_shown(
    app: App, sample: Sample, file: Path, shown: tuple[int, ...], truth: Mapping[str, str], by_hand: list[str]
) -> None:
    """The released file, in another process and in this one, flags exactly what the page has counted."""
    thresholds = load(file)
    entry = thresholds.detectors["token_overlap"]
    data = loading.load_evidence(app.store, "token_overlap", sample=sample.name)
    rows, sweep = data.rows, data.sweep
    assert len(rows) == DRAWN
    assert {row.trace_id: row.gold for row in rows}.items() <= truth.items()
    assert set(by_hand) <= {row.trace_id for row in rows}

    everything = [{config.name: score.value for config, score in app.store.scores.of_trace(row.pk)} for row in rows]
    assert all(set(scores) == set(DETECTORS) for scores in everything)
    here = [decide(thresholds, scores) for scores in everything]
    counts: Counter[tuple[bool, bool]] = Counter()
    for row, scores, decision in zip(rows, everything, here, strict=True):
        assert row.value == scores["token_overlap"]
        flagged = row.value is not None and row.value <= entry.threshold  # low overlap is what this detector flags
        assert decision.flags == (("token_overlap",) if flagged else ()), row.trace_id
        if row.value is not None:
            counts[flagged, row.gold == "hallucinated"] += 1
    assert shown == (counts[True, True], counts[True, False], counts[False, True], counts[False, False])
    at = list(sweep.thresholds).index(entry.threshold)
    assert shown[:2] == (sweep.tp_count[at], sweep.fp_count[at])

    # A process a trace takes its time: the traces labelled by hand are enough.
    asked = [place for place, row in enumerate(rows) if row.trace_id in by_hand]
    assert {bool(here[place].flags) for place in asked} == {True, False}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        there = list(pool.map(lambda place: _command_line(file, everything[place]), asked))
    for place, other in zip(asked, there, strict=True):
        assert (other["flags"], other["verdict"]) == (list(here[place].flags), here[place].verdict)
        assert (other["version"], other["unknown"]) == (1, sorted(set(DETECTORS) - {"token_overlap"}))


def _command_line(file: Path, scores: Mapping[str, float | None]) -> dict[str, Any]:
    command = [sys.executable, "-m", "calibrate", "decide", str(file), "--scores", "-", "--json"]
    given = json.dumps(scores)
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def named(title: str) -> re.Pattern[str]:
    r"""Streamlit names a checkbox by its label's Markdown: ROUGE-L is `**ROUGE\-L**`."""
    return re.compile(r"\\?-".join(map(re.escape, title.split("-"))))


def go_to(page: Any, target: Any) -> None:
    """Tab by Tab to the control, as somebody without a mouse does."""
    target.wait_for()
    settled(page)
    for _ in range(MOST_TABS):
        if target.evaluate("it => it.matches(':focus-within')"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to {target}")


def press(page: Any, target: Any, key: str = "Enter") -> None:
    go_to(page, target)
    page.keyboard.press(key)


def pick(page: Any, group: str, option: str) -> None:
    """Tab leads into the group, the arrow keys from option to option."""
    options = page.get_by_role("radiogroup", name=group)
    wanted = options.get_by_role("radio", name=option)
    go_to(page, options)
    for _ in range(options.get_by_role("radio").count()):
        if wanted.evaluate("it => it === document.activeElement"):
            break
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    options.get_by_role("radio", name=option, checked=True).wait_for()
    settled(page)


def write(page: Any, target: Any, text: str, *, then: str = "Enter") -> None:
    go_to(page, target)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)
    page.keyboard.press(then)
