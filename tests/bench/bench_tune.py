"""A threshold moved on the Tune page: from the key press until the page shows it, in a real browser.

    python tests/bench/bench_tune.py [--presses 40] [--folder FOLDER]

Two stores: a sample of 500 labels from 5,000 scored traces, and 1,000,000 traces, all of them labelled and scored.
With `--folder` they stay there for another run. Aims, medians: the figures within 50 ms, all that follows where the
handle rests (it rests 250 ms after the last key) within 600 ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sqlalchemy import insert

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from calibrate.types import Member, TraceFilter
from db import Store, open_store
from db.engine import writing
from db.tables import Base, GoldRow, LabelRow, ScoreRow, TextRow, TraceRow, table
from db.tables.mapping import digest
from tests.browser.conftest import ARGUMENTS, serve, settled
from tests.browser.find import find

DETECTOR = "token_overlap"  # flags below
SIZES = {500: 5_000, 1_000_000: 1_000_000}  # labels: traces
FIGURES, WHOLE = 0.05, 0.6  # seconds
NOW = datetime.now(UTC)
CONTEXT = " ".join(f"The warranty of device {n} ends after {n % 7 + 1} years, batteries excepted." for n in range(40))

# Times one press: until a frame shows the handle and the figures at a new place; and until the threshold told between
# the traces on either side of it has followed and the page's script is through.
TIMER = """() => {
  const part = (key) => [...document.querySelectorAll(`.st-key-${key} *`)].find((one) => one.shadowRoot)?.shadowRoot
  const chart = () => part("threshold-chart")
  const near = () => part("tune_near")
  const here = () => [
    chart()?.querySelector("[role=slider]")?.style.transform + chart()?.querySelector(".figures")?.textContent,
    near()?.querySelector(".line")?.innerText,
  ]
  const idle = () => document.querySelector(".stApp").dataset.testScriptState === "notRunning"
  window.presses = []
  window.addEventListener("keydown", () => {
    const start = performance.now()
    const before = here()
    const took = {}
    const look = () => {
      here().forEach((one, place) => { if (one && one !== before[place]) took[place] ??= performance.now() - start })
      if (!(0 in took && 1 in took && idle())) return requestAnimationFrame(look)
      requestAnimationFrame(() => window.presses.push([took[0], performance.now() - start]))
    }
    requestAnimationFrame(look)
  }, true)
}"""


@dataclass(frozen=True)
class Times:
    """Seconds: until the page stood when it was first opened, then each press until the figures and until all stood."""

    opened: float
    figures: list[float]
    whole: list[float]


def fill(store: Store, traces: int, labels: int) -> None:
    """`traces` with a score each, of which the first `labels` are labelled; a sample where these are not all."""
    rng = np.random.default_rng(1)
    bad = rng.random(traces) < 0.15
    scores = np.where(bad, rng.normal(0.35, 0.15, traces), rng.normal(0.6, 0.15, traces))
    config = store.scores.config(DETECTOR, "1", {"variant": "default"}, "", now=NOW)
    _insert(store, TextRow, iter([{"digest": digest(CONTEXT), "text": CONTEXT}]))
    _insert(store, TraceRow, (_trace(pk) for pk in range(1, traces + 1)))
    _insert(store, ScoreRow, (_score(pk, config.id, float(value)) for pk, value in enumerate(scores, 1)))
    _insert(store, LabelRow, (_label(pk, verdict) for pk, verdict in enumerate(bad[:labels], 1)))
    _insert(store, GoldRow, (_gold(pk, verdict) for pk, verdict in enumerate(bad[:labels], 1)))
    if labels < traces:
        store.samples.add(
            "bench", design="random", by=None, seed=1, pool=traces, undated=0, where=TraceFilter(),
            strata={"all": (traces, labels)}, now=NOW,
            members=[Member(pk, labels / traces, "all") for pk in range(1, labels + 1)],
        )  # fmt: skip


def _trace(pk: int) -> dict[str, Any]:
    return {
        "id": pk, "trace_id": f"bench-{pk}", "content_hash": f"{pk:032x}", "timestamp": NOW - timedelta(seconds=pk),
        "model": "model-a", "question": f"When does warranty {pk} end?", "answer": f"It ends after {pk % 7 + 1} years.",
        "context_digest": digest(CONTEXT), "imported_at": NOW,
    }  # fmt: skip


def _score(pk: int, config: int, value: float) -> dict[str, Any]:
    return {"config_id": config, "content_hash": f"{pk:032x}", "status": "scored", "value": value, "seconds": 0.0,
            "scored_at": NOW}  # fmt: skip


def _label(pk: int, bad: bool) -> dict[str, Any]:
    return {"id": pk, "trace_pk": pk, "labeller": "bench", "verdict": _verdict(bad), "adjudicates": False,
            "created_at": NOW}  # fmt: skip


def _gold(pk: int, bad: bool) -> dict[str, Any]:
    return {"trace_pk": pk, "verdict": _verdict(bad), "labellers": 1, "decided_at": NOW}


def _verdict(bad: bool) -> str:
    return "hallucinated" if bad else "clean"


def _insert(store: Store, row: type[Base], rows: Iterator[dict[str, Any]]) -> None:
    with writing(store.engine) as connection:
        while some := list(islice(rows, 20_000)):
            connection.execute(insert(table(row)), some)


def measure(address: str, presses: int) -> Times:
    """The first press is left out: the page then turns from the policy to a threshold set by hand."""
    from playwright.sync_api import sync_playwright

    path = find()
    if path is None:
        raise SystemExit("no Chromium or Chrome is here: `make browser` gets one")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(300_000)
        page.goto(address)
        page.get_by_role("link", name="This week").wait_for()
        start = time.perf_counter()
        page.goto(f"{address}/tune")
        page.locator(".st-key-tune_near .line").wait_for()
        settled(page)
        opened = time.perf_counter() - start
        page.get_by_role("slider").focus()
        page.evaluate(TIMER)
        for place in range(presses + 1):
            page.keyboard.press("ArrowRight")
            page.wait_for_function("n => window.presses.length > n", arg=place)
            settled(page)
        found = page.evaluate("window.presses")[1:]
        chromium.close()
    return Times(opened, [figures / 1000 for figures, _ in found], [whole / 1000 for _, whole in found])


def run(folder: Path, labels: int, presses: int) -> tuple[float, float]:
    """The medians of the presses, in seconds: of the figures, and of all."""
    url = f"sqlite:///{folder}/bench-{labels}.db"
    store = open_store(url)
    start = time.perf_counter()
    if not store.labels.gold_counts():
        fill(store, SIZES[labels], labels)
        print(f"{labels:,} labels: filled in {time.perf_counter() - start:.0f} s", flush=True)
    server, address = serve(url, folder / "server.log")
    try:
        times = measure(address, presses)
    finally:
        server.terminate()
        server.wait(timeout=20)
        store.close()
    words = ", ".join(
        f"{name} median {median(taken) * 1000:.0f} ms, 95th percentile {_late(taken) * 1000:.0f}"
        for name, taken in (("figures", times.figures), ("all", times.whole))
    )
    print(f"{labels:,} labels: {words}; {len(times.whole)} presses; opened in {times.opened:.1f} s", flush=True)
    print(
        f"  of the aims: figures {median(times.figures) / FIGURES:.2f}, all {median(times.whole) / WHOLE:.2f}",
        flush=True,
    )
    return median(times.figures), median(times.whole)


def _late(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.95)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presses", type=int, default=40)
    parser.add_argument("--labels", type=int, choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--folder", help="where the stores are kept; default: a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(given.folder or passing)
        medians = [run(folder, labels, given.presses) for labels in given.labels]
    if any(figures >= FIGURES or whole >= WHOLE for figures, whole in medians):
        raise SystemExit(f"not within {FIGURES * 1000:.0f} and {WHOLE * 1000:.0f} ms")


if __name__ == "__main__":
    main()
