"""Read and write files of labels in any format; recognise a file's own by its name and its first record."""

from __future__ import annotations

import difflib
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calibrate.errors import BadInput, TouchstoneError
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of
from calibrate.ingest.labels.argilla import ARGILLA
from calibrate.ingest.labels.base import LabelFormat, Parsed, Read, Written, rejection
from calibrate.ingest.labels.exported import EXPORTED, ExportedLabels
from calibrate.ingest.labels.jsonl import JSONL
from calibrate.ingest.labels.label_studio import LABEL_STUDIO
from calibrate.ingest.labels.offsets import place_spans
from calibrate.ingest.labels.phoenix import PHOENIX
from calibrate.ingest.labels.table import CSV, refuse_unless_complete
from calibrate.ingest.values import FieldError
from calibrate.targets import Kind, replacing
from calibrate.types import Label, Trace

LABEL_FORMATS = (JSONL, CSV, LABEL_STUDIO, ARGILLA, PHOENIX)
LABELS = Kind(
    "a file of labels",
    lambda content: content.startswith(tuple(beginning for each in LABEL_FORMATS for beginning in each.begins)),
)
Load = Callable[[Sequence[str]], Mapping[str, Trace]]


def format_named(name: str) -> LabelFormat:
    """Return the format of that name. Raises BadInput for one that there is not."""
    for each in LABEL_FORMATS:
        if each.name == name:
            return each
    raise BadInput(f"there is no format {name!r} of labels; there are {', '.join(each.name for each in LABEL_FORMATS)}")


def parse_labels(path: str | os.PathLike[str], *, format: str = "auto") -> Iterator[Read]:
    """Read a file's labels as it has them, with what is rejected and what is left out.

    Raises
    ------
    BadInput
        A file that cannot be read, that holds nothing, or a format that there is not.
    """
    with InputFile(path, "label") as file:
        chosen: LabelFormat | ExportedLabels | None = None if format == "auto" else _readable(format)
        kind = format_of(file, "auto").name if chosen is None else ""
        chosen = next((each for each in EXPORTED if each.name == kind), chosen)
        if chosen is None and kind in ("csv", "parquet"):
            # CSV, and Parquet whose columns are named alike.
            rows, chosen = format_of(file, "auto").raw(file), CSV
        else:
            rows = (chosen or JSONL).rows(file)
        first: deque[Row | Rejected] = deque()
        for row in rows:
            first.append(row)
            if isinstance(row, Row):
                chosen = chosen or _recognise(row)
                if kind == "csv" and chosen is CSV:
                    refuse_unless_complete(file.name, list(row.fields))
                break
        if not first:
            raise BadInput(f"{file.name} holds no labels")
        yield from _read(chosen or JSONL, _chain(first, rows))


def _readable(name: str) -> LabelFormat | ExportedLabels:
    return next((each for each in EXPORTED if each.name == name), None) or format_named(name)


def _recognise(row: Row) -> LabelFormat | ExportedLabels:
    for each in (LABEL_STUDIO, ARGILLA, PHOENIX, *EXPORTED):
        if each.recognises(row.fields):
            return each
    return JSONL


def _chain(first: deque[Row | Rejected], rest: Iterator[Row | Rejected]) -> Iterator[Row | Rejected]:
    while first:
        yield first.popleft()
    yield from rest


def _read(chosen: LabelFormat | ExportedLabels, rows: Iterator[Row | Rejected]) -> Iterator[Read]:
    """Pass what could not be read on as it comes, and the rows to the format."""
    rejected: list[Rejected] = []

    def good() -> Iterator[Row]:
        for row in rows:
            if isinstance(row, Rejected):
                rejected.append(row)
            else:
                yield row

    for each in chosen.read(good()):
        yield from _drain(rejected)
        yield each
    yield from _drain(rejected)


def _drain(rejected: list[Rejected]) -> Iterator[Rejected]:
    while rejected:
        yield rejected.pop(0)


def read_labels(path: str | os.PathLike[str]) -> Iterator[tuple[int, Label] | Rejected]:
    """Read each label of a file with its line number.

    Spans are as the file has them: they are not checked against the answer, which may not be in the file.
    """
    for each in parse_labels(path):
        if isinstance(each, Rejected):
            yield each
        elif isinstance(each, Parsed):
            yield each.line, each.label


def compare(
    parsed: Parsed, answers: Mapping[str, str | None], *, kinds: Collection[str] | None = None
) -> Label | Rejected:
    """Compare a label with the trace that it is about, and put its spans in code points of the answer there.

    Parameters
    ----------
    parsed
        The label as its file has it.
    answers
        The answers of the store by trace id; None for a trace that was purged.
    kinds
        The kinds that a label may have. None lets any through.

    Returns
    -------
    Label or Rejected
        Rejected where the store has no such trace, where the file labels another answer than the store has, where a
        span is no part of the answer, or where a kind is unknown.
    """
    label = parsed.label
    try:
        trace_id = next((each for each in parsed.trace_ids if each in answers), None)
        if trace_id is None:
            raise FieldError(f"no trace {parsed.trace_ids[0]!r} in the store")
        label = replace(label, trace_id=trace_id)
        if kinds is not None:
            _check_kinds(label, kinds)
        answer = answers[trace_id]
        if answer is None:
            return label
        if parsed.answer is not None and parsed.answer != answer:
            raise FieldError(f"the file labels another answer to {trace_id!r} than the store has")
        if label.spans:
            label = replace(label, spans=place_spans(label.spans, parsed.quotes, answer, units=parsed.units))
        return label
    except FieldError as error:
        return rejection(parsed.line, parsed.where, error)


def _check_kinds(label: Label, kinds: Collection[str]) -> None:
    """Raise FieldError for a kind that is none of these, with the one that is probably meant."""
    named = [*label.kinds, *(span.kind for span in label.spans if span.kind)]
    for kind in named:
        if kind not in kinds:
            slug = re.sub(r"[^a-z]+", "_", kind.casefold()).strip("_")
            close = difflib.get_close_matches(slug, list(kinds), 1)
            meant = f"did you mean {close[0]!r}? " if close else ""
            raise FieldError(f"kinds: no kind of error is called {kind[:40]!r}; {meant}They are {', '.join(kinds)}")


def write_labels(
    labels: Iterable[Label], path: str | os.PathLike[str], *, format: str = "auto", load: Load | None = None
) -> Written:
    """Write labels to a file, which is replaced atomically: written under a temporary name and then renamed.

    Parameters
    ----------
    labels
        The labels, oldest first.
    path
        The file.
    format
        The format's name. With `auto`, CSV if the file's name ends in .csv, else JSON lines.
    load
        Loads traces by their ids, for formats that hold the answer.

    Returns
    -------
    Written
        How many were written, and how many lost what.

    Raises
    ------
    BadInput
        A path that is no file, or a format that there is not.
    TouchstoneError
        A file that cannot be written.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise BadInput(f"cannot write {str(path)!r}: it is not a file; name one")
    chosen = format_named(format_for(target) if format == "auto" else format)
    try:
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            return chosen.write(labels, load or (lambda ids: {}), file)
    except OSError as error:
        raise TouchstoneError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def format_for(path: Path) -> str:
    """Name the format that a file's name asks for."""
    return "csv" if path.suffix.lower() == ".csv" else "jsonl"
