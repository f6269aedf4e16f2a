"""Draws docs/images/rooms.svg, the rooms of the code and who imports whom, from the imports themselves: `make docs`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
sys.path.insert(0, str(ROOT))

# Floors from the roof to the cellar. Lines lead down.
FLOORS = (
    ("pages", "cli"),
    ("report", "simulate"),
    ("workflow",),
    ("ingest", "runtime"),
    ("engines", "registry, serve"),
    ("detectors", "thresholds"),
    ("backends", "stats", "db"),
    ("types, errors, settings …",),
)
MACHINERY, WORDS = FLOORS[4][1], FLOORS[7][0]
MACHINES = {"calibrate.registry", "calibrate.serve"}
LINES = {
    "pages": "the workbench: one folder a page",
    "cli": "python -m calibrate <verb>",
    "report": "figures become text",
    "simulate": "promises, measured",
    "workflow": "the steps of the loop, composed with the store",
    "runtime": "decide, Guard, alerts, spans",
    "engines": "run detectors, here or in workers",
    "ingest": "one file a trace format",
    MACHINERY: "find detectors; hand releases out",
    "detectors": "one file a detector",
    "thresholds": "the file: model, read, write",
    "stats": "arrays in, figures out",
    "backends": "models and parsers, lazy",
    "db": "SQLite or PostgreSQL",
    WORDS: "the words and rules that everyone uses",
}
INSIDE = {
    "pages": ("week", "traces", "label", "detect", "thresholds", "release", "watch", "components", "shell"),
    "workflow": (
        *(
            "traces",
            "detection",
            "evidence",
            "sampling",
            "labelling",
            "pulling",
            "tuning",
            "certification",
            "releasing",
        ),
        *("releasing", "watching", "upgrade", "week", "upkeep"),
    ),
    "stats": ("sweep", "intervals", "choosing", "certification …"),
}
WIDTH, MARGIN, GAP, HEIGHT, BETWEEN = 880, 20, 44, 62, 36
STYLE = """
  text { font-family: system-ui, sans-serif; fill: #55524b; font-size: 14px }
  .inside { font-size: 13px } .name { fill: #1d1f23; font-weight: 600; font-size: 17px }
  .paper { fill: #fbfaf7 } .room { fill: #fff; stroke: #8a8478 }
  .edge { fill: none; stroke: #7a5a00; stroke-width: 2; stroke-opacity: .55 }
  @media (prefers-color-scheme: dark) {
    text { fill: #b9b5ac } .name { fill: #e8e6e1 }
    .paper { fill: #15171b } .room { fill: #1f2228; stroke: #6d6a63 }
    .edge { stroke: #d9a92c }
  }
"""


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def room_of(module: str) -> str:
    package, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    if package != "calibrate":
        return package
    return name if name in LINES else MACHINERY if module in MACHINES else WORDS


def edges() -> set[tuple[str, str]]:
    """Who imports whom, from a room down to another, without the words that everyone imports."""
    graph = grimp.build_graph("calibrate", "db", "pages", cache_dir=None)
    floor_of = {room: level for level, floor in enumerate(FLOORS) for room in floor}
    pairs = (
        (room_of(module), room_of(target))
        for module in graph.modules
        for target in graph.find_modules_directly_imported_by(module)
    )
    return {pair for pair in pairs if floor_of[pair[0]] < floor_of[pair[1]] and WORDS not in pair}


def drawn(pairs: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The edges that no longer way down implies (the transitive reduction), so that the picture stays readable."""
    below: dict[str, set[str]] = {}
    for room in (room for floor in reversed(FLOORS) for room in floor):
        targets = {imported for importer, imported in pairs if importer == room}
        below[room] = targets.union(*(below[target] for target in targets))
    return [
        (importer, imported)
        for importer, imported in sorted(pairs)
        if not any(imported in below[between] for upper, between in pairs if upper == importer)
    ]


def boxes() -> dict[str, Box]:
    placed, y = {}, float(MARGIN)
    for floor in FLOORS:
        height = HEIGHT + (20 if any(room in INSIDE for room in floor) else 0)
        weights = [2.4 if room in INSIDE and len(floor) == 2 else 1.6 if room in INSIDE else 1 for room in floor]
        space, x = WIDTH - 2 * MARGIN - GAP * (len(floor) - 1), float(MARGIN)
        for room, weight in zip(floor, weights, strict=True):
            width = space * weight / sum(weights)
            placed[room] = Box(x, y, width, height)
            x += width + GAP
        y += height + BETWEEN
    return placed


def picture() -> str:
    places = boxes()
    height = max(box.y + box.height for box in places.values()) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
        "<title>The rooms of the code, from the pages above to the words below; a line is an import</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height:.0f}" rx="10"/>',
    ]
    parts += [_edge(places[upper], places[lower]) for upper, lower in drawn(edges())]
    parts += [_room(name, box) for name, box in places.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _edge(upper: Box, lower: Box) -> str:
    """A curve from the foot of a room to the head of a lower one."""
    start, end = upper.y + upper.height, lower.y
    # Leave and arrive on the side that the other room is on, so that lines fan out.
    lean = max(-0.4, min(0.4, (lower.middle - upper.middle) / WIDTH))
    x1, x2 = upper.middle + lean * upper.width, lower.middle - lean * lower.width
    bend = (end - start) / 2
    return (
        f'<path class="edge" d="M {x1:.0f} {start:.0f} C {x1:.0f} {start + bend:.0f} '
        f'{x2:.0f} {end - bend:.0f} {x2:.0f} {end:.0f}"/>'
    )


def _room(name: str, box: Box) -> str:
    lines = [(name, "name", 28), (LINES[name], "line", 50)]
    if name in INSIDE:
        lines.append((" · ".join(INSIDE[name]), "inside", 74))
    texts = [
        f'<text class="{style}" text-anchor="middle" x="{box.middle:.0f}" y="{box.y + down:.0f}">{escape(text)}</text>'
        for text, style, down in lines
    ]
    outline = (
        f'<rect class="room" x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="8"/>'
    )
    return "\n".join([outline, *texts])


if __name__ == "__main__":
    svg = picture()
    changed = not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != svg
    if changed:
        PICTURE.write_text(svg, encoding="utf-8")
    print(f"docs/images/{PICTURE.name}: {'drawn anew' if changed else 'up to date'}")
