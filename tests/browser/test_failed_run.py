"""A run in which a detector failed on every trace: the page says which and why, and runs again what failed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate.types import Record, Source, Trace
from calibrate.workflow.detection import detect
from db import open_store
from tests.browser.conftest import LONG, App, serve
from tests.detectors import scripted
from tests.detectors.scripted import Endpoint, Said

pytestmark = pytest.mark.browser

JUDGE = "judge_yes_no"
MANY = 12


@pytest.fixture
def failed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[App, Endpoint]]:
    """A workbench whose newest run asked a judge that refused everything; the endpoint answers by now."""
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    with scripted.endpoint(lambda body: endpoint.script(body)) as endpoint:
        endpoint.script = lambda body: Said("the model 'judge-9' does not exist", status=400)
        monkeypatch.setenv("TOUCHSTONE_CHAT_URL", endpoint.url)
        monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", scripted.MODEL)
        traces = [Trace(f"t{n}", f"Parcel {n} is late.", sources=(Source("1", f"Parcel {n}."),)) for n in range(MANY)]
        records = [Record(n, trace, ()) for n, trace in enumerate(traces, 1)]
        store.traces.add(records, labels_as=None, now=datetime.now(UTC))
        detect.queue(store, [JUDGE, "word_overlap"], {"all": True})
        detect.work(store)
        endpoint.script = scripted.sensible
        server, address = serve(store.url, tmp_path / "server.log")
        yield App(address, store), endpoint
        server.terminate()
        server.wait(timeout=20)
    store.close()


def test_the_page_names_the_detector_that_failed_and_runs_it_again(failed: tuple[App, Endpoint], browser: Any) -> None:
    app, endpoint = failed
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(LONG)
    page.goto(app.url)
    page.get_by_role("link", name="Label").first.wait_for()
    page.goto(f"{app.url}/detect")
    page.get_by_text("Run 1 incomplete").wait_for()
    row = page.locator(f".st-key-detect-row-failed-{JUDGE}")
    assert f"Failed on all {MANY}: " in row.inner_text()
    assert "does not exist" in row.inner_text()
    if folder := os.environ.get("SCREENSHOTS"):
        page.wait_for_timeout(1500)
        page.screenshot(path=f"{folder}/failed_run.png")
    sent = len(endpoint.asked)
    row.get_by_role("button", name="Retry").click()
    page.get_by_text("Run 2 done").wait_for()
    assert len(endpoint.asked) == sent + MANY
    assert app.store.runs.get(2).counts.keys() == {JUDGE}
    page.locator(f".st-key-detect-row-{JUDGE}").get_by_text(f"{MANY} of {MANY} scored").wait_for()
    assert page.get_by_role("button", name="Retry").count() == 0
    if folder:
        page.wait_for_timeout(1500)
        page.screenshot(path=f"{folder}/retried_run.png")
    page.close()


def test_several_that_failed_for_one_cause_are_run_again_together(failed: tuple[App, Endpoint], browser: Any) -> None:
    app, endpoint = failed
    endpoint.script = lambda body: Said("the model 'judge-9' does not exist", status=400)
    detect.work(app.store, run_id=detect.queue(app.store, [JUDGE, "judge_score"], {"all": True}).id)
    endpoint.script = scripted.sensible
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(LONG)
    page.goto(app.url)
    page.get_by_role("link", name="Label").first.wait_for()
    page.goto(f"{app.url}/detect")
    page.get_by_role("button", name="Run again what failed").click()
    page.get_by_text("Run 3 done").wait_for()
    assert app.store.runs.get(3).counts.keys() == {JUDGE, "judge_score"}
    assert page.get_by_role("button", name="Retry").count() == 0
    page.close()
