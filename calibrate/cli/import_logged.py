"""`import --logged`: take in the answers that programs logged straight into the store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.imports import left_purged, replaced
from calibrate.workflow.traces.logged import take_logged

MOST_ERRORS = 20  # on a terminal; --json lists the first thousand


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """`row` is its number in the table `logged`."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class LoggedDocument:
    """What became of the answers that waited. None of them waits any more."""

    imported: int
    duplicates: int
    rejected: int
    purged: int
    labels_left_out: int
    left_out: Mapping[str, int]
    redacted: Mapping[str, int]
    errors: Sequence[RejectedRow]


def import_logged(args: Namespace) -> Answer:
    others = (args.column, args.labels_as, args.no_labels, args.design, args.strict, args.files, args.preview)
    if any(others) or args.format != "auto":
        raise BadInput("--logged takes in what programs logged: leave out files and what is about files")
    store = open_store(args)
    stopped = when_stopped(lambda: "what was taken in is in the store; the same command goes on from there")
    with stopped, progress(args, "importing", "answer") as advance:
        taken = take_logged(store, redact=args.redact, again=args.again, on_progress=advance, now=now())
    document = LoggedDocument(
        imported=taken.imported,
        duplicates=taken.duplicates,
        rejected=taken.rejected,
        purged=taken.purged,
        labels_left_out=taken.labels_left_out,
        left_out=taken.left_out,
        redacted=taken.redacted,
        errors=[RejectedRow(error.line, error.reason) for error in taken.errors],
    )
    lines = [
        f"{count(taken.imported, 'logged answer')} imported, {count(taken.duplicates)} in the store already, "
        f"{count(taken.rejected)} rejected"
    ]
    lines += [f"  row {error.line}: {error.reason}" for error in taken.errors[:MOST_ERRORS]]
    if taken.rejected > MOST_ERRORS:
        lines.append(f"  … and {count(taken.rejected - MOST_ERRORS)} more; --json lists the first {len(taken.errors)}")
    if taken.purged:
        lines.append(f"  {left_purged(taken.purged)}: `import --logged --again` takes them in")
    if taken.redacted:
        lines.append(f"  {replaced(taken.redacted)}")
    lines += [f"  field {name!r} was not imported ({count(n, 'record')})" for name, n in taken.left_out.items()]
    return Answer(document, "\n".join(lines))
