"""Read tables: CSV (comma, semicolon or tab) and Parquet, one trace per row.

A column fills the field of its own name (`answer`, `Trace ID`), or the one that the mapping says. If the field is a
list or an object, a cell may hold JSON; `source_1`, `source_2`, … are the sources, one per column. An empty cell is a
missing value. Other columns become attributes.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row, attribute_name
from calibrate.ingest.files import MAX_LINE_BYTES, BadLine, InputFile, Lines
from calibrate.ingest.record import RECORD_FIELDS
from calibrate.ingest.values import FieldError, decode_json, repair
from calibrate.sanitize import visible

STRUCTURED = frozenset(
    ("sources", "tokens", "alternatives", "samples", "schema", "spans", "attributes", "extra", "scores")
)
_NUMBERED_SOURCE = re.compile(r"source_?(\d+)")
_UNDECODED = re.compile("[\udc80-\udcff]")

# The csv module's limit of 128 kB is for the whole process, so it is only ever raised.
csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))


def table_rows(
    raw: Callable[[InputFile], Iterator[Row | Rejected]],
) -> Callable[[InputFile, Mapping[str, str]], Iterator[Row | Rejected]]:
    """Make a reader of rows under our field names from a reader of raw rows."""

    def rows(file: InputFile, columns: Mapping[str, str]) -> Iterator[Row | Rejected]:
        fields: list[str] | None = None
        for row in raw(file):
            if isinstance(row, Row):
                if fields is None:
                    fields = fields_of(row.fields, columns, file.name)
                yield to_record_row(row, fields)
            else:
                yield row

    return rows


def csv_rows(file: InputFile) -> Iterator[Row | Rejected]:
    """Read each row as text by column. Rejects rows with more or fewer cells than the header."""
    file.refuse_unless_text()
    header: list[str] | None = None
    for line, cells in _read_csv_cells(file):
        if isinstance(cells, BadLine):
            yield Rejected(line, cells.reason, cells.last)
        elif isinstance(cells, FieldError):
            yield Rejected(line, str(cells))
        elif header is None:
            header = [cell.strip() or f"column {at}" for at, cell in enumerate(cells, start=1)]
            _refuse_duplicates(header, file.name)
        elif len(cells) != len(header):
            yield Rejected(
                line, f"the row has {len(cells)} cell{'s' if len(cells) != 1 else ''}, the header {len(header)}"
            )
        else:
            yield Row(line, dict(zip(header, cells, strict=True)), sum(map(len, cells)))


def list_columns(header: Sequence[str]) -> str:
    """List the columns of a table in an error: "'id', 'score'"."""
    return ", ".join(repr(visible(column, 60)) for column in header[:20]) + (", …" if len(header) > 20 else "")


def _read_csv_cells(file: InputFile) -> Iterator[tuple[int, list[str] | FieldError | BadLine]]:
    """Read the line that each row begins on, with its cells or its problem. Skips empty rows."""
    lines = _TextLines(file.lines)
    # strict: a quote that never closes is an error, not a row that goes on to the end of the file.
    reader = csv.reader(lines, delimiter=_guess_delimiter(file.head), strict=True)
    while True:
        begins = file.lines.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except BadLine as problem:
            yield problem.line, problem
        except csv.Error as error:
            yield begins, FieldError(f"not CSV: {error}")
        else:
            if any(_UNDECODED.search(cell) for cell in cells):
                yield begins, FieldError("not UTF-8 text; save the file as CSV UTF-8")
            elif cells:
                yield begins, cells


class _TextLines:
    """Lines as text for the csv reader. Bytes that are not UTF-8 become lone surrogates."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._lines).decode("utf-8", "surrogateescape")


def _guess_delimiter(head: bytes) -> str:
    header = re.sub(rb'"[^"]*"', b"", head.partition(b"\n")[0])
    return max(",;\t", key=lambda mark: header.count(mark.encode()))


def fields_of(header: Iterable[str], columns: Mapping[str, str], name: str) -> list[str]:
    """Choose the field that each column fills: the mapping's, else the one of its own name, else an attribute."""
    header = list(header)
    missing = [column for column in columns.values() if column not in header]
    if missing:
        raise BadInput(f"{name} has no column {missing[0]!r}; it has {_list_columns(header)}")
    by_column = {column: field for field, column in columns.items()}
    fields = [by_column.get(column) or _field_of_column(column, columns) for column in header]
    _refuse_duplicates(fields, name)
    if "answer" not in fields:
        raise BadInput(
            f"{name} has no column 'answer'; it has {_list_columns(header)}. Say which of them is the answer: "
            "--column answer=reply, or columns={'answer': 'reply'} in Python"
        )
    return fields


def _refuse_duplicates(names: list[str], file_name: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{file_name} has two columns for {name!r}; rename one of them")


def _field_of_column(column: str, columns: Mapping[str, str]) -> str:
    """Match a column to a field by name (`Trace ID` fills trace_id), unless the mapping reads it from elsewhere."""
    plain = re.sub(r"[\s\-]+", "_", column.lower())
    return plain if plain in RECORD_FIELDS and plain not in columns else attribute_name(column, columns)


def _list_columns(header: list[str]) -> str:
    return ", ".join(repr(column) for column in header[:20]) + (", ..." if len(header) > 20 else "")


def to_record_row(row: Row, fields: list[str]) -> Row | Rejected:
    """Name a row's cells by the fields that they fill, in the order of `fields_of`."""
    values: dict[str, Any] = {}
    numbered: dict[str, Any] = {}
    characters = 0
    try:
        for field, cell in zip(fields, row.fields.values(), strict=True):
            if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
                continue
            value, count = repair(
                _parse_structured(field, cell) if field in STRUCTURED else _to_json_value(field, cell)
            )
            characters += count
            if isinstance(value, str) and (number := _NUMBERED_SOURCE.fullmatch(field.lower())):
                numbered[number[1]] = value
            elif value != []:  # an empty list column of Parquet, or an empty map, which looks the same
                values[field] = value
    except RecursionError:
        return Rejected(row.line, "not usable: a cell is nested too deeply")
    except FieldError as error:
        return Rejected(row.line, str(error))
    if numbered and "sources" not in values:
        values["sources"] = numbered
    return Row(row.line, values, row.size, characters)


def _to_json_value(field: str, cell: Any) -> Any:
    """Convert a cell to a JSON value: Parquet, frames and databases have dates, decimals and UUIDs."""
    if isinstance(cell, UUID):
        return str(cell)
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, date) and field != "timestamp":
        return cell.isoformat()
    return cell


def _parse_structured(field: str, cell: Any) -> Any:
    """Parse a cell of a list or object field: JSON text, or Parquet's own value. Sources may be one plain text."""
    if not isinstance(cell, str):
        return _drop_gaps(cell)
    if field == "sources" and not cell.lstrip().startswith(("[", "{")):
        return [cell]
    try:
        return decode_json(cell)
    except FieldError as error:
        raise FieldError(f"{field}: {error}") from None


def _drop_gaps(value: Any) -> Any:
    """Normalize Parquet values: a map is a list of pairs, and a struct holds None for keys that other rows have."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        value = {str(key): item for key, item in value}
    if isinstance(value, dict):
        return {key: _drop_gaps(item) for key, item in value.items() if item is not None}
    return [_drop_gaps(item) for item in value] if isinstance(value, list) else value


def parquet_rows(file: InputFile) -> Iterator[Row | Rejected]:
    """Read row by row, in small batches, because one row may have a megabyte of text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    try:
        # Read buffered pages, not whole column chunks: a row group may be as large as the file.
        with pq.ParquetFile(file.path, buffer_size=1 << 20, pre_buffer=False) as table:
            names = table.schema_arrow.names
            _refuse_duplicates(names, file.name)
            for batch in table.iter_batches(batch_size=256):
                size = batch.nbytes // max(1, batch.num_rows)
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    count += 1
                    yield Row(count, dict(zip(names, values, strict=True)), size)
                file.share = count / table.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:200]
        if not count:
            raise BadInput(f"{file.name} cannot be read as Parquet: {reason}") from None
        yield Rejected(count + 1, f"the file is damaged after row {count}: {reason}", last=True)


def header_of(head: bytes) -> list[str]:
    """The names in a table's header line; none where the file does not begin with one."""
    try:
        header = head.partition(b"\n")[0].decode("utf-8-sig")
        cells = next(csv.reader([header], delimiter=_guess_delimiter(head)), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    return [cell.strip() for cell in cells]


def _sniff_csv(head: bytes) -> bool:
    """Recognize a header line with an answer column."""
    return any(_field_of_column(cell, {}) == "answer" for cell in header_of(head))


def _sniff_parquet(head: bytes) -> bool:
    return head.startswith(b"PAR1")


FORMATS = (
    Format("csv", (".csv", ".tsv"), _sniff_csv, csv_rows, table_rows(csv_rows), "CSV table", plain=True),
    Format(
        "parquet",
        (".parquet", ".pq"),
        _sniff_parquet,
        parquet_rows,
        table_rows(parquet_rows),
        "Parquet table",
        plain=True,
    ),
)
