"""A new file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrate.errors import BadInput, StoreError
from calibrate.targets import remove_abandoned


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, empty and for its owner's eyes only, for the body of the `with` to fill.

    When the body succeeds the file is on disk (synced, with its folder) and takes the name, unless another file has
    come there meanwhile. After an error it is removed. Raises BadInput where there is a file already, StoreError.
    """
    if os.path.lexists(path):
        raise BadInput(f"{path} is there already: name a file that does not exist yet")
    with _sentences(path), staged(path) as temporary:
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(0o600)
        sync(temporary)
        _name(temporary, path)
        sync(path.parent)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, removed at the end of the block if it still has its own name."""
    remove_abandoned(path.parent)
    temporary = path.parent / f".touchstone-{secrets.token_hex(8)}.tmp"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield temporary
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(f"{temporary}{ending}")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(temporary, path)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise BadInput(f"{path} has come there meanwhile: name a file that does not exist yet") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError(
                f"{path} could not be written: {error.strerror or error}; no file was left there: free some space, or "
                "name a file on another disk"
            ) from error
        raise StoreError(f"{path} could not be written: {error.strerror or error}; no file was left there") from error
