"""Two workbenches and a worker on one PostgreSQL store: what is done at one is there at the other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.types import Label, Source, Trace
from calibrate.workflow.labelling import assignment
from db import open_store
from tests.browser.conftest import LONG, ROOT, App, serve, settled, turn_to
from tests.browser.test_two_people import handed_to, press, shown
from tests.db.make import NOW

pytestmark = [pytest.mark.browser, pytest.mark.postgres]
SIZE, OLD = 60, 12
WORDS = ("The parcel leaves at noon.", "Nobody knows when.")


@pytest.fixture
def servers(postgres_url: str, tmp_path: Path) -> Iterator[tuple[App, App]]:
    """Two servers that only queue runs, on a sample half of which is labelled and the rest split between people."""
    store = open_store(postgres_url)
    with ThreadPoolExecutor() as pool:
        logs = [tmp_path / "a.log", tmp_path / "b.log"]
        started = list(pool.map(lambda log: serve(postgres_url, log, TOUCHSTONE_RUNS="workers"), logs))
    apps = [App(address, store) for _, address in started]
    traces = [Trace(f"t{n}", WORDS[n % 2], sources=(Source("1", f"{n}: {WORDS[0]}"),)) for n in range(SIZE)]
    sample = apps[0].fill(traces, sample="shared")
    assignment.assign(store, sample, "split", overlap=0.0, seed=3, by="lead", now=datetime.now(UTC))
    for key, _ in store.samples.keys(sample.id)[:OLD]:
        store.labels.add(key, Label("", "eve", "hallucinated" if key % 2 else "clean"), sample_id=sample.id, now=NOW)
    yield apps[0], apps[1]
    for server, _ in started:
        server.terminate()
        server.wait(timeout=20)
    store.close()


@pytest.fixture
def worker(postgres_url: str) -> Iterator[Any]:
    """Starts the pool: one worker that waits."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [sys.executable, "-m", "calibrate", "worker", "--wait"]
        environment = {**os.environ, "TOUCHSTONE_STORE": postgres_url}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL))

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


@pytest.fixture
def visit_both(servers: tuple[App, App], browser: Any) -> Iterator[tuple[Any, Any]]:
    """A browser at each server, past the first page of its first session."""
    pages = []
    for app in servers:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(LONG)
        page.goto(app.url)
        pages.append(page)
    for page in pages:
        page.get_by_role("link", name="This week").wait_for()
    yield pages[0], pages[1]
    for page in pages:
        page.context.close()


def test_what_is_done_at_one_server_is_there_at_the_other(
    servers: tuple[App, App], visit_both: tuple[Any, Any], worker: Any
) -> None:
    (a, b), (at_a, at_b), store = servers, visit_both, servers[0].store

    # A run that is queued at A waits at both, until the pool takes it; both show what came of it.
    for app, page in ((a, at_a), (b, at_b)):
        page.goto(f"{app.url}/detect")
        page.get_by_role("button", name=re.compile(r"^Run \d+")).wait_for()
        settled(page)
    at_a.get_by_role("button", name="None", exact=True).click()
    at_a.get_by_role("button", name="Run", exact=True).wait_for()
    settled(at_a)
    at_a.get_by_text("Token overlap", exact=True).click()
    at_a.get_by_role("button", name=re.compile("^Run 1 · ")).click()
    at_a.get_by_text("Waiting for a worker").wait_for()
    at_b.goto(f"{b.url}/detect")
    at_b.get_by_text("Waiting for a worker").wait_for()
    assert store.runs.get(1).status == "queued"
    worker()
    for page in (at_a, at_b):
        page.get_by_text("Run 1 done").wait_for()
    assert store.runs.get(1).counts["token_overlap"]["scored"] == SIZE

    # The figures of B know a label of A as soon as somebody does something at B.
    at_b.goto(f"{b.url}/tune?detector=token_overlap")
    at_b.get_by_text(re.compile(rf"{OLD} labels")).first.wait_for()
    handed = handed_to(at_a), handed_to(at_b)
    at_a.goto(f"{a.url}/label?sample=shared&user=ann")
    for _ in range(3):
        trace = shown(at_a)
        assert trace is not None
        press(at_a, "x", trace)
    at_a.locator(".touchstone-surface .state[data-waiting='0']").wait_for()
    settled(at_b)
    turn_to(at_b, "Detect")
    at_b.get_by_text("Run 1 done").wait_for()
    turn_to(at_b, "Thresholds")
    at_b.get_by_text(re.compile(rf"{OLD + 3} labels")).first.wait_for()

    # What somebody holds at A is handed to nobody at B.
    at_b.goto(f"{b.url}/label?sample=shared&user=bob")
    for page, verdict in ((at_b, "a"), (at_a, "x"), (at_b, "a")):
        trace = shown(page)
        assert trace is not None
        press(page, verdict, trace)
    for page in (at_a, at_b):
        page.locator(".touchstone-surface .state[data-waiting='0']").wait_for()
    of_ann, of_bob = handed
    assert of_ann
    assert of_bob
    assert not of_ann & of_bob
    by = [{label.labeller for label in store.labels.of_trace(store.traces.find(f"t{n}") or 0)} for n in range(SIZE)]
    assert Counter(name for names in by for name in names) == {"eve": OLD, "ann": 4, "bob": 2}
    assert max(map(len, by)) == 1
