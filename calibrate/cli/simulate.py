"""`simulate`: measure what the statistics promise, where the truth is known."""

from __future__ import annotations

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
threshold flags fewer than 100 fresh traces are left out. ± is the Monte Carlo standard error."""


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
    if args.drift:
        return _drift(args)
    if args.gate:
        return _gate(args)
    if args.segments:
        return _segments(args)
    if args.align:
        return _align(args)
    if args.learn:
        return _learn(args)
    from calibrate.simulate.targets import SEED, measure

    seed = SEED if args.seed is None else args.seed
    with progress(args, "simulating", "scenario") as advance:
        report = measure(args.replications, seed=seed, labels=args.labels, on_progress=advance)
    head = f"{numbers.count(report.replications, 'replication')}, {args.labels} labels, seed {report.seed}"
    return Answer(report, f"{head}\n\n{targets(report.rows)}\n\n{EXPLANATION}")


def _drift(args: Namespace) -> Answer:
    from calibrate.simulate.drifting import SEED, measure

    seed = SEED if args.seed is None else args.seed
    with progress(args, "simulating", "part") as advance:
        report = measure(args.replications, seed=seed, on_progress=advance)
    head = f"{numbers.count(report.replications, 'replication')}, seed {report.seed}"
    return Answer(report, f"{head}\n\n{targets(report.rows)}\n\n± is the Monte Carlo standard error.")


def _gate(args: Namespace) -> Answer:
    from calibrate.simulate.gating import SEED, measure

    seed = SEED if args.seed is None else args.seed
    with progress(args, "simulating", "part") as advance:
        report = measure(args.replications, seed=seed, on_progress=advance)
    head = f"{numbers.count(report.replications, 'replication')}, seed {report.seed}"
    return Answer(report, f"{head}\n\n{targets(report.rows)}\n\n± is the Monte Carlo standard error.")


def _segments(args: Namespace) -> Answer:
    from calibrate.simulate.segments import SEED, measure

    seed = SEED if args.seed is None else args.seed
    with progress(args, "simulating", "cell") as advance:
        report = measure(args.replications, seed=seed, on_progress=advance)
    head = f"{numbers.count(report.replications, 'replication')}, seed {report.seed}"
    worst = [f"{row.name.strip()}: {row.where}" for row in report.rows if row.met is not None]
    lines = [head, "", targets(report.rows), "", *worst, "± is the Monte Carlo standard error."]
    return Answer(report, "\n".join(lines))


def _align(args: Namespace) -> Answer:
    from calibrate.simulate.aligning import SEED, measure

    seed = SEED if args.seed is None else args.seed
    with progress(args, "simulating", "part") as advance:
        report = measure(args.replications, seed=seed, on_progress=advance)
    head = f"{numbers.count(report.replications, 'replication')}, seed {report.seed}"
    return Answer(report, f"{head}\n\n{targets(report.rows)}\n\n± is the Monte Carlo standard error.")


def _learn(args: Namespace) -> Answer:
    from calibrate.simulate.learning import SEED, measure

    seed = SEED if args.seed is None else args.seed
    with progress(args, "simulating", "world") as advance:
        report = measure(args.replications, seed=seed, on_progress=advance)
    head = f"{numbers.count(report.replications, 'replication')}, seed {report.seed}"
    return Answer(report, f"{head}\n\n{targets(report.rows)}\n\n± is the Monte Carlo standard error.")


def targets(rows: Sequence[Row]) -> str:
    """Show every target beside what was measured."""
    lines = [("figure", "target", "measured", "", "lowest–highest", "")]
    for row in rows:
        error = "" if row.error is None else f"± {numbers.decimals(row.error)}"
        verdict = "" if row.met is None else "met" if row.met else "NOT met"
        reach = numbers.decimal_interval(row.low, row.high)
        lines.append((row.name, row.target, numbers.decimals(row.measured), error, reach, verdict))
    return table(lines, right=(2, 3, 4))
