"""The scoreboard as sentences, as rows of plain cells, and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from calibrate.orientation import SIGNS
from calibrate.sanitize import cell
from calibrate.stats.intervals.ranking import FEW
from calibrate.types import Interval
from calibrate.workflow.tuning.scoreboard import OVERLAP, Against, Line, Scoreboard, title_of


def sentences(board: Scoreboard) -> list[str]:
    """Who leads, and whether by more than chance over the next best and over the baselines."""
    if board.leader is None:
        few = f"No detector can be ranked: that takes at least {FEW} hallucinated and {FEW} clean labels with a score."
        return [few, *_missing(board), *_waiting(board)]
    best = board.line(board.leader)
    said = (
        f"{best.title} leads with an AUROC of {_figure(best.auroc)} ({best.scored:,} of {best.n:,} labels scored, "
        f"{best.positives:,} of the {best.n:,} hallucinated)."
    )
    return [said, *(_compared(one, board) for one in board.against), *_missing(board), *_waiting(board)]


def _compared(one: Against, board: Scoreboard) -> str:
    other = board.line(one.other)
    what = f"the baseline {title_of(one.other).lower()}" if other.baseline else f"the next best, {other.title}"
    found = one.result
    if found.auroc.low is None or found.auroc.high is None:
        return f"Over {what}: {found.n:,} labels that both scored do not say how far apart they are."
    verdict = "better beyond its interval" if one.beyond else "these labels do not tell the two apart"
    if found.auroc.high < 0:
        verdict = "worse beyond its interval, where both could score"
    reach = f"{_signed(found.auroc.low)} to {_signed(found.auroc.high)}"
    return (
        f"Over {what}: {_signed(found.auroc.value or 0.0)} ({reach}, {found.n:,} labels that both scored), {verdict}."
    )


def _missing(board: Scoreboard) -> list[str]:
    there = {line.name for line in board.lines} | set(board.silent)
    how = f"The baseline {OVERLAP} has no scores: run it, a detector that does not beat it adds nothing."
    return [] if OVERLAP in there else [how]


def _waiting(board: Scoreboard) -> list[str]:
    """Who was not run on every label: that is no lack of coverage."""
    some = [f"{line.title} on {line.not_run:,} of {line.n:,} labels" for line in board.lines if line.not_run]
    told = f"Not run: {', '.join(some)}. Coverage is of the rest; recall counts what was not run as not flagged."
    return [told] if some else []


def _figure(figure: Interval) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "unknown" if figure.value is None else f"{figure.value:.2f}"
    return f"{figure.value:.2f}, 95% {figure.low:.2f}–{figure.high:.2f}"


def _signed(value: float) -> str:
    text = f"{abs(value):.3f}"
    return text if float(text) == 0 else f"{'+' if value > 0 else '−'}{text}"


def as_csv(board: Scoreboard) -> str:
    """The table for a spreadsheet; a text that it would run as a formula is kept from that."""
    file = io.StringIO()
    writer = csv.writer(file)
    rows = [flat(line) for line in board.lines]
    writer.writerow(rows[0] if rows else ["detector"])
    writer.writerows([[cell(value) for value in row.values()] for row in rows])
    return file.getvalue()


def flat(line: Line) -> dict[str, Any]:
    """One line as one row of plain cells; None is unknown."""
    point = line.point
    areas = {"auroc": line.auroc, "average_precision": line.average_precision}
    there = {"precision": point.precision, "recall": point.recall} if point else {}
    bounds: dict[str, float | None] = {}
    for key in ("auroc", "average_precision", "precision", "recall"):
        found = {**areas, **there}.get(key, Interval(None))
        bounds |= {key: found.value, f"{key}_low": found.low, f"{key}_high": found.high}
    return {
        "detector": line.name,
        "baseline": line.baseline,
        "n": line.n,
        "scored": line.scored,
        "positives": line.positives,
        "not_run": line.not_run,
        "coverage": line.coverage,
        **bounds,
        "threshold": f"{SIGNS[point.flag_when]} {point.threshold:.6g}" if point else None,
        "policy": point.policy if point else None,
        "saved": point.saved if point else None,
        "flagged": point.flagged if point else None,
        "milliseconds": line.spent.milliseconds,
        "cost_per_1000": line.spent.cost_per_1000,
        "calls": line.spent.calls,
        "explains": line.spent.explains,
        "why": point.why if point else None,
    }
