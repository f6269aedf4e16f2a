"""Shoots the workbench, on a store of the sample traces that it fills itself.

python docs/make_screenshots.py                                      # docs/images, for the README and the tutorial
python docs/make_screenshots.py --all --theme dark --out /tmp/dark   # every page, whole

To compare two checkouts, shoot the one, then the other against it:

python docs/make_screenshots.py --all --root ../before --out /tmp/before
python docs/make_screenshots.py --all --out /tmp/after --against /tmp/before
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image, ImageChops  # noqa: E402
from playwright.sync_api import Error, sync_playwright  # noqa: E402

from tests.browser.find import find  # noqa: E402

IMAGES = ROOT / "docs" / "images"
# The images of the documentation: where each page is, and how many of its pixels are shown.
SHOWN = {
    "week": ("", 640),
    "label": ("label", 900),
    "tune": ("tune?detector=rouge_l&sample=demo", 1_000),
    "release": ("release", 900),
}
WHOLE = 6_000  # pixels that no page reaches
ADDRESSES = (
    *("week", "traces", "import", "sample", "label", "agreement", "guidelines", "detect", "detectors"),
    *("tune", "ensemble", "release", "audit", "watch", "recheck", "recalibrate"),
)
QUIET = (
    "document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
    " && !document.querySelector('[data-stale=true], [data-testid=stSkeleton], [data-testid=stSpinner]')"
)
COMMANDS = (
    "demo --traces-only",
    "sample 2026-W47 --size 60 --seed 47 --design random --since all",
    "detect token_overlap word_overlap rouge_l citation_validity citation_grounding --all",
    "choose rouge_l --policy precision>=0.7 --save",
    "release --tier rouge_l=signal --note First --out thresholds.json",
    "choose citation_grounding --policy precision>=0.7 --save",
)


def environment(root: Path) -> dict[str, str]:
    """Of the commands and the server, which run in a folder of their own: its store is touchstone.db."""
    names = {"PYTHONPATH": str(root), "TOUCHSTONE_USER": "robin", "HF_HUB_OFFLINE": "1"}
    return {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")} | names


def fill(root: Path, folder: Path) -> None:
    for command in COMMANDS:
        words = [sys.executable, "-m", "calibrate", *command.split()]
        subprocess.run(words, cwd=folder, env=environment(root), check=True, stdout=subprocess.DEVNULL)


@contextmanager
def workbench(root: Path, folder: Path, port: int) -> Iterator[str]:
    """The address of a server on the folder's store, once it answers."""
    (folder / ".streamlit").symlink_to(root / ".streamlit")
    command = [sys.executable, "-m", "streamlit", "run", str(root / "app.py"), "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    server = subprocess.Popen(command, cwd=folder, env=environment(root), stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=20)


def settle(page: Any) -> None:
    """Waits until the page has been quiet for a second: fragments and charts draw after the script."""
    quiet = 0
    while quiet < 4:
        page.wait_for_timeout(250)
        quiet = quiet + 1 if page.evaluate(QUIET) else 0


def shoot(page: Any, url: str, path: Path, tallest: int) -> None:
    """One page, as tall as it is up to `tallest` pixels."""
    width = page.viewport_size["width"]
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(url)
    page.get_by_test_id("stMainBlockContainer").wait_for()
    settle(page)
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": max(500, min(int(height) + 1, tallest))})
    settle(page)
    page.screenshot(path=path, animations="disabled", caret="hide")
    print(path)


def compare(before: Path, after: Path) -> str:
    """Say how many pixels of two images differ. If any do, put the two side by side into NAME-against.png."""
    images = [Image.open(path).convert("RGB") for path in (before, after)]
    size = (max(image.width for image in images), max(image.height for image in images))
    left, right = Image.new("RGB", size, "white"), Image.new("RGB", size, "white")
    left.paste(images[0])
    right.paste(images[1])
    difference = ImageChops.difference(left, right).convert("L").point(lambda value: 255 if value > 24 else 0)
    if not (changed := difference.histogram()[255]):
        return "the same"
    both = Image.new("RGB", (2 * size[0], size[1]))
    both.paste(left)
    both.paste(right, (size[0], 0))
    both.save(after.with_name(f"{after.stem}-against.png"))
    return f"{changed:,} pixels differ"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every page, not only those of the documentation")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout whose workbench is shot")
    parser.add_argument("--against", type=Path, help="a folder of earlier shots: say which pages changed")
    parser.add_argument("--port", type=int, default=8599)
    args = parser.parse_args()
    shots = SHOWN
    if args.all:
        shots = {address: ("" if address == "week" else address, WHOLE) for address in ADDRESSES}
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = args.root.resolve()
        fill(root, Path(folder))
        with workbench(root, Path(folder), args.port) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport={"width": args.width, "height": 800}, color_scheme=args.theme)
            context.set_default_timeout(60_000)
            page = context.new_page()
            page.goto(address)  # the first session of a server by the home page: see pages/shell/serve.py
            page.get_by_test_id("stMainBlockContainer").wait_for()
            for name, (path, tallest) in shots.items():
                try:
                    shoot(page, f"{address}/{path}", args.out / f"{name}.png", tallest)
                except Error as error:
                    print(f"{name}: {error.message.splitlines()[0]}", file=sys.stderr)
            browser.close()
    if args.against:
        for before in sorted(path for path in args.against.glob("*.png") if (args.out / path.name).is_file()):
            print(f"{before.stem}: {compare(before, args.out / before.name)}")


if __name__ == "__main__":
    main()
