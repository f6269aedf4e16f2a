"""Read and write label files, for `labels import` and `labels export`: JSON lines or CSV, one label per row."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from calibrate.errors import BadInput, TouchstoneError
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of
from calibrate.ingest.values import (
    MAX_ID_LENGTH,
    MAX_NAME_LENGTH,
    FieldError,
    decode_json,
    expected,
    finite,
    name_or_none,
    repair,
    text_or_none,
    utc,
)
from calibrate.ingest.verdicts import as_spans, as_verdict
from calibrate.sanitize import FORMULA
from calibrate.targets import Kind, replacing
from calibrate.types import KINDS, Label

COLUMNS = (
    "trace_id",
    "labeller",
    "verdict",
    "kinds",
    "note",
    "seconds",
    "created_at",
    "sample",
    "spans",
    "adjudicates",
)
LABELS = Kind("a file of labels", lambda content: content.startswith((b"trace_id,labeller,", b'{"trace_id": ')))


def read_labels(path: str | os.PathLike[str]) -> Iterator[tuple[int, Label] | Rejected]:
    """Read each label with its line number. A field `label` counts as `verdict`; a missing labeller becomes "".

    Spans are not checked against the answer, which is not in the file.
    """
    with InputFile(path, "label") as file:
        chosen = format_of(file, "auto")
        in_csv = chosen.name == "csv"
        empty = True
        for row in chosen.raw(file):
            empty = False
            if isinstance(row, Rejected):
                yield row
                continue
            try:
                yield row.line, _build_label(_parse_csv_row(row) if in_csv else row.fields)
            except FieldError as error:
                yield Rejected(row.line, str(error))
        if empty:
            raise BadInput(f"{file.name} holds no labels")


def _parse_csv_row(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name.lower(): _unquote_cell(cell) for name, cell in row.fields.items() if cell.strip() != ""
    }
    if "seconds" in fields:
        fields["seconds"] = _parse_number(fields["seconds"])
    if isinstance(fields.get("spans"), str):
        fields["spans"] = decode_json(fields["spans"])
    if "kinds" in fields:
        fields["kinds"] = [kind.strip() for kind in fields["kinds"].split(";") if kind.strip()]
    return {name: repair(value).value for name, value in fields.items()}


def _parse_number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise expected("seconds", "a number", cell) from None


def _build_label(fields: dict[str, Any]) -> Label:
    trace_id = name_or_none(fields.get("trace_id"), "trace_id", MAX_ID_LENGTH)
    if trace_id is None:
        raise FieldError("trace_id: missing")
    verdict = fields.get("verdict") if fields.get("verdict") is not None else fields.get("label")
    if verdict is None:
        raise FieldError("verdict: missing")
    seconds = fields.get("seconds")
    if seconds is not None and (seconds := finite(seconds, "seconds")) < 0:
        raise FieldError(f"seconds: {seconds:g} is less than 0")
    try:
        created_at = utc(fields.get("created_at"))
    except FieldError as error:
        raise FieldError(str(error).replace("timestamp", "created_at", 1)) from None
    return Label(
        trace_id=trace_id,
        labeller=name_or_none(fields.get("labeller"), "labeller", MAX_NAME_LENGTH) or "",
        verdict=as_verdict(verdict, "verdict"),
        kinds=_parse_kinds(fields.get("kinds")),
        spans=as_spans(fields.get("spans"), None),
        note=text_or_none(fields.get("note"), "note"),
        seconds=seconds,
        created_at=created_at,
        sample=name_or_none(fields.get("sample"), "sample", MAX_NAME_LENGTH),
        adjudicates=_parse_bool(fields.get("adjudicates"), "adjudicates"),
    )


def _parse_bool(value: Any, field: str) -> bool:
    """Read a boolean, or true or false in a CSV cell in any case. Missing means False."""
    flag = {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else value
    if value is None or isinstance(flag, bool):
        return bool(flag)
    raise expected(field, "true or false", value)


def _parse_kinds(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise expected("kinds", "a list", value)
    for kind in value:
        if kind not in KINDS:
            raise expected("kinds", f"some of {', '.join(KINDS)}", kind)
    return tuple(dict.fromkeys(value))


def write_labels(labels: Iterable[Label], path: str | os.PathLike[str]) -> int:
    """Write the labels as CSV if the name ends in .csv, else as JSON lines. Returns how many.

    The file is replaced atomically: it is written under a temporary name and then renamed.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise BadInput(f"cannot write {str(path)!r}: it is not a file; name one")
    write = _write_csv if target.suffix.lower() == ".csv" else _write_jsonl
    try:
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            return write(labels, file)
    except OSError as error:
        raise TouchstoneError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _write_jsonl(labels: Iterable[Label], file: TextIO) -> int:
    count = 0
    for count, label in enumerate(labels, start=1):  # noqa: B007
        fields = {name: value for name, value in _label_fields(label).items() if value not in (None, [])}
        file.write(json.dumps(fields, ensure_ascii=False) + "\n")
    return count


def _write_csv(labels: Iterable[Label], file: TextIO) -> int:
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    count = 0
    for count, label in enumerate(labels, start=1):  # noqa: B007
        fields = _label_fields(label)
        fields["kinds"] = ";".join(label.kinds)
        fields["spans"] = json.dumps(fields["spans"], ensure_ascii=False) if label.spans else None
        writer.writerow([_quote_cell(fields[name]) for name in COLUMNS])
    return count


def _label_fields(label: Label) -> dict[str, Any]:
    fields = {
        "trace_id": label.trace_id,
        "labeller": label.labeller,
        "verdict": label.verdict,
        "kinds": list(label.kinds),
        "note": label.note,
        "seconds": label.seconds,
        "created_at": label.created_at.isoformat() if label.created_at else None,
        "sample": label.sample,
        "spans": [{"start": span.start, "end": span.end, "type": span.kind} for span in label.spans],
        "adjudicates": label.adjudicates or None,
    }
    return {name: repair(value).value for name, value in fields.items()}


def _quote_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run, or that already looks quoted in this way."""
    if isinstance(value, str) and value:
        quoted = value[0] == "'" and value[1:2] and value[1] in FORMULA + "'"
        return f"'{value}" if value[0] in FORMULA or quoted else value
    return value


def _unquote_cell(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] and cell[1] in FORMULA + "'" else cell
