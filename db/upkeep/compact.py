"""Write the database's files anew, so that deleted bytes are in no free page and in no log of writes."""

from __future__ import annotations

import time

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from calibrate.errors import StoreError
from db.opening.failures import reason

PATIENCE = 10.0  # seconds to wait for readers to finish
TABLES = (
    "traces",
    "sources",
    "texts",
    "drawn_alternatives",
    "scores",
    "replies",
    "labels",
    "decisions",
    "outbox",
    "annotations",
    "received",
)
MORE = ("runs", "proposals", "operating_points", "certifications", "rechecks", "ensembles", "samples")


def compact(engine: Engine, *, patience: float = PATIENCE, rewrite: bool = True) -> bool:
    """Rewrite the files; without `rewrite` only empty SQLite's write-ahead log.

    False where somebody else held the store for so long that old bytes may be left.

    SQLite: VACUUM, then the write-ahead log is emptied. PostgreSQL: VACUUM (FULL, ANALYZE) of the tables that hold
    texts, one after the other; each is locked while it is rewritten. Its own write-ahead log, replicas and backups are
    the server's business. Raises StoreError where the database fails, on a full disk for instance.
    """
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if engine.dialect.name == "sqlite":
                return _compact_sqlite(connection, patience, rewrite=rewrite)
            return _compact_postgresql(connection, patience)
    except DBAPIError as error:
        raise StoreError(
            f"the texts are removed, but the database's files could not be written anew: {reason(error)}; their bytes "
            "may still lie in free pages until the same command is run again"
        ) from error


def _compact_sqlite(connection: Connection, patience: float, *, rewrite: bool) -> bool:
    driver = connection.connection.dbapi_connection
    assert driver is not None
    if rewrite:
        driver.execute("VACUUM")
    end = time.monotonic() + patience
    while True:
        busy, left, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy and left <= 0:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.2)


def _compact_postgresql(connection: Connection, patience: float) -> bool:
    complete = True
    connection.execute(text(f"SET lock_timeout = '{round(patience * 1000)}ms'"))
    try:
        for name in (*TABLES, *MORE):
            try:
                connection.execute(text(f"VACUUM (FULL, ANALYZE) {name}"))
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) != "55P03":  # lock_not_available
                    raise
                connection.execute(text(f"VACUUM (ANALYZE) {name}"))
                complete = False
    finally:
        connection.execute(text("RESET lock_timeout"))
    return complete
