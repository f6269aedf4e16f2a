"""A real server on a temporary store, a real Chromium, and no request to anywhere else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.types import Label, Member, Record, Sample, Trace, TraceFilter
from db import Store, open_store
from tests.browser.find import find

ROOT = Path(__file__).resolve().parents[2]
LONG = 60_000  # ms; a page of a busy machine may take its time

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Streamlit slides an expander open for half a second: what a test aims at would be elsewhere when it clicks.
STILL = """() => {
  const animate = Element.prototype.animate
  Element.prototype.animate = function (...how) {
    const animation = animate.apply(this, how)
    if (animation.effect.getComputedTiming().endTime < Infinity) animation.finish()
    return animation
  }
}"""


@dataclass
class Still:
    """A browser whose pages do not move by themselves."""

    chromium: Any

    def new_context(self, **options: Any) -> Any:
        context = self.chromium.new_context(**options)
        context.add_init_script(f"({STILL})()")
        return context

    def new_page(self, **options: Any) -> Any:
        return self.new_context(**options).new_page()


@dataclass
class App:
    """The workbench at `url`, and the store it works on."""

    url: str
    store: Store

    def fill(self, traces: list[Trace], *, sample: str) -> Sample:
        """Adds the traces and a sample of all of them, in this order."""
        now = datetime.now(UTC)
        self.store.traces.add(
            [Record(line, trace, ()) for line, trace in enumerate(traces, 1)], labels_as=None, now=now
        )
        keys = [self.store.traces.find(trace.id) for trace in traces]
        return self.store.samples.add(
            sample,
            design="random",
            by=None,
            seed=1,
            pool=len(keys),
            undated=0,
            where=TraceFilter(),
            strata={"all": (len(keys), len(keys))},
            members=[Member(key, 1.0, "all") for key in keys if key is not None],
            now=now,
        )

    def labels(self, trace_id: str, labeller: str) -> list[Label]:
        key = self.store.traces.find(trace_id)
        assert key is not None
        return [label for label in self.store.labels.of_trace(key) if label.labeller == labeller]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def serve(
    url: str, log: Path, *options: str, port: int | None = None, script: str = "app.py", **variables: str
) -> tuple[subprocess.Popen[bytes], str]:
    """A server on a free port, healthy when this returns. An empty variable is one that is not set."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port), *options]
    environment = {**os.environ, "TOUCHSTONE_STORE": url, "TOUCHSTONE_USER": "tester", "HF_HUB_OFFLINE": "1"}
    environment["TOUCHSTONE_FILES_DIR"] = tempfile.gettempdir()  # where tests keep their files
    environment = {name: value for name, value in {**environment, **variables}.items() if value}
    with log.open("wb") as out:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return server, address
        except OSError:
            time.sleep(0.1)
    server.kill()
    pytest.fail(f"the workbench did not start:\n{log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("workbench")
    url = f"sqlite:///{folder / 'store.db'}"
    store = open_store(url)
    server, address = serve(url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = find()
    if path is None:
        why = "no Chromium or Chrome is here: `make browser` gets one"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(why)
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield Still(chromium)
        chromium.close()


@pytest.fixture
def visit(app: App, browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address of the workbench in a browser without history. Afterwards: nothing was asked of any other
    host, no dialog opened, no script of the page failed."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(address: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        context.set_default_timeout(LONG)
        context.on("request", lambda request: _outside(request.url, app.url, wrong))
        context.on("dialog", lambda dialog: (wrong.append(f"a dialog opened: {dialog.message}"), dialog.dismiss()))
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"a script failed: {error}"))
        page.goto(app.url + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong, wrong


def settled(page: Any) -> None:
    """Waits until the page's script has run and what it drew stands. What has only been asked for may not have begun:
    wait for what it shows, then for this."""
    page.wait_for_timeout(150)
    page.wait_for_function(
        "document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
        " && !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')"
    )


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Waits for what no selector can say. Fails as the last answer does."""
    deadline = time.monotonic() + LONG / 1000
    while not holds() and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert holds()


def _outside(url: str, own: str, wrong: list[str]) -> None:
    if not url.startswith((own, own.replace("http", "ws", 1), "data:", "blob:")):
        wrong.append(f"a request left the page: {url}")


@pytest.fixture(scope="session", autouse=True)
def _warm(request: pytest.FixtureRequest) -> None:
    """Streamlit shows "Page not found" to the very first session of a server when it asks for a page by name."""
    browser = request.getfixturevalue("browser")  # first: without one there is no need for a server
    app = request.getfixturevalue("app")
    page = browser.new_page()
    page.set_default_timeout(LONG)
    page.goto(app.url)
    page.get_by_role("link", name="This week").wait_for()
    page.close()


def turn_to(page: Any, section: str, name: str = "") -> None:
    """Goes to a page by the bar, as a user does: its section, then its tab where it has several."""
    page.get_by_role("navigation", name="Pages").get_by_role("link", name=section, exact=True).click()
    if not name:
        return
    page.get_by_role("navigation", name=section, exact=True).get_by_role("link", name=name, exact=True).click()


def take_sample(page: Any, name: str) -> None:
    """Chooses the sample at hand in the bar, by the keyboard; where there is but one, it is at hand."""
    page.locator(".ts-sample").wait_for()
    if page.locator(".ts-sample").inner_text() == name:
        return
    page.locator("button.ts-sample").click()
    page.get_by_role("combobox", name="The sample whose labels").fill(name)
    page.keyboard.press("Enter")
    page.locator("button.ts-sample", has_text=name).wait_for()
    settled(page)
    page.evaluate("document.activeElement.blur()")
