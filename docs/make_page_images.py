"""Shoots every page in light and dark at 1440 and 390 px, counts its controls, and writes docs/reference/pages.md.

python docs/make_page_images.py           # docs/images/pages and docs/reference/pages.md
python docs/make_page_images.py --count   # only print: page, controls in sight, the primary action

The store is the complete demo. A control counts once however many rows repeat it, a group of choices or a list of rows
as one; what is folded away (Advanced, Details, More) does not count.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from make_screenshots import ROOT, environment, settle, workbench
from PIL import Image
from playwright.sync_api import Error, sync_playwright

from pages.shell import navigation
from tests.browser.find import find

IMAGES = ROOT / "docs" / "images" / "pages"
PAGE = ROOT / "docs" / "reference" / "pages.md"
PAGES = [key for tabs in navigation.SECTIONS.values() for key in tabs]
TALLEST = {1440: 1_100, 390: 1_400}  # pixels of a page that are shown, by width
COLOURS = 64
CONTROLS = """() => {
  const GROUPS = "[role=radiogroup], [role=tablist], [role=toolbar], [role=group], [role=grid], [role=listbox], table,"
    + " ul, ol, canvas, [data-testid=stButtonGroup], [data-testid=stDataFrame], [data-testid=stFileUploader],"
    + " [data-testid=stNumberInput], [data-testid=stDateInput], [data-testid=stSelectbox], [data-testid=stMultiSelect]"
  const ALONE = "button, input, select, textarea, summary, [role=slider], [data-testid=stPageLink] a"
  const seen = (node) => getComputedStyle(node).display === "contents"
    || node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })
  const inside = (node) => [...node.children, ...(node.shadowRoot ? node.shadowRoot.children : [])]
  const acts = (node) => node.matches(ALONE) || inside(node).some((one) => seen(one) && acts(one))
  const words = (node) => [...node.childNodes].map((one) => one.nodeType === 3 ? one.data
    : one.nodeType !== 1 || one.matches("[data-testid=stIconMaterial]") ? "" : words(one)).join(" ")
  const says = (node) => (node.getAttribute("aria-label") || words(node) || node.type || "").trim().slice(0, 60)
  const found = new Set()
  let primary = ""
  const walk = (node) => {
    if (!seen(node) || node.matches("header.ts-bar, dialog, [aria-label^=Help]")) return
    if (!primary && node.matches("[data-testid^=stBaseButton-primary], [class~=primary]")) primary = says(node)
    if (node.matches(GROUPS) && acts(node)) {
      inside(node).forEach(function look(one) {
        if (!primary && one.matches("[data-testid^=stBaseButton-primary], [class~=primary]")) primary = says(one)
        inside(one).forEach(look)
      })
      return found.add(`${node.tagName} ${says(node)}`)
    }
    const row = [...node.classList].find((one) => /^st-key-.*-(row|cause)-/.test(one))
    if (row && acts(node)) return found.add(row.replace(/-(row|cause)-.*/, "-$1"))
    if (node.matches(ALONE)) {
      const kind = node.type === "checkbox" ? "checkbox" : `${node.tagName} ${says(node)}`
      return found.add(kind)
    }
    // Rows of one kind, three or more, are a list of which one is as good as all.
    const kind = (one) => `${one.tagName} ${one.className}`
    const streamlits = (one) => !one.className || /\\bst|element-container/.test(one.className)
    const rows = inside(node).filter((one) => !streamlits(one) && seen(one) && acts(one))
    const names = rows.map(kind)
    const often = new Set(names.filter((name) => names.filter((other) => other === name).length > 2))
    const met = new Set()
    for (const one of inside(node)) {
      const name = kind(one)
      if (often.has(name) && rows.includes(one)) {
        if (!met.has(name)) found.add(`rows of ${name}`)
        met.add(name)
      } else walk(one)
    }
  }
  walk(document.querySelector(".stMain"))
  return { primary, controls: [...found] }
}"""


def shoot(page: Any, path: Path) -> None:
    """The page at hand as tall as it is, within what is shown of that width, in few colours."""
    width = page.viewport_size["width"]
    height = int(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
    page.set_viewport_size({"width": width, "height": max(800, min(height + 1, TALLEST[width]))})
    settle(page)
    page.screenshot(path=path, animations="disabled", caret="hide")
    with Image.open(path) as whole:
        few = whole.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    page.set_viewport_size({"width": width, "height": 800})


def visit(page: Any, url: str) -> None:
    page.goto(url)
    page.locator("header.ts-bar").wait_for()
    settle(page)


def name(key: str) -> str:
    section = navigation.section_of(key)
    return section if navigation.name(key) == section else f"{section}: {navigation.name(key)}"


def table(found: dict[str, dict[str, Any]]) -> str:
    rows = [f"| {name(key)} | {len(it['controls'])} | {it['primary'] or '–'} |" for key, it in found.items()]
    return "\n".join(["| page | controls in sight | its one primary action |", "|---|---|---|", *rows])


def document(found: dict[str, dict[str, Any]], images: Path) -> str:
    """The page of the documentation: the table, then every page that was shot."""
    parts = [
        "# The pages",
        "Every page on the complete demo (`python -m calibrate demo`), made by `python docs/make_page_images.py`.\n"
        "A control counts once however many rows repeat it; what is folded away (under Advanced, say) does not.",
        table(found),
    ]
    for key in found:
        shots = [
            f"![{name(key)}, {width} px, {theme}](../images/pages/{file})"
            for width in TALLEST
            for theme in ("light", "dark")
            if (images / (file := f"{key}-{width}-{theme}.png")).is_file()
        ]
        parts += [f"## {name(key)}", "\n".join(shots)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="shoot nothing; print the table, then what was counted")
    parser.add_argument("--only", nargs="+", choices=PAGES, default=PAGES, metavar="PAGE")
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--port", type=int, default=8598)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        demo = [sys.executable, "-m", "calibrate", "demo"]
        subprocess.run(demo, cwd=folder, env=environment(ROOT), check=True, stdout=subprocess.DEVNULL)
        with workbench(ROOT, folder, args.port) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
            for width in [1440] if args.count else TALLEST:
                for theme in ["light"] if args.count else ["light", "dark"]:
                    size = {"width": width, "height": 800}
                    context = browser.new_context(viewport=size, color_scheme=theme)
                    context.set_default_timeout(60_000)
                    page = context.new_page()
                    visit(page, address)  # the first session of a server by the home page: see pages/shell/serve.py
                    for key in args.only:
                        try:
                            visit(page, f"{address}/{key}")
                            if key not in found:
                                found[key] = page.evaluate(CONTROLS)
                            if not args.count:
                                shoot(page, args.out / f"{key}-{width}-{theme}.png")
                        except Error as error:
                            print(f"{key}: {error.message.splitlines()[0]}", file=sys.stderr)
                    context.close()
            browser.close()
    print(table(found))
    if args.count:
        for key, it in found.items():
            print(f"{key}: {' | '.join(it['controls'])}")
    elif args.only == PAGES and args.out == IMAGES:
        PAGE.write_text(document(found, args.out), encoding="utf-8")


if __name__ == "__main__":
    main()
