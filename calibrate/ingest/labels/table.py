"""CSV: one label a row. Kinds stand in one cell, divided by semicolons, and spans in one as JSON.

A text that a spreadsheet would run as a formula has an apostrophe before it, which reading takes away again.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from calibrate.errors import BadInput
from calibrate.ingest.base import Row
from calibrate.ingest.labels.base import LabelFormat, Parsed, Read, Written, rejection
from calibrate.ingest.labels.fields import build_label, label_fields
from calibrate.ingest.table import csv_rows, list_columns
from calibrate.ingest.values import FieldError, decode_json, expected, repair
from calibrate.sanitize import FORMULA
from calibrate.types import Label, Trace

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
    "guide",
)


def parse_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a row as the values of a label."""
    fields: dict[str, Any] = {name.lower(): _unquote_cell(cell) for name, cell in cells.items() if cell.strip() != ""}
    for name in ("seconds", "guide"):
        if name in fields:
            fields[name] = _parse_number(fields[name], name)
    if isinstance(fields.get("spans"), str):
        fields["spans"] = decode_json(fields["spans"])
    if "kinds" in fields:
        fields["kinds"] = parse_kinds_cell(fields["kinds"])
    return {name: repair(value).value for name, value in fields.items()}


def refuse_unless_complete(name: str, header: Sequence[str]) -> None:
    """Raise BadInput for a table without a column that every label needs."""
    columns = {column.lower() for column in header}
    for needed in ({"trace_id"}, {"verdict", "label"}):
        if not needed & columns:
            raise BadInput(
                f"{name} has no column {max(needed)!r}; it has {list_columns(header)}. Rename the one that holds it"
            )


def _parse_number(cell: str, name: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise expected(name, "a number", cell) from None


def parse_kinds_cell(cell: str) -> Any:
    """Read kinds divided by semicolons, or a JSON list of them."""
    if cell.startswith("["):
        return decode_json(cell)
    return [kind.strip() for kind in cell.split(";") if kind.strip()]


def _kinds_cell(kinds: Sequence[str]) -> str:
    """Divide by semicolons; where a name holds one, or begins as a list does, write a JSON list."""
    cell = ";".join(kinds)
    return json.dumps(kinds, ensure_ascii=False) if cell.startswith("[") or cell.count(";") >= len(kinds) > 0 else cell


def _read(rows: Iterable[Row]) -> Iterator[Read]:
    for row in rows:
        try:
            yield Parsed(row.line, build_label(parse_cells(row.fields)))
        except FieldError as error:
            yield rejection(row.line, "", error)


def _write(labels: Iterable[Label], load: Callable[[Sequence[str]], Mapping[str, Trace]], file: TextIO) -> Written:
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    count = 0
    for count, label in enumerate(labels, start=1):  # noqa: B007
        fields = label_fields(label)
        fields["kinds"] = _kinds_cell(fields["kinds"])
        fields["spans"] = json.dumps(fields["spans"], ensure_ascii=False) if label.spans else None
        writer.writerow([_quote_cell(fields[name]) for name in COLUMNS])
    return Written(count, {})


def _quote_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run, or that already looks quoted in this way."""
    if isinstance(value, str) and value:
        quoted = value[0] == "'" and value[1:2] and value[1] in FORMULA + "'"
        return f"'{value}" if value[0] in FORMULA or quoted else value
    return value


def _unquote_cell(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] and cell[1] in FORMULA + "'" else cell


CSV = LabelFormat("csv", "CSV", (b"trace_id,labeller,",), csv_rows, lambda fields: False, _read, _write)
