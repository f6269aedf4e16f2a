"""Recognize a file's format by what it holds, else by its name, and read its traces."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.record import build
from calibrate.redaction import Redactor
from calibrate.sanitize import visible
from calibrate.types import Record

COMPRESSED = (".gz", ".zst", ".zstd")
TABLES = (".csv", ".tsv", ".parquet", ".pq")
HOPELESS = 20
"""After so many records without one that could be a trace, the file is refused with one sentence."""

_HOLD_BYTES = 4 * 1024 * 1024  # what may wait until it is known whether the file has traces


@cache
def formats() -> tuple[Format, ...]:
    """List every format of this package. A new module or package with `FORMATS` in it is enough to add one."""
    package = __name__.rpartition(".")[0]
    paths = importlib.import_module(package).__path__
    modules = [importlib.import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(paths)]
    return tuple(format for module in modules for format in getattr(module, "FORMATS", ()))


def title_of(name: str) -> str:
    """What people call the format of that name: "JSON lines"; a name that is none, as it is."""
    titles = {format.name: format.title for format in formats()}
    return titles.get(name) or name


def format_of(file: InputFile, format_name: str) -> Format:
    """Return the format of that name; with `auto`, recognize the file's own.

    Exports of other systems are JSON like any other and are called like it, so they are recognized by what they hold.
    The ending decides between records of the team's own: JSON lines, CSV, Parquet. Raises BadInput for a file that is
    in none.
    """
    available = formats()
    if format_name != "auto":
        for candidate in available:
            if candidate.name == format_name:
                return candidate
        names = ", ".join(["auto", *(candidate.name for candidate in available)])
        raise BadInput(f"there is no format {format_name!r}; there are {names}")
    if file.head.startswith(b"PAR1"):
        # Parquet identifies itself, whatever the file is called.
        return next(candidate for candidate in available if candidate.name == "parquet")
    path = file.path.with_suffix("") if file.path.suffix.lower() in COMPRESSED else file.path
    suffix = path.suffix.lower()
    systems = [candidate for candidate in available if not candidate.plain]
    if suffix not in TABLES:
        for candidate in systems:
            if candidate.sniff(file.head):
                return candidate
    named = [candidate for candidate in available if suffix in candidate.suffixes]
    if named:
        return next((candidate for candidate in named if candidate.sniff(file.head)), named[-1])
    file.refuse_unless_text()
    for candidate in available:
        if candidate.sniff(file.head):
            return candidate
    raise BadInput(f"{file.name} {_looks_like(file.head)}; {_what_is_read()}")


def records(
    file: InputFile, *, format: str, columns: Mapping[str, str] | None, redactor: Redactor | None = None
) -> Iterator[Record | Rejected]:
    """Read the open file's records and rejections in the order of its lines. Raises BadInput if there are none."""
    chosen = format_of(file, format)
    limits = settings.imports()
    empty = True
    for row in _refuse_other_files(chosen.rows(file, columns or {}), file, chosen):
        empty = False
        if isinstance(row, Rejected):
            yield row
        else:
            yield build(row, format_name=chosen.name, limits=limits, redactor=redactor)
    if empty:
        raise BadInput(f"{file.name} holds no traces")


def _refuse_other_files(rows: Iterator[Row | Rejected], file: InputFile, chosen: Format) -> Iterator[Row | Rejected]:
    """Pass the rows on. Raises BadInput where the first ones show that the file holds something else: no JSON, or
    records of which none has an answer."""
    held: list[Row | Rejected] = []
    size = 0
    for row in rows if chosen.plain else ():
        held.append(row)
        size += 0 if isinstance(row, Rejected) else row.size
        if not _is_hopeless(row) or size > _HOLD_BYTES:
            break
        if len(held) == HOPELESS:
            raise BadInput(_describe_others(held, file))
    else:
        if chosen.name == "json" and held and not any(isinstance(row, Rejected) for row in held):
            raise BadInput(_describe_others(held, file))
    yield from held
    del held
    yield from rows


def _is_hopeless(row: Row | Rejected) -> bool:
    if isinstance(row, Rejected):
        return row.reason.startswith("not JSON:") and not row.last
    return "answer" not in row.fields


def _describe_others(held: Sequence[Row | Rejected], file: InputFile) -> str:
    read = [row for row in held if isinstance(row, Row)]
    if not read:
        return f"{file.name} {_looks_like(file.head)}: its first {len(held)} lines are no JSON; {_what_is_read()}"
    keys = list(dict.fromkeys(key for row in read for key in row.fields))
    listed = ", ".join(repr(visible(key[:40])) for key in keys[:12]) + (", …" if len(keys) > 12 else "")
    which = "its record has" if len(read) == 1 else f"its first {len(read)} records have"
    return (
        f"{file.name} has no 'answer': {which} {listed or 'no keys'}. Say which of them is the answer, with "
        f"--column answer=KEY, or give a file of another kind; {_what_is_read()}"
    )


def _looks_like(head: bytes) -> str:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<"):
        return "looks like XML or HTML"
    if text.startswith((b"{", b"[")):
        return "looks like JSON of a shape that is not known"
    return "looks like plain text"


def _what_is_read() -> str:
    titles = ", ".join(candidate.title or candidate.name for candidate in formats())
    return f"Touchstone reads {titles} (compressed with gzip or zstd too)"


def read(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    redactor: Redactor | None = None,
) -> Iterator[Record | Rejected]:
    """Read the traces of a file one by one, with a `Rejected` for each line that holds none.

    `columns` maps fields to the columns (or JSON keys) they are read from: `{"answer": "response"}`. Raises `BadInput`
    for a file that cannot be read at all. Memory does not grow with the file.
    """
    with InputFile(path) as file:
        yield from records(file, format=format, columns=columns, redactor=redactor)
