"""Verbs about detectors side by side: the scoreboard, and what a score says in percent."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from calibrate.cli import Answer
from calibrate.cli.common import outfile, store, table
from calibrate.errors import TouchstoneError
from calibrate.orientation import SIGNS
from calibrate.report.sentences import scoreboard as words
from calibrate.report.sentences.compare import nothing_paired
from calibrate.types import Interval
from calibrate.workflow.tuning import scoreboard as step

COLUMNS = (
    "detector",
    "AUROC",
    "AP",
    "precision",
    "recall",
    "at",
    "coverage",
    "n",
    "not run",
    "ms",
    "$/1,000",
    "calls",
    "explains",
)


def run(args: Namespace) -> Answer:
    target = outfile(args.csv, replace=args.force) if args.csv else None
    board = step.scoreboard(store(args), sample=args.sample)
    if target is not None:
        try:
            target.write_text(words.as_csv(board), encoding="utf-8", newline="")
        except OSError as error:
            raise TouchstoneError(f"cannot write {args.csv!r}: {error.strerror or error}") from None
    document = {
        "sample": board.sample,
        "n": board.n,
        "positives": board.positives,
        "refusals": board.refused,
        "leader": board.leader,
        "against": [
            {
                "other": one.other,
                "beyond": one.beyond,
                **asdict(one.result),
                "missing": nothing_paired(one.result),
            }
            for one in board.against
        ],
        "said": words.sentences(board),
        "detectors": [words.flat(line) for line in board.lines],
        "scored_nothing": words.silent(board),
    }
    written = [f"written to {args.csv}"] if target else []
    return Answer(document, "\n".join([*words.sentences(board), "", *_shown(board), *written]))


def _shown(board: step.Scoreboard) -> list[str]:
    lines = [table([COLUMNS, *(_cells(line) for line in board.lines)], right=(*range(1, 5), *range(6, 12)))]
    lines += [f"{name} could score nothing: {why}" for name, why in words.silent(board).items()]
    return lines


def _cells(line: step.Line) -> tuple[str, ...]:
    point, spent = line.point, line.spent
    at = f"{SIGNS[point.flag_when]} {point.threshold:.4g}, {point.chosen}" if point else "–"
    cost = "unknown" if spent.cost_per_1000 is None else f"{spent.cost_per_1000:.2f}"
    return (
        f"({line.name})" if line.baseline else line.name,
        _figure(line.auroc),
        _figure(line.average_precision),
        _figure(point.precision) if point else "–",
        _figure(point.recall) if point else "–",
        at,
        f"{line.coverage:.0%}",
        f"{line.scored}",
        f"{line.not_run}" if line.not_run else "–",
        "–" if spent.milliseconds is None else f"{spent.milliseconds:.2g}",
        cost,
        f"{spent.calls:.3g}",
        "yes" if spent.explains else "no",
    )


def _figure(figure: Interval) -> str:
    return "–" if figure.value is None else f"{figure.value:.2f} ({_range(figure)})"


def _range(figure: Interval) -> str:
    if figure.low is None or figure.high is None:
        return "?"
    return f"{figure.low:.2f}–{figure.high:.2f}"
