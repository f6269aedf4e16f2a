"""`weekly`."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, output_path
from calibrate.errors import BadInput
from calibrate.sanitize import visible
from calibrate.thresholds.files import deliver


def run(args: Namespace) -> Answer:
    from calibrate.report.sentences import weekly as sentences
    from calibrate.workflow.week import weekly as step

    if args.size < 1:
        raise BadInput(f"a sample of {args.size} traces holds nothing: ask for at least 1")
    out = None if args.out is None else output_path(args.out, replace=True)
    done = step.weekly(open_store(args), size=args.size, now=now())
    lines = [f"{done.week}: {sentences.verdict(done)}"]
    lines += [f"{row.detector}: {sentences.scored(row)}" for row in done.scored]
    if done.sample:
        word = "drawn" if done.drawn else "there already"
        lines.append(f"sample {done.sample.name} {word}: {done.sample.size:,} of {done.sample.pool:,} traces")
    if out is not None:
        from calibrate.report.weekly_html import page

        deliver(page(done).encode(), str(out))
        lines.append(f"the report is in {out}")
    lines += [f"Next: {visible(one, 500)}" for one in sentences.next_steps(done)]
    return Answer({**sentences.document(done), "path": str(out) if out else None}, "\n".join(lines))
