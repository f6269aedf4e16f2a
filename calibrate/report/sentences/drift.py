"""A drift report in sentences: of every line, of the whole release, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING

from calibrate.sanitize import visible
from calibrate.stats.monitoring.drift import said

if TYPE_CHECKING:
    from calibrate.workflow.watching.drift import Line


def of_line(line: Line, why: str) -> str:
    """The plain verdict."""
    parts = [f"release made without {visible(line.model, 100)}"] if line.unseen else []
    if line.shift is not None and line.moved is not None:
        parts.append(said(line.detector, line.shift, line.moved))
    else:
        parts.append(f"{line.detector}: {why}: run `detect {line.detector} --all`")
    parts += [line.baseline] if line.baseline else []
    if line.state in ("moved", "recalibrate"):
        parts.append("the threshold is not known to hold")
    elif line.state == "holds":
        parts.append("holds as far as scores tell")
    return "; ".join(parts)


def verdict(
    version: int, lines: Sequence[Line], traces: int, *, since: datetime | None = None, left_out: int = 0
) -> str:
    """What is known of the whole release, in a sentence or a few. `since`: where the live window begins, if not with
    the release. `left_out`: models with little traffic."""
    name = f"release v{version}"
    began = f"{since:%Y-%m-%d %H:%M} UTC" if since else name
    if not traces:
        return f"No dated traces since {began}: nothing to compare yet."
    if not lines:
        return f"No detector of {name} may flag: nothing to compare."
    said_of = []
    if unseen := sorted({visible(line.model, 100) for line in lines if line.unseen}):
        said_of.append(
            f"Release v{version} was made without {', '.join(unseen)}, and its thresholds are not known there: "
            "label some of those answers, then recalibrate."
        )
    stale = any(line.baseline for line in lines)
    if moved := sorted({line.detector for line in lines if line.state == "moved"}):
        baseline = "; the entropy baseline is stale" if stale else ""
        said_of.append(f"Scores moved ({', '.join(moved)}){baseline}; thresholds are not known to hold.")
    elif stale:
        said_of.append("The entropy baseline is stale.")
    if unknown := sorted({line.detector for line in lines if line.state not in ("holds", "moved", "recalibrate")}):
        said_of.append(f"Not known for {', '.join(unknown)}.")
    if not any(line.state != "holds" for line in lines):
        seen = f"{traces:,} traces since{f' {began}' if since else ''}"
        said_of.insert(0, f"Release v{version} holds as far as scores tell ({seen}).")
    if left_out:
        said_of.append(f"{left_out} {'model' if left_out == 1 else 'models'} with little traffic left out.")
    return " ".join(said_of)


def next_step(lines: Sequence[Line], traces: int) -> str:
    """What to do about it: a command."""
    if not traces:
        return "import newer traces"
    if asks := [line for line in lines if line.state in ("moved", "recalibrate") and line.shift]:
        first = asks[0]
        model = f" --model {quote(visible(first.model, 100))}" if first.unseen else ""
        target, hint = ("", "") if first.promised else (" --target 0.7", ", or whatever precision is to hold")
        return f"label flagged traces until it is known: `recheck {first.detector}{model}{target}`{hint}"
    if waiting := sorted({line.detector for line in lines if line.state not in ("holds", "too few", "no reference")}):
        return f"score the traffic: `detect {' '.join(waiting)} --all`"
    return "nothing to do"
