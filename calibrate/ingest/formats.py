"""Which format a file has: by its name, else by how it begins."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache

from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Record, Rejected
from calibrate.ingest.files import InputFile
from calibrate.ingest.record import build


@cache
def formats() -> tuple[Format, ...]:
    """Every format of this package: a new file with `FORMATS` in it is enough to add one."""
    package = __name__.rpartition(".")[0]
    paths = importlib.import_module(package).__path__
    modules = [importlib.import_module(f"{package}.{found.name}") for found in pkgutil.iter_modules(paths)]
    return tuple(one for module in modules for one in getattr(module, "FORMATS", ()))


def format_of(file: InputFile, format_name: str) -> Format:
    """The format of that name; with `auto`, the file's own."""
    known = formats()
    if format_name != "auto":
        for one in known:
            if one.name == format_name:
                return one
        names = ", ".join(["auto", *(one.name for one in known)])
        raise BadInput(f"there is no format {format_name!r}; there are {names}")
    if file.head.startswith(b"PAR1"):
        # Parquet says so itself, whatever the file is called.
        return next(one for one in known if one.name == "parquet")
    suffix = file.path.with_suffix("").suffix if file.path.suffix.lower() == ".gz" else file.path.suffix
    for one in known:
        if suffix.lower() in one.suffixes:
            return one
    file.refuse_unless_text()
    for one in known:
        if one.sniff(file.head):
            return one
    accepted = ", ".join(suffix for one in known for suffix in one.suffixes)
    raise BadInput(f"{file.name} is in no format Touchstone reads; it reads {accepted} (.gz too)")


def records(file: InputFile, *, format: str, columns: Mapping[str, str] | None) -> Iterator[Record | Rejected]:
    """The open file's records and rejections in the order of its lines. A file without any is refused."""
    chosen = format_of(file, format)
    empty = True
    for row in chosen.rows(file, columns or {}):
        empty = False
        yield row if isinstance(row, Rejected) else build(row, format_name=chosen.name)
    if empty:
        raise BadInput(f"{file.name} holds no traces")


def read(
    path: str | os.PathLike[str], *, format: str = "auto", columns: Mapping[str, str] | None = None
) -> Iterator[Record | Rejected]:
    """The traces of a file, one after the other, and a `Rejected` for each line that holds none.

    `columns` maps fields to the columns (or JSON keys) they are read from: `{"answer": "response"}`. Raises `BadInput`
    for a file that cannot be read at all; memory stays the same whatever the file's size.
    """
    with InputFile(path) as file:
        yield from records(file, format=format, columns=columns)
