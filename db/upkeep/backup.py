"""Copies of an SQLite store, by SQLite's own backup: made while others write to it, verified, and put back."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL

from calibrate.errors import BadInput, StoreError
from calibrate.urls import HARMLESS
from db.opening.address import Address, parse
from db.opening.failures import reason
from db.opening.store_file import ensure
from db.upkeep.schemas import known_schemas
from db.upkeep.staging import new_file, staged, sync

PAGES = 2_000  # that one step of a copy takes: 8 MB
BESIDE = ("", "-wal", "-shm", "-journal")  # the endings of what may lie where a store is
SECONDS = 2.0  # that a lock of another process is waited for
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Copy:
    """A verified copy of a store: the revision of its schema, its rows by table, its size in bytes."""

    path: Path
    schema: str
    rows: Mapping[str, int]
    size: int


@dataclass(frozen=True, slots=True)
class Restored:
    """A backup that became the store. `before` is where the old store lies now, None where there was none."""

    copy: Copy
    before: Path | None


def back_up(url: str, path: Path, *, on_progress: Progress | None = None) -> Copy:
    """Copy the store at this URL to a new file as it is at one moment, whoever writes to it meanwhile.

    The store is not brought up to date, so that this can come before an upgrade. The copy is one file with nothing
    beside it. Before it takes its name it is synced, opened, checked by SQLite and counted. Raises BadInput or
    StoreError, and leaves no file then.
    """
    address = parse(url)
    if address.url.get_backend_name() != "sqlite":
        command = f"pg_dump --format=custom --file={shlex.quote(str(path))} --dbname={_for_libpq(address.url)}"
        raise BadInput(f"this store is PostgreSQL's, which keeps its own backups: run `{command}`")
    store = _file(address)
    ensure(store, create=False)
    if any(os.path.realpath(path) == os.path.realpath(f"{store}{ending}") for ending in BESIDE):
        raise BadInput(f"{path} is the store, or SQLite keeps it beside the store; name another file")
    with new_file(path) as temporary:
        with _as_store_error(path), _reading(store) as source:
            source.execute("BEGIN")  # what is read from here on is of one moment
            counted = _count(source)
            _copy(source, temporary, on_progress)
        copy = _verified(temporary, path)
        if copy.rows != counted:
            raise StoreError(f"the copy does not hold the rows that the store has: {path} was not written; try again")
    return copy


def verify(path: Path) -> Copy:
    """Look whether a file is a whole store that this Touchstone can open. Raises BadInput with what is wrong."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError as error:
        raise BadInput(f"the backup {path} cannot be read: {error.strerror}; name another file") from error
    if head != b"SQLite format 3\0":
        raise BadInput(f"{path} is no backup of a store (no SQLite file); name what `backup` wrote")
    try:
        return _verified(path, path)
    except StoreError as error:
        raise BadInput(f"{error}; restore another backup") from error


def restore(url: str, backup: Path, *, replace: bool, now: datetime) -> Restored:
    """Make a verified copy of the backup the store at this URL.

    With `replace` the store that is there is kept beside it under another name. It is refused while another process of
    this machine has that store open. At every moment there is a whole store at the path: the old one or the new one.
    Raises BadInput or StoreError; nothing has changed then.
    """
    address = parse(url)
    if address.url.get_backend_name() != "sqlite":
        command = f"pg_restore --no-owner --dbname={_for_libpq(address.url)} {shlex.quote(str(backup))}"
        raise BadInput(f"this store is PostgreSQL's, which restores its own backups: run `{command}`")
    target = _file(address)
    source = verify(backup)
    existing = [Path(f"{target}{ending}") for ending in BESIDE if os.path.lexists(f"{target}{ending}")]
    if any(backup.resolve() == path.resolve() for path in existing):
        raise BadInput(f"{backup} is the store itself; name a backup of it")
    if existing and not replace:
        raise BadInput(
            f"there is a file at {existing[0]} already: --replace keeps it beside, under another name; "
            "or name a store that does not exist yet with --store"
        )
    if not target.parent.is_dir():
        raise BadInput(f"the store {target} cannot be made: there is no folder {target.parent}; make it first")
    try:
        if not existing:
            with new_file(target) as temporary:
                copy = _copied(backup, temporary, target, source.rows)
            return Restored(copy, None)
        with staged(target) as temporary:
            copy = _copied(backup, temporary, target, source.rows)
            sync(temporary)
            before = _replace(target, temporary, now)
    except OSError as error:
        raise StoreError(f"{target} could not be restored: {error.strerror or error}; nothing was changed") from error
    return Restored(copy, before)


def _copied(backup: Path, temporary: Path, target: Path, rows: Mapping[str, int]) -> Copy:
    with _as_store_error(target), _reading(backup) as source:
        _copy(source, temporary, None)
    copy = _verified(temporary, target)
    if copy.rows != rows:
        raise StoreError(f"the copy does not hold the rows of {backup}: {target} was not written; try again")
    return copy


def _replace(target: Path, temporary: Path, now: datetime) -> Path:
    """Put the file in the store's place, and give the store that was there another name, which is returned."""
    before = Path(f"{target}.before-{now.astimezone(UTC).strftime('%Y%m%dT%H%M%SZ')}")
    with _alone(target):
        for ending in BESIDE[1:]:  # of a store that SQLite could not open; else there is nothing beside it by now
            if os.path.lexists(f"{target}{ending}"):
                os.rename(f"{target}{ending}", f"{before}{ending}")
        if os.path.lexists(target):
            try:
                os.link(target, before)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                os.rename(target, before)
        os.replace(temporary, target)
        sync(target.parent)
    return before


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the store's lock, with its WAL written into it, so that nobody else has it open. BadInput if somebody has.

    Of a file that SQLite cannot read it cannot be told; that is when a backup is wanted most, so it is let through.
    """
    if not path.is_file():
        yield
        return
    with closing(sqlite3.connect(path, timeout=SECONDS, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
            connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise BadInput(
                    f"the store {path} is open in another process (the workbench, serve, watch or a worker): end it "
                    "first; nothing was changed"
                ) from error
        except sqlite3.DatabaseError:
            pass
        yield


def _copy(source: sqlite3.Connection, path: Path, on_progress: Progress | None) -> None:
    def advance(_: int, left: int, total: int) -> None:
        if on_progress is not None:
            on_progress(total - left, total)

    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        source.backup(target, pages=PAGES, progress=advance)
        target.execute("PRAGMA journal_mode=DELETE").fetchall()  # one file, which a read-only place can hold


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing but what SQLite needs beside the file to read it."""
    options = "mode=rw" if os.access(path, os.W_OK) else "mode=ro"
    if not os.path.exists(f"{path}-wal") and not os.access(path.parent, os.W_OK):
        options = "mode=ro&immutable=1"  # nobody can be writing, and SQLite cannot either
    uri = f"{path.resolve().as_uri()}?{options}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=SECONDS)) as connection:
        yield connection


def _verified(path: Path, name: Path) -> Copy:
    """What the file holds. Raises StoreError, with `name`, unless SQLite finds it whole and it is a store we know."""
    with _as_store_error(name), _reading(path) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise StoreError(f"{name} is damaged: {' '.join(answer.split())}")
        rows = _count(connection)
        version = "SELECT version_num FROM alembic_version"
        schema = connection.execute(version).fetchone() if "alembic_version" in rows else None
    if schema is None:
        raise StoreError(f"{name} is no Touchstone store")
    if schema[0] not in known_schemas():
        newest = known_schemas()[-1]
        raise StoreError(f"{name} is of a newer Touchstone (schema {schema[0]}, this one knows {newest}): upgrade it")
    return Copy(name, schema[0], rows, path.stat().st_size)


def _count(connection: sqlite3.Connection) -> dict[str, int]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in sorted(names)}


def folder_of(url: str) -> Path | None:
    """The folder of an SQLite store's file; None for a store in memory or on a server."""
    path = parse(url).file
    return None if path is None else path.parent


def _file(address: Address) -> Path:
    if address.file is None:
        raise BadInput("a store in memory has no file; name one with --store, like sqlite:///touchstone.db")
    return address.file


def _for_libpq(url: URL) -> str:
    """The URL as PostgreSQL's own programs take it, without its secrets: they ask for them, or read ~/.pgpass."""
    query = {name: value for name, value in url.query.items() if name in HARMLESS}
    bare = URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    return shlex.quote(bare.render_as_string(hide_password=False))


@contextmanager
def _as_store_error(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            raise StoreError(
                f"{path} could not be copied or read: {reason(error)}; look whether the disk is full: free some space, "
                "or name a file on another one"
            ) from error
        raise StoreError(f"{path} could not be copied or read: {reason(error)}") from error
