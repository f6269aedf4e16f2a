"""`simulate`: measure what the statistics promise, where the truth is known."""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrate.cli import Answer
from calibrate.cli.output import table
from calibrate.cli.progress import progress
from calibrate.errors import BadInput
from calibrate.report import numbers

if TYPE_CHECKING:
    from calibrate.simulate.targets import Row

FEWEST_REPLICATIONS, FEWEST_LABELS = 50, 100
EXPLANATION = """\
Violations: certified (or bounded, or measured) thresholds whose true precision is below the target of 0.70. Recall: the
share of what the best threshold with a precision of 0.70 would find, 0 where nothing was certified; cells in which that
threshold flags fewer than 100 fresh traces are left out."""
ERROR = "± is the Monte Carlo standard error."
PROMISES = {
    "drift": ("drifting", "part"),
    "gate": ("gating", "part"),
    "segments": ("segments", "cell"),
    "align": ("aligning", "part"),
    "learn": ("learning", "world"),
}
"""By option: the module of calibrate.simulate that measures it, and what its progress counts."""


def run(args: Namespace) -> Answer:
    if args.replications < FEWEST_REPLICATIONS:
        raise BadInput(
            f"{args.replications} replications measure nothing: ask for at least {FEWEST_REPLICATIONS}, "
            "and for 1,000 to judge by"
        )
    if args.labels < FEWEST_LABELS:
        raise BadInput(f"{args.labels} labels are too few for both stages: ask for at least {FEWEST_LABELS}")
    if args.seed is not None and args.seed < 0:
        raise BadInput(f"--seed {args.seed}: a seed is 0 or more")
    option = next((option for option in PROMISES if getattr(args, option)), "")
    module, part = PROMISES.get(option, ("targets", "scenario"))
    simulation = importlib.import_module(f"calibrate.simulate.{module}")  # light verbs do without numpy
    seed = simulation.SEED if args.seed is None else args.seed
    labels = {} if option else {"labels": args.labels}
    with progress(args, "simulating", part) as advance:
        report = simulation.measure(args.replications, seed=seed, on_progress=advance, **labels)
    about = "" if option else f", {args.labels} labels"
    lines = [f"{numbers.count(report.replications, 'replication')}{about}, seed {report.seed}", ""]
    lines += [targets(report.rows), ""]
    if option == "segments":
        lines += [f"{row.name.strip()}: {row.where}" for row in report.rows if row.met is not None]
    lines.append(ERROR if option else f"{EXPLANATION} {ERROR}")
    return Answer(report, "\n".join(lines))


def targets(rows: Sequence[Row]) -> str:
    """Show every target beside what was measured."""
    lines = [("figure", "target", "measured", "", "lowest–highest", "")]
    for row in rows:
        error = "" if row.error is None else f"± {numbers.decimals(row.error)}"
        verdict = "" if row.met is None else "met" if row.met else "NOT met"
        reach = numbers.decimal_interval(row.low, row.high)
        lines.append((row.name, row.target, numbers.decimals(row.measured), error, reach, verdict))
    return table(lines, right=(2, 3, 4))
