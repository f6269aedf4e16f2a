"""Insert records into the table `logged` of a store. The workbench imports them from there.

A role that may insert into this one table is all that a program needs on PostgreSQL. The statement stands here and not
in `db`, which production does not have; a test holds it to the table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, unquote

from calibrate.errors import BadInput, Unavailable
from calibrate.urls import redact

if TYPE_CHECKING:
    import psycopg

INSERT = "INSERT INTO logged (record) VALUES ({})"


class Inserts(Protocol):
    """Where records go. Both methods are called from one thread, and raise what the database raises."""

    name: str

    def write(self, records: Sequence[str]) -> None:
        """Insert all of them, or none."""
        ...

    def close(self) -> None: ...


def inserts_of(url: str, *, timeout: float) -> Inserts:
    """Make what inserts into the store of this URL. Nothing is opened yet.

    Parameters
    ----------
    url : str
        A store's, as the workbench has it.
    timeout : float
        Seconds that connecting, and a lock that another holds, may take.

    Returns
    -------
    Inserts

    Raises
    ------
    BadInput
        For a URL of no store.
    Unavailable
        Where PostgreSQL's driver is not installed.
    """
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    backend = scheme.partition("+")[0]
    if separator and backend == "sqlite":
        path = unquote(rest.partition("?")[0].removeprefix("/"))
        if path in ("", ":memory:"):
            raise BadInput(f"the store {redact(url)} is in memory, where nobody else sees it: name a file")
        return SqliteInserts(Path(path), timeout)
    if separator and backend in ("postgres", "postgresql"):
        return PostgresInserts(f"postgresql://{rest}", redact(url), timeout)
    shown = redact(url) if isinstance(url, str) else url
    raise BadInput(f"the store URL {shown!r} is not one: write sqlite:///file.db or postgresql://host/database")


class SqliteInserts:
    """Opens the file for every batch: what was put in its place meanwhile, a backup for instance, is written to."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.name = str(path)
        self._uri, self._timeout = f"file:{quote(os.path.abspath(path))}?mode=rw", timeout

    def write(self, records: Sequence[str]) -> None:
        import sqlite3

        with closing(sqlite3.connect(self._uri, uri=True, timeout=self._timeout, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT.format("?"), [(record,) for record in records])
            connection.execute("COMMIT")

    def close(self) -> None:
        """Nothing is open between two batches."""


class PostgresInserts:
    """Holds one connection, and makes another after an error. psycopg is needed, and nothing else of the product."""

    def __init__(self, url: str, name: str, timeout: float) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise Unavailable(f"{name} needs PostgreSQL's driver: pip install 'psycopg[binary]'") from error
        self.name, self._url, self._timeout = name, url, timeout
        self._connect = psycopg.connect
        self._connection: psycopg.Connection | None = None

    def write(self, records: Sequence[str]) -> None:
        try:
            if self._connection is None:
                self._connection = self._open()
            with self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.executemany(INSERT.format("%s"), [(record,) for record in records])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> psycopg.Connection:
        seconds, patience = max(1, round(self._timeout)), round(self._timeout * 1000)
        connection = self._connect(
            self._url, connect_timeout=seconds, application_name="touchstone log", autocommit=True,
            keepalives_idle=10, keepalives_interval=5, keepalives_count=3,
        )  # fmt: skip
        # Of the session: a role of few rights may set both.
        connection.execute(f"SET statement_timeout = {patience}")
        connection.execute(f"SET lock_timeout = {patience}")
        return connection
