"""Read scores that were computed elsewhere from CSV, JSON lines or Parquet, one score of one trace a row.

A row names its trace by id, or quotes its answer, with the question and the sources where it has them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.jsonl import raw_rows
from calibrate.ingest.table import csv_rows, list_columns, parquet_rows
from calibrate.ingest.values import (
    MAX_ID_LENGTH,
    FieldError,
    decode_json,
    describe_value,
    expected,
    name_or_none,
    repair,
    text_or_none,
)
from calibrate.sanitize import FORMULA, visible

FIELDS: Mapping[str, tuple[str, ...]] = {
    "trace_id": ("trace_id", "id"),
    "score": ("score", "value"),
    "reason": ("reason", "explanation", "rationale", "comment"),
    "question": ("question", "user_input", "query", "input"),
    "answer": ("answer", "response", "output"),
    "sources": ("sources", "retrieved_contexts", "contexts", "context"),
}
"""What a row may hold, and the names of columns that it is looked for under, in this order."""


_DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.,]*,\d+\s*")
LOOKED_AT = 20  # rows from which the column of the score is guessed


@dataclass(frozen=True, slots=True)
class Quoted:
    """What a row quotes of its trace, as digests: the answer, and None for what it does not quote."""

    answer: bytes
    question: bytes | None
    sources: bytes | None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score. `trace_id` is None where the row has none, `quoted` where it quotes no answer."""

    line: int
    trace_id: str | None
    quoted: Quoted | None
    value: float
    reason: str | None


def read_scores(file: InputFile, *, detector: str, columns: Mapping[str, str]) -> Iterator[ScoreRow | Rejected]:
    """Read the rows of an open file, a `Rejected` for each that holds no score.

    `columns` maps fields to columns; a score is also looked for in the column that is called like the detector. Raises
    BadInput for a file that cannot be read, or that has no column for the score or for the trace.
    """
    for field in columns:
        if field not in FIELDS:
            raise BadInput(f"--column {field}=…: a score has no field {field!r}; it has {', '.join(FIELDS)}")
    rows, is_table = _rows_of(file)
    places: dict[tuple[str, ...], dict[str, str]] = {}
    empty = True
    for row in rows:
        if isinstance(row, Rejected):
            empty = False
            yield row
            continue
        header = tuple(row.fields)
        if header not in places:
            place = _places(header, detector, columns)
            if is_table:
                _refuse_unless_complete(file.name, header, place, columns)
            if len(places) < 1000:
                places[header] = place
        empty = False
        try:
            yield _parse(row, places.get(header) or _places(header, detector, columns))
        except FieldError as error:
            yield Rejected(row.line, visible(str(error)).replace("\n", " "))
        except RecursionError:
            yield Rejected(row.line, "not usable: a value is nested too deeply")
    if empty:
        raise BadInput(f"{file.name} holds no scores")


def guess_score(file: InputFile) -> tuple[list[str], str | None]:
    """The columns of an open file, and which of them is likely the score: one of a usual name, else the first that
    holds numbers. Raises BadInput for a file that cannot be read or holds no rows."""
    rows = [row for row in islice(_rows_of(file)[0], LOOKED_AT) if isinstance(row, Row)]
    if not rows:
        raise BadInput(f"{file.name} holds no scores")
    columns = list(dict.fromkeys(column for row in rows for column in row.fields))
    places = _places(columns, "", {})
    others = [column for column in columns if column not in places.values()]
    numbers = (column for column in others if all(_is_number(row.fields.get(column)) for row in rows))
    return columns, places.get("score") or next(numbers, None)


def _is_number(value: Any) -> bool:
    try:
        _score(value, "score")
    except FieldError:
        return False
    return True


def digest(text: str) -> bytes:
    """The digest by which a quoted text is compared; white space around it does not count."""
    return hashlib.blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=16).digest()


def digest_all(texts: Sequence[str]) -> bytes:
    """The digest of several texts in their order."""
    return hashlib.blake2b(b"".join(map(digest, texts)), digest_size=16).digest()


def _rows_of(file: InputFile) -> tuple[Iterator[Row | Rejected], bool]:
    """The rows, and whether they all have the same columns."""
    if file.head.startswith(b"PAR1"):
        return parquet_rows(file), True
    suffix = (file.path.with_suffix("") if file.path.suffix.lower() == ".gz" else file.path).suffix.lower()
    file.refuse_unless_text()
    is_json = suffix in (".jsonl", ".ndjson", ".json") or file.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    if is_json and suffix not in (".csv", ".tsv"):
        return raw_rows(file), False
    return csv_rows(file), True


def _places(header: Sequence[str], detector: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Field → the column that holds it."""
    by_name = {_plain(column): column for column in reversed(header)}
    places = {}
    for field, names in FIELDS.items():
        if field in columns:
            candidates: Sequence[str] = [columns[field]] if columns[field] in header else []
        else:
            own = (detector,) if field == "score" else ()
            candidates = [by_name[_plain(name)] for name in (*names, *own) if _plain(name) in by_name]
        if candidates:
            places[field] = candidates[0]
    return places


def _plain(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")


def _refuse_unless_complete(
    name: str, header: Sequence[str], places: Mapping[str, str], columns: Mapping[str, str]
) -> None:
    listed = list_columns(header)
    for field, column in columns.items():
        if column not in header:
            raise BadInput(
                f"{name} has no column {visible(column, 60)!r}, which --column {field}=… names; it has {listed}"
            )
    if "score" not in places:
        raise BadInput(f"{name} has no column 'score'; it has {listed}. Say which: --column score=COLUMN")
    if "trace_id" not in places and "answer" not in places:
        raise BadInput(
            f"{name} has no column 'trace_id', and none for the answer; it has {listed}. Say which: --column "
            "trace_id=COLUMN, or --column answer=COLUMN with question and sources where there are some"
        )


def _parse(row: Row, places: Mapping[str, str]) -> ScoreRow:
    def get(field: str, read: Callable[[Any, str], Any]) -> Any:
        value = row.fields.get(places[field]) if field in places else None
        return read(repair(_unquote(value)).value if isinstance(value, str) else value, field)

    trace_id = get("trace_id", _id)
    answer = get("answer", text_or_none)
    if trace_id is None and not answer:
        raise FieldError("trace_id: missing, and no answer by which the trace could be found")
    quoted = None
    if answer:
        question, sources = get("question", text_or_none), get("sources", _sources)
        quoted = Quoted(
            digest(answer), digest(question) if question else None, digest_all(sources) if sources else None
        )
    reason = get("reason", _text)
    return ScoreRow(row.line, trace_id, quoted, get("score", _score), reason)


def _unquote(cell: str) -> str:
    """A spreadsheet's quoted text as it was, as our own files write one that looks like a formula."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] and cell[1] in FORMULA + "'" else cell


def _id(value: Any, field: str) -> str | None:
    return name_or_none(value.strip() if isinstance(value, str) else value, field, MAX_ID_LENGTH)


def _text(value: Any, field: str) -> str | None:
    return value or None if isinstance(value, str) else None


def _score(value: Any, field: str) -> float:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise FieldError("score: missing")
    number = None
    if not isinstance(value, bool) and not (isinstance(value, str) and "_" in value):  # Python's own spelling
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is None or not math.isfinite(number):
        shown = value if isinstance(value, str) else describe_value(value)
        remedy = (
            ": write decimals with a point, and thousands without a mark"
            if _DECIMAL_COMMA.fullmatch(str(shown))
            else ""
        )
        raise FieldError(f"score: expected a finite number, not {visible(str(shown), 60)}{remedy}")
    return number


def _sources(value: Any, field: str) -> tuple[str, ...]:
    """The texts of the sources, of any shape that a trace file may have them in."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        value = decode_json(value)
    if not value:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        raise expected(field, "a text, a list or an object", value)
    texts = [item.get("text") if isinstance(item, dict) else item for item in value]
    for text in texts:
        if not isinstance(text, str):
            raise expected(field, "texts", text)
    return tuple(repair(text).value for text in texts)
