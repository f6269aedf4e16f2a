"""Operations with thresholds of their own, in a real browser: chosen, saved, released, watched, and learned from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate import runtime
from calibrate.cli import main
from calibrate.types import Label, Trace
from db import open_store
from tests.browser.conftest import LONG, App, serve, settled
from tests.workflow.making import ABOVE, give_scores

pytestmark = pytest.mark.browser
SHIFT = {"chat": 0.0, "search": 4.0}
EACH = 200


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server with 400 labelled answers of two operations, whose scores are shifted against each other."""
    folder = tmp_path_factory.mktemp("segments")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    server, address = serve(store.url, folder / "server.log")
    app, rng, now = App(address, store), np.random.default_rng(3), datetime.now(UTC)
    operations = [name for name in SHIFT for _ in range(EACH)]
    traces = [
        Trace(f"t{n}", f"answer {n}", operation=operation, model="m1", timestamp=now - timedelta(minutes=20 * n))
        for n, operation in enumerate(operations)
    ]
    app.fill(traces, sample="w47")
    bad = rng.random(len(traces)) < 0.3
    for n, trace in enumerate(traces):
        label = Label("", "gold", "hallucinated" if bad[n] else "clean")
        store.labels.add(store.traces.find(trace.id) or 0, label, sample_id=None, now=now)
    scores = [
        float(rng.normal(SHIFT[operation] + 1.6 * hit, 1)) for operation, hit in zip(operations, bad, strict=True)
    ]
    give_scores(store, traces, scores, name=ABOVE)
    give_scores(store, traces, [float(rng.normal(0.5 - 0.2 * hit, 0.2)) for hit in bad], name="rouge_l")
    yield app
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture
def visit(own: App, browser: Any) -> Iterator[Callable[[str], Any]]:
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    context.set_default_timeout(LONG)

    def open_page(address: str) -> Any:
        page = context.new_page()
        page.goto(own.url + address)
        return page

    yield open_page
    context.close()


def test_from_two_operations_to_a_recheck_of_one(own: App, visit: Callable[[str], Any], tmp_path: Path) -> None:
    page = visit(f"/tune?detector={ABOVE}&details=segments")
    page.get_by_text("Thresholds by operation find more").wait_for()
    page.get_by_role("textbox", name="Why shall they be saved all the same?").fill("a test")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Save thresholds per segment").click()
    page.get_by_text("Saved with thresholds per segment").wait_for()
    page.get_by_role("textbox", name="Why shall they be saved all the same?").wait_for(state="detached")
    saved = own.store.points.latest()[ABOVE].data.segments
    assert saved is not None
    assert set(saved.thresholds) == set(SHIFT)

    out = tmp_path / "thresholds.json"
    assert main(["release", "--store", own.store.url, "--out", str(out), "--reason", "a test"]) == 0
    between = sum(segment.threshold for segment in saved.thresholds.values()) / 2
    file = runtime.load(out)
    flagged = {name: runtime.decide(file, {ABOVE: between}, segments={"operation": name}).verdict for name in SHIFT}
    assert (flagged["chat"] != "ACCEPT", flagged["search"]) == (True, "ACCEPT")

    page = visit("/release")
    for name, segment in saved.thresholds.items():
        page.get_by_text(re.compile(rf"≥ {segment.threshold:.4g} {name}")).wait_for()
    page.get_by_text("segments={'operation': 'chat'}").wait_for()

    page = visit(f"/tune?detector={ABOVE}")
    page.get_by_text(re.compile("Live are thresholds by operation.*the next release has one for all")).wait_for()
    page.get_by_role("link", name="Choose per segment again").click()
    page.get_by_role("combobox", name=re.compile("Segments by")).wait_for()
    page = visit(f"/recheck?detector={ABOVE}")
    page.get_by_role("combobox", name=re.compile("operation", re.IGNORECASE)).wait_for()


def test_the_rate_of_each_operation_and_what_can_be_learned(own: App, visit: Callable[[str], Any]) -> None:
    page = visit("/")
    page.get_by_text("Hallucinated, by week").wait_for()
    page.get_by_role("combobox", name=re.compile("By")).click()
    page.get_by_role("option", name="operation").click()
    for name in SHIFT:
        page.get_by_text(re.compile(rf"^{name} 20.*hallucinated")).wait_for()
    settled(page)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")

    page = visit("/ensemble")
    page.get_by_role("button", name="Learn from these labels").click()
    page.get_by_text("Nothing to learn from yet").or_(page.get_by_text("AUROC learned")).first.wait_for()
