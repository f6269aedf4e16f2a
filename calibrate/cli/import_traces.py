"""`import`: take traces in from files. (The module has another name: `import` is a word of Python's.)"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.cli import Answer
from calibrate.cli.common import TRUNCATED, open_store, parse_pairs
from calibrate.cli.progress import progress
from calibrate.errors import BadInput
from calibrate.ingest import ImportReport, import_file
from calibrate.ingest.record import RECORD_FIELDS
from calibrate.report.numbers import count

MOST_ERRORS = 20  # on a terminal; --json lists the first thousand


@dataclass(frozen=True, slots=True)
class RejectedLine:
    line: int | None
    reason: str
    file: str


@dataclass(frozen=True, slots=True)
class ImportDocument:
    """What became of all files together."""

    imported: int
    duplicates: int
    rejected: int
    labels: int
    repaired: int
    cut: bool
    left_out: Mapping[str, int]
    errors: Sequence[RejectedLine]


def run(args: Namespace) -> Answer:
    columns = parse_pairs(args.column, "--column")
    for name in columns:
        if name not in RECORD_FIELDS:
            fields = ", ".join(sorted(RECORD_FIELDS))
            raise BadInput(f"--column {name}=…: a trace has no field {name!r}; it has {fields}")
    store = open_store(args, create=True)
    reports: dict[str, ImportReport] = {}
    for path in args.files:
        with progress(args, Path(path).name) as advance:

            def on_progress(report: ImportReport) -> None:
                done = report.imported + report.duplicates + report.rejected
                advance(done, done / (report.share or 1.0))

            reports[path] = import_file(
                store.traces,
                path,
                format=args.format,
                columns=columns or None,
                labels_as=args.labels_as,
                strict=args.strict,
                on_progress=on_progress,
            )
    document = add_up(reports)
    nothing = document.rejected > 0 and document.imported + document.duplicates == 0
    lines = [line for path in reports for line in _lines(path, reports[path], labels_as=args.labels_as)]
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or document.cut else 0)


def add_up(reports: Mapping[str, ImportReport]) -> ImportDocument:
    """Add up what became of each file."""
    left_out: Counter[str] = Counter()
    for report in reports.values():
        left_out.update(report.left_out)
    return ImportDocument(
        imported=sum(report.imported for report in reports.values()),
        duplicates=sum(report.duplicates for report in reports.values()),
        rejected=sum(report.rejected for report in reports.values()),
        labels=sum(report.labels for report in reports.values()),
        repaired=sum(report.repaired for report in reports.values()),
        cut=any(report.cut for report in reports.values()),
        left_out=left_out,
        errors=[
            RejectedLine(error.line, error.reason, path) for path, report in reports.items() for error in report.errors
        ],
    )


def _lines(path: str, report: ImportReport, *, labels_as: str | None) -> Iterable[str]:
    yield (
        f"{path}: {count(report.imported)} imported, {count(report.duplicates)} in the store already, "
        f"{count(report.rejected)} rejected, {count(report.labels, 'label')}"
    )
    for error in report.errors[:MOST_ERRORS]:
        yield f"  line {error.line}: {error.reason}"
    if report.rejected > MOST_ERRORS:
        more = count(report.rejected - MOST_ERRORS)
        yield f"  … and {more} more; --json lists the first {count(len(report.errors))}"
    if report.cut:
        yield f"  {TRUNCATED}"
    if report.repaired:
        yield f"  {count(report.repaired, 'character')} that no database can hold became U+FFFD"
    for name, records in report.left_out.items():
        yield f"  field {name!r} was not imported ({count(records, 'record')})"
    if labels_as is None and report.imported:
        yield "  labels in the file, if any, were left out: --labels-as NAME imports them"
