"""Next trace on the label page: from the key press until the next question is on the screen, in a real browser.

    python tests/bench/bench_label.py [--traces 100000] [--presses 40] [--store URL]

The store holds that many traces with five sources each. Aim: a median under 300 ms.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from calibrate.types import Member, Record, Source, Trace, TraceFilter
from db import Store, open_store
from tests.browser.conftest import ARGUMENTS, serve
from tests.browser.find import find

SAMPLE = 300
LIMIT = 0.3  # seconds
WORDS = ("warranty", "battery", "delivery", "return", "invoice", "cover", "month", "device", "shop", "refund", "order")

# Times one press: two frames after the card shows another trace, so that it has been painted.
TIMER = """() => {
  const card = () => document.querySelector("article.card")
  window.presses = []
  window.addEventListener("keydown", () => {
    const start = performance.now()
    const before = card().dataset.trace
    const look = () => {
      const now = card()
      if (!now || now.dataset.trace === before) return requestAnimationFrame(look)
      requestAnimationFrame(() => window.presses.push(performance.now() - start))
    }
    requestAnimationFrame(look)
  }, true)
}"""


def fill(store: Store, size: int) -> None:
    """`size` traces: 5 sources each, six answers a source set, over four weeks."""
    rng = random.Random(1)
    now = datetime.now(UTC)
    passages: list[Source] = []
    for start in range(0, size, 1000):
        records = []
        for place in range(start, min(start + 1000, size)):
            if place % 6 == 0:
                passages = [Source(str(n), _text(rng, 80), f"Document {rng.randrange(500)}") for n in range(1, 6)]
            trace = Trace(
                id=f"bench-{place}",
                question=f"{_text(rng, 9)}?",
                answer=" ".join(f"{_text(rng, 14)} [{rng.randint(1, 5)}]." for _ in range(4)),
                sources=tuple(passages),
                timestamp=now - timedelta(seconds=rng.random() * 28 * 86400),
                model=rng.choice(["model-a", "model-b"]),
            )
            records.append(Record(place + 1, trace, ()))
        store.traces.add(records, labels_as=None, now=now)
    drawn = rng.sample(range(1, size + 1), min(SAMPLE, size))
    store.samples.add(
        "bench",
        design="random",
        by=None,
        seed=1,
        pool=size,
        undated=0,
        where=TraceFilter(),
        strata={"all": (size, len(drawn))},
        members=[Member(pk, len(drawn) / size, "all") for pk in drawn],
        now=now,
    )


def measure(address: str, presses: int) -> list[float]:
    """Seconds of each press, the first left out."""
    from playwright.sync_api import sync_playwright

    path = find()
    if path is None:
        raise SystemExit("no Chromium or Chrome is here: `make browser` gets one")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.get_by_role("link", name="This week").wait_for()
        page.goto(f"{address}/label?sample=bench&user=bench")
        page.locator("article.card").wait_for()
        page.evaluate(TIMER)
        for place in range(presses + 1):
            page.keyboard.press("axau"[place % 4])
            page.wait_for_function("n => window.presses.length > n", arg=place)
        found: list[float] = page.evaluate("window.presses")
        chromium.close()
    return [milliseconds / 1000 for milliseconds in found[1:]]


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)) + f" {rng.randrange(10**6)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--presses", type=int, default=40)
    parser.add_argument("--store", help="filled when it is empty; default: SQLite in a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.store or f"sqlite:///{folder}/bench.db"
        store = open_store(url)
        start = time.perf_counter()
        if not store.samples.list():
            fill(store, given.traces)
        print(f"{store.traces.count(TraceFilter()):,} traces in {time.perf_counter() - start:.0f} s", flush=True)
        server, address = serve(url, Path(folder) / "server.log")
        try:
            seconds = sorted(measure(address, given.presses))
        finally:
            server.terminate()
            server.wait(timeout=20)
            store.close()
    middle = median(seconds)
    late = seconds[int(len(seconds) * 0.95)]
    print(f"next trace: median {middle * 1000:.0f} ms, 95th percentile {late * 1000:.0f} ms, {len(seconds)} presses")
    if middle > LIMIT:
        raise SystemExit(f"slower than {LIMIT * 1000:.0f} ms")


if __name__ == "__main__":
    main()
