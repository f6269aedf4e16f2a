"""`import --preview`: what files are, which fields they fill, and which detectors can run on them. Stores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from calibrate.cli import Answer
from calibrate.cli.output import table
from calibrate.ingest import Preview, preview
from calibrate.ingest.inspection.profile import FIELDS, MORE_FIELDS
from calibrate.report.numbers import count
from calibrate.report.sentences.imports import benchmark, can_run, field_name, filled, recognised, waits_for
from calibrate.workflow.detection.usable import Usable, by_missing, usable

MOST_ERRORS = 5


@dataclass(frozen=True, slots=True)
class DetectorDocument:
    """`able` of the traces that were looked at have all that it reads; `lacks` counts those without a field."""

    able: int
    lacks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PreviewDocument:
    """What one file is. `n` of its traces were looked at: all where it is `whole`, else those of its beginning."""

    file: str
    format: str
    title: str
    n: int
    rejected: int
    whole: bool
    problem: str | None
    fields: Mapping[str, int]
    detectors: Mapping[str, DetectorDocument]
    errors: Sequence[Mapping[str, object]]


def preview_files(files: Sequence[str], *, format: str, columns: Mapping[str, str]) -> Answer:
    """Look at each file. The exit code is 2 where one of them cannot be imported."""
    shown = [(file, preview(file, format=format, columns=columns or None)) for file in files]
    rows = [(file, each, usable(each.profile)) for file, each in shown]
    unusable = any(each.problem or not each.profile.n for _, each in shown)
    text = "\n".join(chain.from_iterable(_lines(*row) for row in rows))
    return Answer({"files": [_document(*row) for row in rows]}, text, exit_code=2 if unusable else 0)


def _document(file: str, shown: Preview, rows: Sequence[Usable]) -> PreviewDocument:
    return PreviewDocument(
        file=file,
        format=shown.format,
        title=shown.title,
        n=shown.profile.n,
        rejected=len(shown.rejected),
        whole=shown.is_whole,
        problem=shown.problem,
        fields=shown.profile.filled,
        detectors={row.name: DetectorDocument(row.able, row.lacks) for row in rows},
        errors=[{"line": error.line, "reason": error.reason} for error in shown.rejected[:MOST_ERRORS]],
    )


def _lines(file: str, shown: Preview, rows: Sequence[Usable]) -> Iterator[str]:
    profile = shown.profile
    yield f"{file}: {recognised(shown.title, profile.n, len(shown.rejected), is_whole=shown.is_whole)}"
    if shown.problem:
        yield f"  {shown.problem}"
    for error in shown.rejected[:MOST_ERRORS]:
        yield f"  line {error.line}: {error.reason}"
    if not profile.n:
        return
    names = (*FIELDS, *MORE_FIELDS)
    cells = [("field", "filled", "traces")]
    cells += [(field_name(name), filled(profile, name), count(profile.filled.get(name, 0))) for name in names]
    yield table(cells, right=(1, 2))
    yield f"{can_run(rows, looked_at=profile.n, is_whole=shown.is_whole)}:"
    yield table([("detector", "can score"), *((row.title, count(row.able)) for row in rows if row.able)], right=(1,))
    for name, waiting in by_missing(rows).items():
        yield waits_for(name, waiting)
    if shown.is_benchmark and profile.filled.get("label"):
        yield f"caution: {benchmark(shown.title)}"
