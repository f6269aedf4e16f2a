"""From an empty store to scores, on the pages a team meets first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calibrate.types import Label, TraceFilter
from db import open_store
from tests.browser.conftest import LONG, App, serve, turn_to

pytestmark = pytest.mark.browser


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[App]:
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
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(LONG)
    opened = context.new_page()
    opened.goto(fresh.url)
    yield opened
    context.close()


def test_from_an_empty_store_to_scores(fresh: App, page: Any, tmp_path: Path) -> None:
    page.get_by_text("Touchstone finds out").wait_for()
    press(page, "Import traces")

    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join([*(json.dumps(trace(n)) for n in range(12)), '{"question": "no answer"}']))
    page.locator("input[type=file]").set_input_files(str(file))
    press(page, "Import")
    page.get_by_text("12 traces imported").wait_for()
    page.get_by_text("1 line rejected").wait_for()
    one_primary(page)
    press(page, "Import more")
    page.locator("input[type=file]").set_input_files(str(file))
    press(page, "Import")
    page.get_by_text("Nothing new.").wait_for()
    assert fresh.store.traces.count(TraceFilter()) == 12

    press(page, "Draw a sample")
    page.get_by_text("then precision is known to about").wait_for()
    page.get_by_text("too few labels have been timed here").wait_for()
    page.get_by_role("button", name="Draw all 11", exact=True).wait_for()
    one_primary(page)
    page.locator("summary", has_text="Advanced").click()
    page.get_by_text("The pool: 11 traces").wait_for()
    page.get_by_text("1 undated trace left out").wait_for()
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("Traces", exact=True).fill("5")
    page.keyboard.press("Enter")
    press(page, "Draw 5 of 11")
    page.get_by_text("is drawn: 5 of 11 traces.").wait_for()
    one_primary(page)
    (sample,) = fresh.store.samples.list()
    assert (sample.name, sample.size, sample.pool) == ("first", 5, 11)

    for key, _ in fresh.store.samples.keys(sample.id):
        fresh.store.labels.add(key, Label("", "tester", "clean"), sample_id=sample.id, now=datetime.now(UTC))
    page.get_by_role("link", name="This week").click()
    page.get_by_text("The labels are in.").wait_for()
    one_primary(page)
    press(page, "Run detectors")
    press(page, "None")
    page.get_by_role("button", name="Run", exact=True).wait_for()
    page.get_by_text("Token overlap", exact=True).click()
    page.get_by_role("button", name="Run 1 · time unknown until a first run").click()
    page.get_by_text("Run 1 done").wait_for()
    one_primary(page)
    (run,) = fresh.store.runs.recent()
    assert run.counts["token_overlap"]["scored"] == 5
    page.get_by_role("link", name="This week").click()
    page.get_by_role("button", name="Tune thresholds").wait_for()


def test_the_columns_of_a_table_are_asked_for(fresh: App, page: Any, tmp_path: Path) -> None:
    turn_to(page, "Traces", "Import")
    file = tmp_path / "log.csv"
    file.write_text("prompt,response,team\nWhy?,Because.,red\nHow?,Thus.,blue\n")
    page.locator("input[type=file]").set_input_files(str(file))
    page.get_by_text("Which column is what?").wait_for()
    page.get_by_text("Kept as attributes: team").wait_for()
    press(page, "Import")
    page.get_by_text("2 traces imported").wait_for()
    (first, _) = fresh.store.traces.load([1, 2])
    assert (first.question, first.answer, first.attributes) == ("Why?", "Because.", {"team": "red"})


def test_a_file_that_is_none_is_told(page: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    turn_to(page, "Traces", "Import")
    file = tmp_path / "empty.jsonl"
    file.write_text("")
    page.locator("input[type=file]").set_input_files(str(file))
    page.get_by_text("This did not work").wait_for()
    page.get_by_text("empty.jsonl", exact=False).last.wait_for()
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_disabled(timeout=LONG)


def trace(n: int) -> dict[str, Any]:
    moment = datetime.now(UTC) - timedelta(hours=n)
    return {
        "trace_id": f"t{n}",
        "question": f"Question {n}?",
        "context": "Batteries are covered for twelve months.",
        "answer": f"Batteries are covered for {n} months.",
        "timestamp": moment.isoformat() if n else None,
        "model": "model-a",
    }


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).last.click()


def one_primary(page: Any) -> None:
    from playwright.sync_api import expect

    expect(page.locator("[data-testid=stBaseButton-primary]")).to_have_count(1, timeout=LONG)
