"""Tables: CSV (comma, semicolon or tab) and Parquet, one trace a row.

A column is a field of the record by its own name (`answer`, `Trace ID`), or by the mapping. A cell may hold JSON
where the field is a list or an object; `source_1`, `source_2`, ... are the sources, one a column. An empty cell is
a missing value. Other columns become attributes.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row, displaced
from calibrate.ingest.files import LONGEST_LINE, BadLine, InputFile, Lines
from calibrate.ingest.record import KNOWN
from calibrate.ingest.values import FieldError, decode_json, repair

STRUCTURED = frozenset(("sources", "tokens", "alternatives", "samples", "schema", "spans", "attributes", "extra"))
_NUMBERED_SOURCE = re.compile(r"source_?(\d+)")
_UNDECODED = re.compile("[\udc80-\udcff]")

# The module's own limit of 128 kB is for the whole process; it only ever grows here.
csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))


def table_rows(
    raw: Callable[[InputFile], Iterator[Row | Rejected]],
) -> Callable[[InputFile, Mapping[str, str]], Iterator[Row | Rejected]]:
    """The reader of a table's rows as records, given the reader of its rows as they are."""

    def rows(file: InputFile, columns: Mapping[str, str]) -> Iterator[Row | Rejected]:
        fields: list[str] | None = None
        for row in raw(file):
            if isinstance(row, Row):
                if fields is None:
                    fields = fields_of(row.fields, columns, file.name)
                yield _record_row(row, fields)
            else:
                yield row

    return rows


def csv_rows(file: InputFile) -> Iterator[Row | Rejected]:
    """Each row as text by column. A row with more or fewer cells than the header is rejected."""
    file.refuse_unless_text()
    header: list[str] | None = None
    for line, cells in _csv_cells(file):
        if isinstance(cells, BadLine):
            yield Rejected(line, cells.reason, cells.last)
        elif isinstance(cells, FieldError):
            yield Rejected(line, str(cells))
        elif header is None:
            header = [cell.strip() or f"column {at}" for at, cell in enumerate(cells, start=1)]
            _refuse_twins(header, file.name)
        elif len(cells) != len(header):
            yield Rejected(line, f"the row has {len(cells)} cells, the header {len(header)}")
        else:
            yield Row(line, dict(zip(header, cells, strict=True)), sum(map(len, cells)))


def _csv_cells(file: InputFile) -> Iterator[tuple[int, list[str] | FieldError | BadLine]]:
    """The line each row begins on, with its cells or with what is wrong; empty rows are skipped."""
    lines = _TextLines(file.lines)
    # strict: a quote that never closes is an error, and not a row that ends with the file.
    reader = csv.reader(lines, delimiter=_delimiter(file.head), strict=True)
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
    """Lines as text for the csv reader; bytes that are not UTF-8 stay visible as lone surrogates."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._lines).decode("utf-8", "surrogateescape")


def _delimiter(head: bytes) -> str:
    header = re.sub(rb'"[^"]*"', b"", head.partition(b"\n")[0])
    return max(",;\t", key=lambda mark: header.count(mark.encode()))


def fields_of(header: Iterable[str], columns: Mapping[str, str], name: str) -> list[str]:
    """The field each column fills: the mapping's, else the one of its own name, else an attribute's."""
    header = list(header)
    missing = [column for column in columns.values() if column not in header]
    if missing:
        raise BadInput(f"{name} has no column {missing[0]!r}; it has {_listed(header)}")
    by_column = {column: field for field, column in columns.items()}
    fields = [by_column.get(column) or _own_field(column, columns) for column in header]
    _refuse_twins(fields, name)
    if "answer" not in fields:
        raise BadInput(f"{name} has no column 'answer'; it has {_listed(header)}. Say which of them is the answer")
    return fields


def _refuse_twins(names: list[str], file_name: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{file_name} has two columns for {name!r}; rename one of them")


def _own_field(column: str, columns: Mapping[str, str]) -> str:
    """`Trace ID` fills trace_id; a column whose field the mapping takes from elsewhere is an attribute."""
    plain = re.sub(r"[\s\-]+", "_", column.lower())
    return plain if plain in KNOWN and plain not in columns else displaced(column, columns)


def _listed(header: list[str]) -> str:
    return ", ".join(repr(column) for column in header[:20]) + (", ..." if len(header) > 20 else "")


def _record_row(row: Row, fields: list[str]) -> Row | Rejected:
    found: dict[str, Any] = {}
    numbered: dict[str, Any] = {}
    characters = 0
    try:
        for field, cell in zip(fields, row.fields.values(), strict=True):
            if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
                continue
            value, count = repair(_structured(field, cell) if field in STRUCTURED else _plain(field, cell))
            characters += count
            if isinstance(value, str) and (number := _NUMBERED_SOURCE.fullmatch(field.lower())):
                numbered[number[1]] = value
            elif value != []:  # an empty list column of Parquet, or an empty map, which looks the same
                found[field] = value
    except RecursionError:
        return Rejected(row.line, "not usable: a cell is nested too deeply")
    except FieldError as error:
        return Rejected(row.line, str(error))
    if numbered and "sources" not in found:
        found["sources"] = numbered
    return Row(row.line, found, row.size, characters)


def _plain(field: str, cell: Any) -> Any:
    """A cell as JSON would hold it: Parquet has dates and decimals."""
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, date) and field != "timestamp":
        return cell.isoformat()
    return cell


def _structured(field: str, cell: Any) -> Any:
    """A cell of a list or object field: JSON text, or what Parquet holds. Sources may be one plain text."""
    if not isinstance(cell, str):
        return _without_gaps(cell)
    if field == "sources" and not cell.lstrip().startswith(("[", "{")):
        return [cell]
    try:
        return decode_json(cell)
    except FieldError as error:
        raise FieldError(f"{field}: {error}") from None


def _without_gaps(value: Any) -> Any:
    """A Parquet map is a list of pairs; its structs hold None for keys that other rows have."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        value = {str(key): item for key, item in value}
    if isinstance(value, dict):
        return {key: _without_gaps(item) for key, item in value.items() if item is not None}
    return [_without_gaps(item) for item in value] if isinstance(value, list) else value


def parquet_rows(file: InputFile) -> Iterator[Row | Rejected]:
    """Row by row, in batches that hold few rows: one may have a megabyte of text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    done = 0
    try:
        # Buffered pages rather than whole column chunks: a row group may be as large as the file.
        with pq.ParquetFile(file.path, buffer_size=1 << 20, pre_buffer=False) as table:
            names = table.schema_arrow.names
            _refuse_twins(names, file.name)
            for batch in table.iter_batches(batch_size=256):
                size = batch.nbytes // max(1, batch.num_rows)
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    done += 1
                    yield Row(done, dict(zip(names, values, strict=True)), size)
                file.share = done / table.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:200]
        if not done:
            raise BadInput(f"{file.name} cannot be read as Parquet: {reason}") from None
        yield Rejected(done + 1, f"the file is damaged after row {done}: {reason}", last=True)


def _sniff_csv(head: bytes) -> bool:
    """A header line with an answer column."""
    try:
        header = head.partition(b"\n")[0].decode("utf-8-sig")
        cells = next(csv.reader([header], delimiter=_delimiter(head)), [])
    except (UnicodeDecodeError, csv.Error):
        return False
    return any(_own_field(cell.strip(), {}) == "answer" for cell in cells)


def _sniff_parquet(head: bytes) -> bool:
    return head.startswith(b"PAR1")


FORMATS = (
    Format("csv", (".csv", ".tsv"), _sniff_csv, csv_rows, table_rows(csv_rows)),
    Format("parquet", (".parquet", ".pq"), _sniff_parquet, parquet_rows, table_rows(parquet_rows)),
)
