"""Writes docs/reference/detectors.md from the detectors themselves: `make docs`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "detectors.md"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from calibrate import registry  # noqa: E402
from calibrate.detectors.base import Detector  # noqa: E402
from calibrate.registry import Parameter  # noqa: E402

INTRODUCTION = """\
# Detectors

`make docs` writes this page from the code; do not edit it. `python -m calibrate detectors` prints the same, with what
is ready on your machine. [Write a detector](../how-to/write-a-detector.md) shows how to add one.

A value stays in the detector's own units. It is flagged above or below a threshold that you choose. A detector
*abstains* when a trace lacks what it needs, it *fails* when something goes wrong, and an answer that declines to answer
is a *refusal*. None of these is a score of 0. The *usual threshold* is what common recipes use; nothing in Touchstone
applies it by itself. `variant=plain` is the recipe as commonly published, so that you can see what it would have given
you.
"""


def reference() -> str:
    """The whole page."""
    names = [name for name in registry.installed() if registry.get(name).__module__.startswith("calibrate.")]
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
    for parameter in registry.parameters(cls):
        default = f"`{parameter.default}`" if parameter.default != "" else "empty"
        yield f"| `{parameter.name}` | {default} | {_takes(parameter)} | {_cell(parameter.help)} |"


def _takes(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(f"`{choice}`" for choice in parameter.choices)
    kind = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text"}[parameter.type]
    if parameter.low is not None and parameter.high is not None:
        return f"{kind}, {parameter.low:g} to {parameter.high:g}"
    return f"{kind}, {parameter.low:g} or more" if parameter.low is not None else kind


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    page = reference()
    changed = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page
    if changed:
        PAGE.write_text(page, encoding="utf-8")
    print(f"docs/reference/{PAGE.name}: {'written anew' if changed else 'up to date'}")
