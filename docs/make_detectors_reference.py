"""Writes docs/detectors.md from the detectors themselves: `make docs`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "detectors.md"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from calibrate import registry  # noqa: E402
from calibrate.detectors.base import Detector  # noqa: E402
from calibrate.registry import Parameter  # noqa: E402

INTRODUCTION = """\
# Detectors

Written from the code by `make docs`; do not edit. `python -m calibrate detectors` shows the same with what is ready on
your machine; [writing-a-detector.md](writing-a-detector.md) shows how to add one.

A value stays in the detector's own units, and is flagged above or below a threshold that you choose. What a trace lacks
makes a detector *abstain*, what goes wrong makes it *fail*, an answer that declines to answer is a *refusal*: none of
them is a 0. *Usual threshold* is what common recipes use; nothing here uses it by itself. `variant=plain` is the recipe
as commonly published, to see what you would have got.
"""


def reference() -> str:
    """The whole page."""
    names = [name for name in registry.names() if registry.get(name).__module__.startswith("calibrate.")]
    rows = ["| detector | value | flagged | needs |", "|---|---|---|---|"]
    rows += [_row(registry.get(name)) for name in names]
    return (
        "\n\n".join([INTRODUCTION.rstrip(), "\n".join(rows), *(_section(registry.get(name)) for name in names)]) + "\n"
    )


def _row(cls: type[Detector]) -> str:
    needs = ", ".join(sorted(cls.needs))
    return f"| [`{cls.name}`](#{cls.name}) | {_cell(cls.unit)} | {cls.flag_when} | {needs} |"


def _section(cls: type[Detector]) -> str:
    low, high = (f"{bound:g}" for bound in cls.bounds)
    facts = [
        f"- Value: {cls.unit}; from {low} to {high}".replace("inf", "∞"),
        f"- Flagged {cls.flag_when} the threshold; usual threshold {cls.usual_threshold:g}",
        f"- Needs: {', '.join(sorted(cls.needs))}",
        f"- Version: {cls.version}",
    ]
    return "\n\n".join([f"## {cls.name}", f"**{cls.title}.** {_prose(cls)}", "\n".join(facts), "\n".join(_table(cls))])


def _prose(cls: type[Detector]) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(cls.__doc__ or ""))


def _table(cls: type[Detector]) -> Iterator[str]:
    yield "| parameter | default | takes | |"
    yield "|---|---|---|---|"
    for one in registry.parameters(cls):
        default = f"`{one.default}`" if one.default != "" else "empty"
        yield f"| `{one.name}` | {default} | {_takes(one)} | {_cell(one.help)} |"


def _takes(one: Parameter) -> str:
    if one.choices:
        return ", ".join(f"`{choice}`" for choice in one.choices)
    kind = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text"}[one.type]
    if one.low is not None and one.high is not None:
        return f"{kind}, {one.low:g} to {one.high:g}"
    return f"{kind}, {one.low:g} or more" if one.low is not None else kind


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    made = reference()
    changed = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made
    if changed:
        PAGE.write_text(made, encoding="utf-8")
    print(f"docs/{PAGE.name}: {'written anew' if changed else 'up to date'}")
