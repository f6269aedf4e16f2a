"""Where a file may be written: never over the store, nor over a file of another kind."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calibrate.errors import BadInput

# What is written before it takes its name, with what SQLite keeps beside it.
TEMPORARY = re.compile(r"\.touchstone-[0-9a-f]{16}\.tmp(-wal|-shm|-journal)?")
ABANDONED = 3600.0  # seconds without a write after which its writer is taken for dead
BESIDE_A_STORE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside its file


@dataclass(frozen=True)
class Kind:
    """A kind of file that Touchstone writes.

    `name` is with its article, as in "a thresholds file". `matches` looks at the first `most` bytes of a file.
    """

    name: str
    matches: Callable[[bytes], bool]
    most: int = 1 << 16


def check_target(name: str | os.PathLike[str], kind: Kind, *, store: Path | None, replace: bool = True) -> Path:
    """Check that a file can be written, before the work that fills it.

    Parameters
    ----------
    name
        The path to write to. A link counts as what it points to.
    kind
        What will be written. A file that is there may be replaced only if it is of this kind, or empty.
    store
        The file of the open store, None where it is on a server.
    replace
        False refuses every file that exists.

    Returns
    -------
    Path
        The path as it was given.

    Raises
    ------
    BadInput
        With the reason and the remedy.
    """
    try:
        path = Path(name)
        problem = _problem(path.resolve(), kind, store, replace)
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a link to itself, a NUL
        problem = f"{getattr(error, 'strerror', None) or error}; name another file"
    if problem:
        raise BadInput(f"cannot write {os.fspath(name)!r}: {problem}")
    return path


def check_inside(name: str, folder: Path) -> Path:
    """Resolve a path that somebody typed on a page, from `folder`. Raises BadInput where it leads out of it."""
    try:
        root = folder.resolve()
        path = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(f"{name!r} is no path: {getattr(error, 'strerror', None) or error}") from None
    if not path.is_relative_to(root):
        raise BadInput(f"{name!r} is outside of {str(folder)!r}; pages read and write files only there")
    return path


def _problem(target: Path, kind: Kind, store: Path | None, replace: bool) -> str | None:
    """What is wrong with a target whose links are resolved."""
    if target.is_dir():
        return "it is a directory; name a file in it"
    exists = target.exists()
    if exists and not target.is_file():
        return "it is no file but a device or pipe, which is not replaced; name a file"
    if store is not None and _is_of_store(target, store):
        return "it is the store, or belongs to it; name another file"
    if exists and not _is_replaceable(target, kind):
        return f"it exists and is not {kind.name}; name another file, or remove it first"
    if exists and not replace:
        return "it exists already; --force replaces it, or name another file"
    if not target.parent.is_dir():
        return f"there is no folder {str(target.parent)!r}; make it first"
    if not os.access(target.parent, os.W_OK | os.X_OK):
        return f"the folder {str(target.parent)!r} must not be written to; name another folder"
    return None


def _is_of_store(target: Path, store: Path) -> bool:
    """Tell whether a path is a store's file, under any name, or one that SQLite keeps beside it."""
    file = store.resolve()
    for each in (file, *(file.with_name(file.name + ending) for ending in BESIDE_A_STORE)):
        if target == each or (target.exists() and each.exists() and target.samefile(each)):
            return True
    return False


def _is_replaceable(target: Path, kind: Kind) -> bool:
    with target.open("rb") as file:
        head = file.read(kind.most)
    return not head or kind.matches(head)


def remove_abandoned(folder: str | os.PathLike[str]) -> None:
    """Remove what killed processes left in a folder: temporary files of ours, untouched for `ABANDONED` seconds."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder or "."):
            with contextlib.suppress(OSError):
                if TEMPORARY.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > ABANDONED:
                    os.unlink(entry.path)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path for the block to write to: synced and renamed to `target` at its end, removed after an error."""
    remove_abandoned(target.parent)
    temporary = target.parent / f".touchstone-{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
