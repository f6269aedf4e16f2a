"""Recognize a file's format by its name, else by its first bytes, and read its traces."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected
from calibrate.ingest.files import InputFile
from calibrate.ingest.record import build
from calibrate.redaction import Redactor
from calibrate.types import Record


@cache
def formats() -> tuple[Format, ...]:
    """List every format of this package. A new module with `FORMATS` in it is enough to add one."""
    package = __name__.rpartition(".")[0]
    paths = importlib.import_module(package).__path__
    modules = [importlib.import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(paths)]
    return tuple(format for module in modules for format in getattr(module, "FORMATS", ()))


def format_of(file: InputFile, format_name: str) -> Format:
    """Return the format of that name; with `auto`, recognize the file's own."""
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
    suffix = file.path.with_suffix("").suffix if file.path.suffix.lower() == ".gz" else file.path.suffix
    for candidate in available:
        if suffix.lower() in candidate.suffixes:
            return candidate
    file.refuse_unless_text()
    for candidate in available:
        if candidate.sniff(file.head):
            return candidate
    accepted = ", ".join(suffix for candidate in available for suffix in candidate.suffixes)
    raise BadInput(f"{file.name} is in no format Touchstone reads; it reads {accepted} (.gz too)")


def records(
    file: InputFile, *, format: str, columns: Mapping[str, str] | None, redactor: Redactor | None = None
) -> Iterator[Record | Rejected]:
    """Read the open file's records and rejections in the order of its lines. Raises BadInput if there are none."""
    chosen = format_of(file, format)
    limits = settings.imports()
    empty = True
    for row in chosen.rows(file, columns or {}):
        empty = False
        if isinstance(row, Rejected):
            yield row
        else:
            yield build(row, format_name=chosen.name, limits=limits, redactor=redactor)
    if empty:
        raise BadInput(f"{file.name} holds no traces")


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
