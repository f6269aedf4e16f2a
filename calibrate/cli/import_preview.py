"""`import --preview`: what files are, which fields they fill, and which detectors can run on them. Stores nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from calibrate.cli import Answer
from calibrate.cli.output import table
from calibrate.ingest import Preview, preview
from calibrate.ingest.inspection.previewing import columns_to_name
from calibrate.ingest.inspection.profile import FIELDS, MORE_FIELDS
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.imports import (
    assumed,
    benchmark,
    can_run,
    field_name,
    filled,
    recognised,
    waits_for,
)
from calibrate.workflow.detection.usable import Usable, by_missing, usable

MOST_ERRORS = 5


@dataclass(frozen=True, slots=True)
class DetectorDocument:
    """`able` of the traces that were looked at have all that it reads; `lacks` counts those without a field."""

    able: int
    lacks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PreviewDocument:
    """What one file is. `n` of its traces were looked at: all where it is `whole`, else those of its beginning.
    `columns` are those that were given or assumed: `import` needs them too."""

    file: str
    format: str
    title: str
    n: int
    rejected: int
    whole: bool
    problem: str | None
    columns: Mapping[str, str]
    fields: Mapping[str, int]
    detectors: Mapping[str, DetectorDocument]
    errors: Sequence[Mapping[str, object]]


def preview_files(files: Sequence[str], *, format: str, columns: Mapping[str, str]) -> Answer:
    """Look at each file. The exit code is 2 where one of them cannot be imported."""
    looks = [_look(file, format, columns) for file in files]
    unusable = any(look.shown.problem or not look.shown.profile.n for look in looks)
    text = "\n".join(chain.from_iterable(_lines(look, usable(look.shown.profile)) for look in looks))
    documents = [_document(look, usable(look.shown.profile)) for look in looks]
    return Answer({"files": documents}, text, exit_code=2 if unusable else 0)


class _Look(NamedTuple):
    """What was seen of a file, read with these columns; `command` imports it where they were assumed."""

    file: str
    shown: Preview
    columns: Mapping[str, str]
    command: str = ""


def _look(file: str, format: str, columns: Mapping[str, str]) -> _Look:
    """Look at a file as `import` reads it; where it holds no trace then, with the columns that are likely."""
    shown = preview(file, format=format, columns=columns)
    likely = {} if columns else columns_to_name(shown)
    if shown.profile.n or "answer" not in likely:
        return _Look(file, shown, columns)
    again = preview(file, format=format, columns=likely)
    if not again.profile.n:
        return _Look(file, shown, columns)
    options = [f"--column {shlex.quote(f'{field}={column}')}" for field, column in likely.items()]
    options += [] if format == "auto" else [f"--format {format}"]
    return _Look(file, again, likely, f"import {shlex.quote(file)} {' '.join(options)}")


def _document(look: _Look, rows: Sequence[Usable]) -> PreviewDocument:
    file, shown, columns, _ = look
    return PreviewDocument(
        file=file,
        format=shown.format,
        title=shown.title,
        n=shown.profile.n,
        rejected=len(shown.rejected),
        whole=shown.is_whole,
        problem=shown.problem,
        columns=columns,
        fields=shown.profile.filled,
        detectors={row.name: DetectorDocument(row.able, row.lacks) for row in rows},
        errors=[{"line": error.line, "reason": error.reason} for error in shown.rejected[:MOST_ERRORS]],
    )


def _lines(look: _Look, rows: Sequence[Usable]) -> Iterator[str]:
    file, shown, columns, command = look
    profile = shown.profile
    yield f"{file}: {recognised(shown.title, profile.n, len(shown.rejected), is_whole=shown.is_whole)}"
    if command:
        yield f"  {assumed(columns, command)}"
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
