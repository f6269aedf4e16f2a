"""Checks the built site: `python docs/check_site.py site`. Zensical's strict mode sees broken links, this the rest.

Every link, image, script and style of every page leads to a file of the site, every anchor to an element, and a page
loads nothing from another host.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}


class Page(HTMLParser):
    """The identifiers of a page, where it leads and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif (attribute := LOADED.get(tag)) and attribute in values and values.get("rel") != "canonical":
            self.loads.add(values[attribute])


def problems(site: Path) -> list[str]:
    """One sentence for each link or resource that leads nowhere or elsewhere."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    sentences = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for load in sorted(page.loads):
            if urlsplit(load).netloc:
                sentences.append(f"{name} loads {load} from another host")
        for target in sorted(page.links | page.loads):
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            file = (path.parent / unquote(url.path)).resolve() if url.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                sentences.append(f"{name} leads to {target}: there is no such file")
            elif url.fragment and file in pages and unquote(url.fragment) not in pages[file].anchors | {"__top"}:
                sentences.append(f"{name} leads to {target}: there is no such heading")
    return sentences


if __name__ == "__main__":
    sentences = problems(Path(sys.argv[1]))
    sys.exit("\n".join(sentences) or 0)
