"""`import`."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import TRUNCATED, pairs, said, say, store
from calibrate.errors import BadInput
from calibrate.ingest import ImportReport, import_file
from calibrate.ingest.record import RECORD_FIELDS


def run(args: Namespace) -> Answer:
    columns = pairs(args.column, "--column")
    for name in columns:
        if name not in RECORD_FIELDS:
            fields = ", ".join(sorted(RECORD_FIELDS))
            raise BadInput(f"--column {name}=…: a trace has no field {name!r}; it has {fields}")
    found = store(args, create=True)
    total: dict[str, Any] = {"imported": 0, "duplicates": 0, "rejected": 0, "labels": 0, "repaired": 0, "cut": False}
    left_out: Counter[str] = Counter()
    errors: list[dict[str, Any]] = []
    lines: list[str] = []
    for path in args.files:

        def progress(report: ImportReport, path: str = path) -> None:
            say(f"{path}: {report.imported:,} imported, {report.share:.0%}")

        report = import_file(
            found.traces,
            path,
            format=args.format,
            columns=columns or None,
            labels_as=args.labels_as,
            strict=args.strict,
            on_progress=progress,
        )
        said()
        document = report.as_json()
        for key in total:
            total[key] += document[key]
        left_out.update(document["left_out"])
        errors += [{**error, "file": path} for error in document["errors"]]
        lines += _import_lines(path, report, labels_as=args.labels_as)
    nothing = total["rejected"] > 0 and total["imported"] + total["duplicates"] == 0
    cut = total["cut"] = bool(total["cut"])
    document = {**total, "left_out": dict(left_out), "errors": errors}
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or cut else 0)


def _import_lines(path: str, report: ImportReport, *, labels_as: str | None) -> Iterable[str]:
    yield (
        f"{path}: {report.imported:,} imported, {report.duplicates:,} there already, {report.rejected:,} rejected, "
        f"{report.labels:,} labels"
    )
    for error in report.errors[:20]:
        yield f"  line {error.line}: {error.reason}"
    if report.rejected > 20:
        yield f"  … and {report.rejected - 20:,} more; --json lists the first {len(report.errors):,}"
    if report.cut:
        yield f"  {TRUNCATED}"
    if report.repaired:
        yield f"  {report.repaired:,} characters that no database can hold became U+FFFD"
    for name, count in report.left_out.items():
        yield f"  field {name!r} was not kept ({count:,} records)"
    if labels_as is None and report.imported:
        yield "  labels in the file, if any, were left out: --labels-as NAME brings them in"
