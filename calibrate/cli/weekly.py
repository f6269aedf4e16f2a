"""`weekly`: the mechanical part of the week."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, output_path
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.sanitize import visible
from calibrate.thresholds.files import deliver


def run(args: Namespace) -> Answer:
    from calibrate.report.sentences import weekly as sentences
    from calibrate.workflow.week import weekly as step

    if args.size < 1:
        raise BadInput(f"a sample of {args.size} traces holds nothing: ask for at least 1")
    out = None if args.out is None else output_path(args.out, replace=True)
    report = step.weekly(open_store(args), size=args.size, now=now())
    lines = [f"{report.week}: {sentences.verdict(report)}"]
    lines += [f"{row.detector}: {sentences.scored(row)}" for row in report.scored]
    if report.sample:
        word = "drawn" if report.drawn else "exists already"
        size = f"{numbers.count(report.sample.size)} of {numbers.count(report.sample.pool)}"
        lines.append(f"sample {report.sample.name} {word}: {size} traces")
    if out is not None:
        from calibrate.report.weekly_html import page

        deliver(page(report).encode(), str(out))
        lines.append(f"the report is in {out}")
    lines += [f"Next: {visible(hint, 500)}" for hint in sentences.next_steps(report)]
    return Answer({**sentences.document(report), "path": str(out) if out else None}, "\n".join(lines))
