"""The verb that measures what the statistics promise."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from calibrate.cli import Answer
from calibrate.cli.common import said, say, table
from calibrate.errors import BadInput

if TYPE_CHECKING:
    from calibrate.simulate.targets import Row

FEWEST = 50
ABOUT = """\
Violations: certified (or bounded, or measured) thresholds whose true precision is below the target of 0.70. Recall: the
share of what the best threshold with a precision of 0.70 would find, 0 where nothing was certified; cells in which that
threshold flags fewer than 100 fresh traces are left out. ± is the Monte Carlo standard error."""


def run(args: Namespace) -> Answer:
    if args.replications < FEWEST:
        raise BadInput(
            f"{args.replications} replications measure nothing: ask for {FEWEST} at least, 1,000 for a verdict"
        )
    if args.labels < 100:
        raise BadInput(f"{args.labels} labels are too few for both stages: ask for 100 at least")
    if args.seed is not None and args.seed < 0:
        raise BadInput(f"--seed {args.seed}: a seed is 0 or more")
    if args.drift:
        return _drift(args)
    from calibrate.simulate.targets import SEED, measure

    seed = SEED if args.seed is None else args.seed
    report = measure(args.replications, seed=seed, labels=args.labels, say=say)
    said()

    what = f"{report.replications:,} replications, {args.labels} labels, seed {report.seed}"
    return Answer(asdict(report), f"{what}\n\n{targets(report.rows)}\n\n{ABOUT}")


def _drift(args: Namespace) -> Answer:
    from calibrate.simulate.drifting import SEED, measure

    report = measure(args.replications, seed=SEED if args.seed is None else args.seed, say=say)
    said()
    what = f"{report.replications:,} replications, seed {report.seed}"
    return Answer(asdict(report), f"{what}\n\n{targets(report.rows)}\n\n± is the Monte Carlo standard error.")


def targets(rows: Sequence[Row]) -> str:
    """The targets with what was measured beside them."""
    lines = [("figure", "target", "measured", "", "lowest–highest", "")]
    for row in rows:
        error = "" if row.error is None else f"± {row.error:.3f}"
        verdict = "" if row.met is None else "met" if row.met else "NOT met"
        lines.append((row.name, row.target, f"{row.measured:.3f}", error, f"{row.low:.3f}–{row.high:.3f}", verdict))
    return table(lines, right=(2, 3, 4))
