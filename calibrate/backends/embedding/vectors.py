"""Cache vectors on this machine between runs, in one bounded SQLite file that drops the least recently used.

Whatever goes wrong with it (a full disk, a broken file) costs time, never a score.
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from calibrate.backends import cache
from calibrate.errors import TouchstoneError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

LIMIT_MB = 1024
DAY = 86_400
KEYS_PER_QUERY = 500  # keys in one question
_log = logging.getLogger(__name__)


def location() -> Path | None:
    """Path of the file: in TOUCHSTONE_CACHE, else in the user's cache folder. None if TOUCHSTONE_CACHE_MB is 0."""
    if limit_bytes() == 0:
        return None
    return cache.folder() / "vectors.sqlite"


def limit_bytes() -> int:
    """Largest size of the file in bytes, from TOUCHSTONE_CACHE_MB."""
    megabytes = os.environ.get("TOUCHSTONE_CACHE_MB", "")
    return (int(megabytes) if megabytes.isdigit() else LIMIT_MB) * 1_000_000


def forget() -> bool:
    """Remove every vector on this machine, from the file's free pages too: texts can be guessed from their vectors.

    Returns whether there were any. Other processes may go on with the file. Raises TouchstoneError where it is locked
    or broken.
    """
    path = location()
    if path is None or not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as file:
            had = file.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None
            file.execute("DELETE FROM vectors")
            file.execute("VACUUM")
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise TouchstoneError(f"the embeddings in {path} cannot be removed: {error}; remove the file") from error
    return had


class Vectors:
    """The vectors of one model revision. Safe between threads and between processes."""

    def __init__(self, revision: str, path: Path | None, *, limit: int) -> None:
        self._revision, self._limit = revision, limit
        self._lock = threading.Lock()
        self._file = _open(path) if path is not None else None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Look up vectors; keys without one are left out."""
        import numpy as np

        stored: dict[bytes, bytes] = {}
        with self._lock:
            try:
                for start in range(0, len(keys) if self._file else 0, KEYS_PER_QUERY):
                    stored.update(self._read_batch(keys[start : start + KEYS_PER_QUERY]))
            except sqlite3.Error as error:
                self._give_up(error)
        return {key: np.frombuffer(value, dtype=np.float32) for key, value in stored.items()}

    def _read_batch(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        assert self._file is not None
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, vector, used FROM vectors WHERE revision = ? AND key IN ({marks})"
        rows = self._file.execute(query, [self._revision, *keys]).fetchall()
        today = int(time.time() // DAY)
        old = [(today, self._revision, key) for key, _, used in rows if used < today]
        if old:
            self._file.executemany("UPDATE vectors SET used = ? WHERE revision = ? AND key = ?", old)
        return {key: vector for key, vector, _ in rows}

    def add(self, fresh: Mapping[bytes, Vector]) -> None:
        today = int(time.time() // DAY)
        rows = [(self._revision, key, today, vector.tobytes()) for key, vector in fresh.items()]
        with self._lock:
            if self._file is None or not rows:
                return
            try:
                with self._file:
                    self._file.execute("BEGIN")
                    self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
                self._shrink()
            except sqlite3.Error as error:
                self._give_up(error)

    def _shrink(self) -> None:
        """If the file is full, drop the least recently used vectors, down to nine tenths. SQLite reuses the pages."""
        assert self._file is not None
        pages, free, size = (
            self._file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        used = (pages - free) * size
        if used > self._limit:
            count = self._file.execute("SELECT count(*) FROM vectors").fetchone()[0]
            surplus = math.ceil(count * (1 - 0.9 * self._limit / used))
            oldest = "SELECT rowid FROM vectors ORDER BY used, rowid LIMIT ?"
            self._file.execute(f"DELETE FROM vectors WHERE rowid IN ({oldest})", [surplus])

    def _give_up(self, error: sqlite3.Error) -> None:
        _log.warning("vectors are no longer cached: %s", error)
        self._file = None


def _open(path: Path) -> sqlite3.Connection | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = OFF")  # what a crash loses is computed again
        file.execute(
            "CREATE TABLE IF NOT EXISTS vectors"
            " (revision TEXT, key BLOB, used INTEGER, vector BLOB, PRIMARY KEY (revision, key))"
        )
        file.execute("CREATE INDEX IF NOT EXISTS vectors_used ON vectors (used)")
    except (OSError, sqlite3.Error) as error:
        _log.warning("vectors are not cached: %s: %s", path, error)
        return None
    return file
