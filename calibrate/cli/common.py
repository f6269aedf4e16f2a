"""What several verbs share."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from calibrate import settings
from calibrate.errors import BadInput
from db import Store, open_store


def store(args: Namespace, *, create: bool = False) -> Store:
    return open_store(args.store or settings.read().store, create=create)


def user() -> str:
    return settings.read().user


def now() -> datetime:
    return datetime.now(UTC)


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`K=V` options as a mapping. Raises BadInput for one without `=`."""
    parsed = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise BadInput(f"{option} {item!r} should read NAME=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed


def outfile(given: str, *, replace: bool) -> Path:
    """The path of a file to write. Raises BadInput for one that cannot be: a directory, a device, in a folder that is
    not there or not ours; without `replace`, for one that is there already."""
    path = Path(given)
    try:
        place = path.resolve()
        if place.is_dir():
            why = "it is a directory; name a file in it"
        elif place.exists() and not place.is_file():
            why = "it is no file but a device or pipe, which is not replaced; name a file"
        elif place.exists() and not replace:
            why = "it is there already; --force replaces it, or name another file"
        elif not place.parent.is_dir():
            why = f"there is no folder {str(place.parent)!r}; make it first"
        elif not os.access(place.parent, os.W_OK | os.X_OK):
            why = f"nothing may be written in {str(place.parent)!r}; name another folder"
        else:
            return path
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a link to itself, a NUL
        why = f"{getattr(error, 'strerror', None) or error}; name another file"
    raise BadInput(f"cannot write {given!r}: {why}")


TRUNCATED = "the file could not be read to its end: what came before the damage is in the store; import a whole copy"


def say(line: str) -> None:
    """Progress, on standard error, over the line before it when somebody is watching."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)


def said() -> None:
    """Ends the progress line."""
    if sys.stderr.isatty():
        print(file=sys.stderr, flush=True)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows as aligned columns; the first row is the head. `right` columns are aligned right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
