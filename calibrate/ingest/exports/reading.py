"""Read the objects of an export, and gather the rows of one trace from wherever in the file they stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.jsonl import raw_rows
from calibrate.ingest.labels.documents import objects, read_whole
from calibrate.ingest.values import FieldError, decode_json, expected, may_need_repair, repair


def objects_of(file: InputFile) -> Iterator[Row | Rejected]:
    """Read the objects of one JSON document, of a list, or of lines. A document or a line may be the answer of an API:
    rows under a name of their own."""
    file.refuse_unless_text()
    if file.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        rows = objects(file)
    else:
        rows = iter([_document(file)]) if _is_one_document(file.head) else raw_rows(file)
    for row in rows:
        listed = None if isinstance(row, Rejected) else _listed(row.fields)
        if listed is None or isinstance(row, Rejected):
            yield row
            continue
        for item in listed:
            if isinstance(item, dict):
                yield Row(row.line, item, row.size // len(listed), 0)
            else:
                yield Rejected(row.line, str(expected("the item", "an object", item)))


class Gathered:
    """Rows by the trace that they belong to, in a temporary database: memory does not grow with the file."""

    def __init__(self) -> None:
        # An unnamed SQLite database is a temporary file.
        self._database = sqlite3.connect("")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE held (trace TEXT, line INTEGER, fields TEXT)")
        self._waiting: list[tuple[str, int, str]] = []

    def add(self, trace_id: str, line: int, fields: dict[str, Any]) -> None:
        """Keep a row."""
        self._waiting.append((trace_id, line, json.dumps(fields)))
        if len(self._waiting) >= 500:
            self._write()

    def groups(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Each trace's rows with the line of the first, in the order in which the traces began in the file."""
        self._write()
        with closing(self._database) as database:
            database.execute("CREATE INDEX by_trace ON held (trace)")
            order = database.execute("SELECT trace, min(line) FROM held GROUP BY trace ORDER BY 2, 1")
            for trace_id, line in order:
                rows = database.execute("SELECT fields FROM held WHERE trace = ? ORDER BY line", (trace_id,))
                yield line, [json.loads(fields) for (fields,) in rows]

    def _write(self) -> None:
        self._database.executemany("INSERT INTO held VALUES (?, ?, ?)", self._waiting)
        self._waiting = []


def _is_one_document(head: bytes) -> bool:
    """Whether the file begins with an object that goes on after its first line."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    first, end, _ = text.partition(b"\n")
    if not text.startswith(b"{") or not end:
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return not first.rstrip().endswith(b"}")
    return False


def _document(file: InputFile) -> Row | Rejected:
    content, damaged = read_whole(file)
    if damaged:
        return Rejected(1, "the file ends amid its JSON: fetch it again, whole", last=True)
    try:
        value = decode_json(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{file.name} is not UTF-8 text (byte {error.start + 1}); save the file as UTF-8") from None
    except FieldError as error:
        return Rejected(1, str(error), last=True)
    characters = 0
    if may_need_repair(content):
        try:
            value, characters = repair(value)
        except RecursionError:
            return Rejected(1, "not usable JSON: it is nested too deeply", last=True)
    return Row(1, value, len(content), characters)


def _listed(fields: dict[str, Any]) -> list[Any] | None:
    if "id" in fields or "trace" in fields:
        return None
    return next((fields[key] for key in ("data", "runs", "traces") if isinstance(fields.get(key), list)), None)
