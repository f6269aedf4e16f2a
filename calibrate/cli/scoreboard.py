"""`scoreboard`: every detector on the same labels, beside trivial baselines."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from calibrate.cli import Answer
from calibrate.cli.common import open_store, output_path
from calibrate.cli.output import table
from calibrate.errors import TouchstoneError
from calibrate.report.sentences import scoreboard as sentences
from calibrate.report.sentences.compare import nothing_paired
from calibrate.report.tables.column import as_csv, cells, record, right
from calibrate.report.tables.scoreboard import IN_FILES, ON_TERMINAL
from calibrate.workflow.tuning import scoreboard as step


def run(args: Namespace) -> Answer:
    target = output_path(args.csv, replace=args.force) if args.csv else None
    board = step.scoreboard(open_store(args), sample=args.sample)
    if target is not None:
        try:
            target.write_text(as_csv(IN_FILES, board.lines), encoding="utf-8", newline="")
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
                "other": lead.other,
                "beyond": lead.beyond,
                **asdict(lead.result),
                "missing": nothing_paired(lead.result),
            }
            for lead in board.against
        ],
        "said": sentences.sentences(board),
        "detectors": [record(IN_FILES, line) for line in board.lines],
        "scored_nothing": sentences.silent(board),
    }
    written = [f"written to {args.csv}"] if target else []
    return Answer(document, "\n".join([*sentences.sentences(board), "", *_shown(board), *written]))


def _shown(board: step.Scoreboard) -> list[str]:
    lines = [table(cells(ON_TERMINAL, board.lines), right=right(ON_TERMINAL))]
    lines += [f"{name} could score nothing: {why}" for name, why in sentences.silent(board).items()]
    return lines
