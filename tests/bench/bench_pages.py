"""How long a page takes to load, warm, in a real browser, beside an empty Streamlit page served in the same way.

    python tests/bench/bench_pages.py [--traces 100000] [--loads 5] [--store URL] [--pages KEY ...]

The store (SQLite, or the empty one at URL) holds that many traces with a score each, 500 labels, a saved threshold and
a release. A load is from the navigation until the script is through and nothing on the page is stale; the first of each
page is left out. The two servers are asked in turn, so that both meet the same machine. Aim: a median within 600 ms.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

from bench_tune import DETECTOR, fill

from db import open_store
from pages.shell import navigation
from tests.browser.conftest import ARGUMENTS, serve
from tests.browser.find import find

AIM = 0.6  # seconds
LABELS = 500
PAGES = [key for tabs in navigation.SECTIONS.values() for key in tabs]
EMPTY = "import streamlit as st\n\nst.title('Empty')\n"
COMMANDS = (
    f"choose {DETECTOR} --policy recall>=0.5 --save",
    f"release --tier {DETECTOR}=signal --note bench --reason bench --out thresholds.json",
)
# Milliseconds since the navigation began, once the page stands.
STANDS = """(there) => {
  const app = document.querySelector('.stApp')
  const busy = '[data-stale=true], [data-testid=stSkeleton], [data-testid=stSpinner]'
  const stands = document.querySelector(there) && app?.dataset.testScriptState === 'notRunning'
  return stands && !document.querySelector(busy) ? performance.now() : false
}"""


def load(page: Any, address: str, there: str) -> float:
    """Seconds until a page stands."""
    page.goto(address, wait_until="commit")
    return float(page.wait_for_function(STANDS, arg=there, timeout=120_000).json_value()) / 1000


def measure(address: str, empty: str, keys: list[str], loads: int) -> dict[str, tuple[float, float]]:
    """{page: (the median of its loads, that of the empty page's loads between them)}, in seconds."""
    from playwright.sync_api import sync_playwright

    path = find()
    if path is None:
        raise SystemExit("no Chromium or Chrome is here: `make browser` gets one")
    found = {}
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        load(page, address, "header.ts-bar")  # the first session of a server by the home page: see pages/shell/serve.py
        load(page, empty, "h1")
        for key in keys:
            there = f"{address}/{'' if key == 'week' else key}"
            load(page, there, "header.ts-bar")
            taken = [(load(page, there, "header.ts-bar"), load(page, empty, "h1")) for _ in range(loads)]
            found[key] = (median(one for one, _ in taken), median(base for _, base in taken))
            ours, base = found[key]
            print(f"| {key} | {ours * 1000:.0f} | {base * 1000:.0f} | {ours / base:.1f} |", flush=True)
        chromium.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--store", help="an empty store, as of PostgreSQL; default: SQLite in a temporary folder")
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=PAGES, metavar="KEY")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(passing)
        url = given.store or f"sqlite:///{folder / 'bench.db'}"
        with closing(open_store(url)) as store:
            if not store.labels.gold_counts():
                fill(store, given.traces, min(LABELS, given.traces))
        for command in COMMANDS:
            words = [sys.executable, "-m", "calibrate", *command.split(), "--store", url]
            names = {"PYTHONPATH": str(ROOT), "TOUCHSTONE_USER": "tester"}
            done = subprocess.run(
                words, cwd=folder, env=os.environ | names, capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{command}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        (folder / "empty.py").write_text(EMPTY, encoding="utf-8")
        server, address = serve(url, folder / "server.log")
        bare, empty = serve(url, folder / "empty.log", script=str(folder / "empty.py"))
        print(f"{given.traces:,} traces, {url.split(':')[0]}, {given.loads} loads each, medians\n")
        print("| page | ms | empty page, ms | ratio |\n|---|---|---|---|")
        try:
            found = measure(address, empty, given.pages, given.loads)
        finally:
            for one in (server, bare):
                one.terminate()
                one.wait(timeout=20)
    if slow := [key for key, (ours, _) in found.items() if ours > AIM]:
        raise SystemExit(f"not within {AIM * 1000:.0f} ms: {', '.join(slow)}")


if __name__ == "__main__":
    main()
