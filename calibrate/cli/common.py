"""What several verbs share: the store, the user and the clock, options that are read alike."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import db
from calibrate import settings
from calibrate.errors import BadInput
from calibrate.thresholds.files import scheme_of

TRUNCATED = "the file could not be read to its end: what came before the damage is in the store; import a whole copy"


def open_store(args: Namespace, *, create: bool = False) -> db.Store:
    """Open the store that --store or the environment names."""
    return db.open_store(args.store or settings.read().store, create=create)


def user() -> str:
    """Name the person who labels, chooses and releases."""
    return settings.read().user


def now() -> datetime:
    return datetime.now(UTC)


def parse_pairs(items: Sequence[str], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` options as a mapping. Raises BadInput for an item without `=`."""
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadInput(f"{option} {item!r} should read NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def output_path(name: str, *, replace: bool) -> Path:
    """Check that a file can be written, before the work that fills it.

    Raises BadInput for a directory or device, for a folder that does not exist or must not be written to, and without
    `replace` for a file that exists.
    """
    path = Path(name)
    try:
        target = path.resolve()
        if target.is_dir():
            problem = "it is a directory; name a file in it"
        elif target.exists() and not target.is_file():
            problem = "it is no file but a device or pipe, which is not replaced; name a file"
        elif target.exists() and not replace:
            problem = "it exists already; --force replaces it, or name another file"
        elif not target.parent.is_dir():
            problem = f"there is no folder {str(target.parent)!r}; make it first"
        elif not os.access(target.parent, os.W_OK | os.X_OK):
            problem = f"the folder {str(target.parent)!r} must not be written to; name another folder"
        else:
            return path
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a link to itself, a NUL
        problem = f"{getattr(error, 'strerror', None) or error}; name another file"
    raise BadInput(f"cannot write {name!r}: {problem}")


def thresholds_path(name: str) -> str:
    """Check where a thresholds file is to go: a URL, or a file that may be there already."""
    return name if scheme_of(name) else str(output_path(name, replace=True))
