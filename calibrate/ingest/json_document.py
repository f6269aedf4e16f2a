"""Traces in one JSON document: a list of records, records under a key, or one record. Held in memory whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.files import HEAD_BYTES, InputFile
from calibrate.ingest.jsonl import ENDINGS, raw_rows, rename_fields
from calibrate.ingest.labels.documents import is_list, objects, read_whole
from calibrate.ingest.values import FieldError, decode_json, may_need_repair, repair

KEYS = ("data", "traces", "records", "items", "rows", "results", "examples", "logs", "entries")
"""Names under which exports put their records. Another name will do where only one key holds a list of objects."""

PARTS = ("messages", "choices", "tools", "sources", "contexts", "documents", "tokens", "samples", "labels", "spans")
"""Lists of objects that are parts of one record."""

_BLANK = b"\xef\xbb\xbf \t\r\n"


def is_document(head: bytes) -> bool:
    """Whether a file begins as one JSON document, not as JSON lines: with a list, or an object over several lines."""
    text = head.lstrip(_BLANK)
    if text.startswith(b"["):
        return True
    first, ended, rest = text.partition(b"\n")
    if not rest.strip() and len(head) < HEAD_BYTES and _holds_records(first):
        return True
    if not text.startswith(b"{") or not ended:
        return is_list(head)
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return not first.rstrip().endswith(b"}")
    return False


def _holds_records(text: bytes) -> bool:
    """Whether the one line of a file is a document with records under a key."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and _key_of_records(document) in KEYS


def json_objects(file: InputFile) -> Iterator[Row | Rejected]:
    """Read the objects of a file: a JSON document's records, or the objects of JSON lines.

    Raises
    ------
    BadInput
        A document that is too large, that is no JSON, or that holds no records.
    """
    file.refuse_unless_text()
    if is_list(file.head):
        yield from objects(file)
    elif is_document(file.head):
        yield from _records(file)
    else:
        yield from raw_rows(file)


def _records(file: InputFile) -> Iterator[Row | Rejected]:
    document, characters, size = _load(file)
    key = _key_of_records(document)
    if key is None:
        yield Row(1, document, size, characters)
        return
    records = document[key]
    for number, record in enumerate(records, 1):
        if isinstance(record, dict):
            yield Row(number, record, size // len(records), 0)
        else:
            yield Rejected(number, f"{key}: item {number} is not an object")


def _key_of_records(document: dict[str, Any]) -> str | None:
    """The key whose value is the list of records; None where the document is a record itself."""
    if "answer" in document:
        return None
    lists = [key for key, value in document.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    lists = [key for key in lists if key not in PARTS]
    named = next((key for key in KEYS if key in lists), None)
    return named or (lists[0] if len(lists) == 1 else None)


def _load(file: InputFile) -> tuple[dict[str, Any], int, int]:
    """The document, the characters in it that were repaired, and its size."""
    content, damaged = read_whole(file)
    if damaged:
        raise BadInput(f"{file.name} is cut off amid its JSON: fetch it again, whole")
    try:
        value = decode_json(content.decode("utf-8-sig"))
        characters = 0
        if may_need_repair(content):
            value, characters = repair(value)
    except UnicodeDecodeError as error:
        raise BadInput(f"{file.name} is not UTF-8 text (byte {error.start + 1}); save the file as UTF-8") from None
    except FieldError as error:
        raise BadInput(f"{file.name} begins as one JSON document and is {error}") from None
    except RecursionError:
        raise BadInput(f"{file.name} is nested too deeply to be traces") from None
    assert isinstance(value, dict)  # it begins with a brace
    return value, characters, len(content)


def _rows(file: InputFile, columns: Mapping[str, str]) -> Iterator[Row | Rejected]:
    for row in json_objects(file):
        yield row if isinstance(row, Rejected) or not columns else rename_fields(row, columns)


FORMATS = (Format("json", ENDINGS, is_document, json_objects, _rows, "JSON document", plain=True),)
