"""The file of an SQLite store: made for its user alone, and watched, so that another in its place is noticed."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from calibrate.errors import BadInput, StoreReplaced
from db.opening.address import Address

PRIVATE = 0o600
# Rows of `revisions` that are no group of tables: which store this is, and how often it was written.
IDENTITY, WRITES = "store", "writes"
MARKS = f"SELECT name, stamp FROM revisions WHERE name IN ('{IDENTITY}', '{WRITES}')"
# A look past SQLite's locks may meet a copy or a checkpoint half done: seconds to wait before looking again.
WAITS = (0.0, 0.02, 0.1, 1.0, 2.0)
# From this look on, a file that cannot be read alone is read with the log beside it.
WITH_LOG = 2


class StoreFile:
    """The file of an open store.

    `mode` holds the file's permissions, `identity` the store's own random number, None until it is known. A file that
    another process puts in place is told by device and inode. One that is overwritten in place, or has got the inode of
    a deleted one, is told by what is in it: another store, or fewer writes than were seen before, as in an older copy.
    """

    def __init__(self, path: Path, *, mode: str) -> None:
        self.path = path.absolute()
        self.read_only = mode == "ro" or not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        self.identity: int | None = None
        status = os.stat(self.path)
        self.mode = stat.S_IMODE(status.st_mode)
        self._place = (status.st_dev, status.st_ino)
        self._state = (status.st_size, status.st_mtime_ns)
        self._marks = self._look() or {}
        self._refused: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise StoreReplaced if the file is no longer the one that was opened. Takes microseconds while nothing is."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise StoreReplaced(
                f"the store {self.path} is gone ({error.strerror}): it was deleted or moved while it was open here. "
                "Nothing more is read from it or written to it; put it back, or start again to make another",
                reopen=False,
            ) from None
        if (status.st_dev, status.st_ino) != self._place:
            raise StoreReplaced(
                f"the store {self.path} was replaced: another file is in its place since it was opened here. Nothing "
                "was written to that one; start again to work with it",
                reopen=True,
            )
        state = (status.st_size, status.st_mtime_ns)
        if state != self._state:
            self._compare(state)

    def connect(self) -> sqlite3.Connection:
        """A connection to the file. Raises StoreReplaced if it is not the one that was opened."""
        self.check()
        connection = sqlite3.connect(self._uri(), uri=True, timeout=30, check_same_thread=False)
        try:
            self.check()
            if self.identity is not None:
                stored = dict(connection.execute(MARKS).fetchall()).get(IDENTITY)
                if stored != self.identity:
                    _refuse_overwritten(self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _uri(self) -> str:
        name = f"file:{quote(str(self.path))}"
        if not self.read_only:
            return f"{name}?mode=rw"
        wal = self.path.with_name(f"{self.path.name}-wal")
        if os.access(self.path.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
            return f"{name}?mode=ro"
        return f"{name}?mode=ro&immutable=1"  # SQLite could not make the files that readers share

    def _compare(self, state: tuple[int, int]) -> None:
        """Look into a file that has changed, as it does at every checkpoint, for whether it is an older or another."""
        with self._lock:
            if state == self._refused:
                _refuse_overwritten(self.path)
            for attempt, wait in enumerate(WAITS):
                time.sleep(wait)
                marks, with_log = self._look(), False
                if attempt >= WITH_LOG and self._makes_no_sense(marks):
                    marks, with_log = self._look_with_log(), True
                if marks is not None and self._goes_on(marks):
                    self._state = state
                    if not with_log:  # the log counts writes that the file alone may lack at the next look
                        self._marks = marks
                    return
            self._refused = state
        _refuse_overwritten(self.path)

    def _goes_on(self, marks: Mapping[str, int]) -> bool:
        seen, identity = self._marks.get(IDENTITY), marks.get(IDENTITY)
        # Until the first checkpoint a store's identity is in the log alone, and this process may not know it yet.
        first_seen = seen is None and (identity is None or self.identity in (None, identity))
        return (first_seen or identity == seen) and marks.get(WRITES, 0) >= self._marks.get(WRITES, 0)

    def _makes_no_sense(self, marks: Mapping[str, int] | None) -> bool:
        """Whether a look at the file alone found no store at all, as amid a checkpoint, rather than another one."""
        return not marks or IDENTITY not in marks

    def _look(self) -> dict[str, int] | None:
        """The marks in the file itself, without what waits in the log beside it; None where it cannot be read."""
        return self._read_marks("mode=ro&immutable=1")

    def _look_with_log(self) -> dict[str, int] | None:
        """The marks as readers of the store see them.

        While others read, a checkpoint leaves out every page that was written since they began, so that the file alone
        may make no sense until the next one. An older copy does: it is refused before this is asked.
        """
        return self._read_marks("mode=ro")

    def _read_marks(self, options: str) -> dict[str, int] | None:
        try:
            uri = f"file:{quote(str(self.path))}?{options}"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                named = "SELECT count(*) FROM sqlite_master WHERE name = 'revisions'"
                if not connection.execute(named).fetchone()[0]:
                    return {}
                return dict(connection.execute(MARKS).fetchall())
        except (sqlite3.Error, UnicodeDecodeError):  # the driver cannot decode a complaint about a name that is no text
            return None


def prepare(address: Address, *, create: bool) -> StoreFile | None:
    """Check the file that a URL names, and make it, for its user alone, where it may be made. None for no file.

    Raises BadInput where it cannot be a store's.
    """
    if address.file is None:
        return None
    ensure(address.file, create=create and address.mode == "rwc")
    return StoreFile(address.file, mode=address.mode)


def ensure(path: Path, *, create: bool) -> None:
    """Check that a path is a store's, and with `create` make the file, for its user alone. Raises BadInput."""
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except OSError as error:  # a name too long, a folder that is not ours to look into
        raise BadInput(f"the store {path} cannot be opened: {error.strerror}; name another file") from error
    if is_folder:
        raise BadInput(f"the store {path} is a folder; name a file in it, like sqlite:///{path}/touchstone.db")
    if not exists:
        _make(path, create=create)


def _make(path: Path, *, create: bool) -> None:
    if not create:
        raise BadInput(f"there is no store at {path}: name another; `python -m calibrate demo` or `import` makes one")
    if not path.parent.is_dir():
        raise BadInput(f"the store {path} cannot be made: there is no folder {path.parent}; make it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise BadInput(f"the store {path} cannot be made: no right to write in {path.parent}; name another folder")
    try:
        # SQLite gives the files beside it the same mode.
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE)
        os.chmod(path, PRIVATE)  # whatever the umask took away
        os.close(descriptor)
    except FileExistsError:  # another process was faster
        return
    except OSError as error:
        raise BadInput(f"the store {path} cannot be made: {error.strerror}; name another file") from error


def _refuse_overwritten(path: Path) -> NoReturn:
    raise StoreReplaced(
        f"the store {path} was overwritten while it was open here, by another store or an older copy of it. Stop "
        f"everything that uses it, delete {path.name}-wal and {path.name}-shm, and put the copy there once more",
        reopen=False,
    )
