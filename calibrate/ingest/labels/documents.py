"""Read the objects of a JSON file: one a line, or the items of one list, with the line on which each begins."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.jsonl import raw_rows
from calibrate.ingest.values import FieldError, decode_json, expected, repair

MAX_DOCUMENT_BYTES = 256 * 1024**2
"""A list is read as a whole, so it is kept to what fits in memory several times. JSON lines have no such limit."""

# One list, or the answer of an API that has it under a name of its own.
_LIST = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*(?:"object"\s*:\s*"list"\s*,\s*)?"(?:data|items|records|runs|traces)"\s*:\s*)?\['
)
_BETWEEN = re.compile(r"[\s,]*")
_SKIPPER = json.JSONDecoder(strict=False)


def objects(file: InputFile) -> Iterator[Row | Rejected]:
    """Read the objects of a list, or of JSON lines. An item that is no object is rejected, the others are kept."""
    file.refuse_unless_text()
    opening = _LIST.match(file.head)
    if opening is None:
        yield from raw_rows(file)
        return
    whole, damaged = read_whole(file)
    start = opening.end()
    try:
        text = whole[start:].decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file.name} is not UTF-8 text (byte {start + error.start + 1}); save the file as UTF-8"
        ) from None
    yield from _items(text, whole.count(b"\n", 0, start) + 1, damaged)


def _items(text: str, line: int, damaged: bool) -> Iterator[Row | Rejected]:
    at = 0
    while True:
        begins = _BETWEEN.match(text, at)
        assert begins is not None
        line += text.count("\n", at, begins.end())
        at = begins.end()
        if text[at : at + 1] == "]":
            return
        try:
            _, end = _SKIPPER.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError, ValueError) as error:
            what = "the file ends amid the list" if damaged or at >= len(text) else _describe(error)
            yield Rejected(line, f"{what}: the items before it were read", last=True)
            return
        try:
            yield _row(line, text[at:end])
        except FieldError as error:
            yield Rejected(line, str(error))
        line += text.count("\n", at, end)
        at = end


def _row(line: int, text: str) -> Row:
    value: Any = decode_json(text)
    if not isinstance(value, dict):
        raise expected("the item", "an object", value)
    try:
        value, characters = repair(value)
    except RecursionError:
        raise FieldError("not usable JSON: it is nested too deeply") from None
    return Row(line, value, len(text), characters)


def _describe(error: Exception) -> str:
    return f"not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else "not usable JSON"


def is_list(head: bytes) -> bool:
    """Whether a file begins with a list, bare or as an API answers with it."""
    return _LIST.match(head) is not None


def read_whole(file: InputFile) -> tuple[bytes, bool]:
    """The file's content, and whether it could not be read to its end. Raises BadInput for one that is too large."""
    parts, size = [], 0
    try:
        while part := file.stream.read1(1 << 20):
            parts.append(part)
            size += len(part)
            if size > MAX_DOCUMENT_BYTES:
                megabytes = MAX_DOCUMENT_BYTES // 1024**2
                raise BadInput(
                    f"{file.name} is one JSON document of more than {megabytes} MB; write one object per line, or "
                    "split it"
                )
    except (EOFError, zlib.error, OSError):
        return b"".join(parts), True
    return b"".join(parts), False
