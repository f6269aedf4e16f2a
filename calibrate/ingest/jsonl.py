"""JSON lines: one trace per line, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from calibrate.ingest.base import Format, Rejected, Row, attribute_name
from calibrate.ingest.files import BadLine, InputFile
from calibrate.ingest.values import FieldError, decode_json, expected, may_need_repair, repair

ENDINGS = (".json", ".jsonl", ".ndjson")
"""Used for JSON lines and for whole documents alike."""


def json_rows(file: InputFile, columns: Mapping[str, str]) -> Iterator[Row | Rejected]:
    """Read the objects of the file, one per line, with their keys renamed by the mapping. Skips blank lines."""
    for row in raw_rows(file):
        yield row if isinstance(row, Rejected) or not columns else rename_fields(row, columns)


def rename_fields(row: Row, columns: Mapping[str, str]) -> Row:
    """Give the keys that the mapping names the names of our fields."""
    by_key = {key: field for field, key in columns.items()}
    fields = {by_key.get(key) or attribute_name(key, columns): value for key, value in row.fields.items()}
    return replace(row, fields=fields)


def raw_rows(file: InputFile) -> Iterator[Row | Rejected]:
    file.refuse_unless_text()
    lines = file.lines
    while True:
        try:
            line = next(lines)
            if not line.isspace() and line:
                yield _parse_line(lines.number, line, file.item)
        except StopIteration:
            return
        except BadLine as problem:
            yield Rejected(problem.line, problem.reason, problem.last)
        except FieldError as problem:
            yield Rejected(lines.number, str(problem))


def _parse_line(number: int, line: bytes, item: str) -> Row:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise FieldError(f"not UTF-8 text (byte {error.start + 1} of the line); save the file as UTF-8") from None
    value = decode_json(text)
    if not isinstance(value, dict):
        raise expected("the line", "an object with an answer" if item == "trace" else f"an object with a {item}", value)
    characters = 0
    if may_need_repair(line):
        try:
            value, characters = repair(value)
        except RecursionError:
            raise FieldError("not usable JSON: it is nested too deeply") from None
    return Row(number, value, len(line), characters)


def _sniff(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


FORMATS = (Format("jsonl", ENDINGS, _sniff, raw_rows, json_rows, "JSON lines", plain=True),)
