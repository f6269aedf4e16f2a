"""Opening a store, and its transactions: one to read, one to write, and what every aggregate needs of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Select,
    create_engine,
    event,
    func,
    insert,
    inspect,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError
from sqlalchemy.pool import NullPool

from calibrate.errors import NOT_WRITTEN, BadInput, StoreError, TouchstoneError
from calibrate.urls import redact
from db import revision
from db.opening.address import Address, parse
from db.opening.failures import damaged, failure, reason
from db.opening.store_file import IDENTITY, WRITES, StoreFile, prepare
from db.tables import Base, RevisionRow, table
from db.tables.bulk import upsert

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Transaction = Connection
"""A write transaction under way. Other packages only pass it back to this one."""
MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = "0022"  # the newest migration; a test compares it with the folder
# The advisory lock of writers that assign keys, on databases with more than one writer at a time.
WRITE_LOCK = 0x70C57
MOST = 2**31 - 1  # the largest key a database counts to; to ask for a larger one is an error there
CHECKS: list[Callable[[frozenset[revision.Group]], None]] = []
"""Asked before a write transaction commits, with the groups of tables it writes to: one that raises undoes it."""


def connect(url: str, *, create: bool = True) -> Engine:
    """Open a store and bring its schema up to date.

    With `create` an absent SQLite file or an empty database becomes a store; without it, it is refused. Raises BadInput
    where another URL is the remedy (a kind of database we do not support, a file that is no store or cannot be made),
    StoreError where the store cannot be opened now.
    """
    address = parse(url)
    file = prepare(address, create=create)
    engine = create_engine(address.url, **_options(address, file))
    engine.update_execution_options(file=file)
    if address.url.get_backend_name() == "sqlite":
        _sqlite_rules(engine)
    else:
        _postgresql_rules(engine)
    revision.watch(engine)
    try:
        _migrate(engine, file, create=create)
        if file is not None:
            file.identity = _identity(engine, file)
    except SQLAlchemyError as error:
        engine.dispose()
        cause = error.orig if isinstance(error, DBAPIError) else None
        name = str(getattr(cause, "sqlite_errorname", ""))
        if name.startswith("SQLITE_NOTADB"):
            raise BadInput(f"cannot open the store {redact(url)}: {reason(error)}; name another file") from error
        if name.startswith("SQLITE_CANTOPEN") and file is not None and file.read_only:
            raise StoreError(
                f"the store {redact(url)} cannot be read: {file.path.name}-wal holds changes, which SQLite reads only "
                "where it may write the folder; copy both files to such a folder, or open the store once for writing"
            ) from error
        if name.startswith("SQLITE_"):
            raise failure(error, engine.url, wrote=False) from error
        raise StoreError(f"cannot open the store {redact(url)}: {reason(error, engine.url)}") from error
    except UnicodeDecodeError as error:  # the driver cannot decode a complaint about a name that is no text
        engine.dispose()
        raise damaged(engine.url, "its schema is no text", wrote=False) from error
    except TouchstoneError:
        engine.dispose()
        raise
    return engine


def file_of(engine: Engine) -> StoreFile | None:
    """The file of an SQLite store; None for one in memory or on a server."""
    file = engine.get_execution_options().get("file")
    assert file is None or isinstance(file, StoreFile)
    return file


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reading. A database error becomes a StoreError, and so does a file that is another by now."""
    file = file_of(engine)
    try:
        if file is not None:
            file.check()
        with engine.connect() as connection:
            yield connection
    except (DBAPIError, TimeoutError) as error:
        raise failure(error, engine.url, wrote=False) from error


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction, which gives a new revision to the groups of tables it writes to.

    On SQLite it takes the write lock at once, so that two processes wait for each other instead of failing half-way. A
    database error becomes a StoreError. The file is compared before and after the commit: nothing is taken for written
    that is not in the file which everybody else sees.
    """
    file, touched = file_of(engine), set[revision.Group]()
    if file is not None and file.read_only:
        raise StoreError(
            f"the store {redact(str(engine.url))} is open for reading only, so {NOT_WRITTEN}: give this user the right "
            "to write the file and its folder, and leave out mode=ro"
        )
    try:
        if file is not None:
            file.check()
        with engine.connect().execution_options(immediate=True, touched=touched) as connection, connection.begin():
            yield connection
            for check in CHECKS:
                check(frozenset(touched))
            _renew(connection, touched)
            if file is not None:
                file.check()
        if file is not None:
            file.check()
    except (DBAPIError, TimeoutError) as error:
        raise failure(error, engine.url, wrote=True) from error


def _renew(connection: Connection, touched: set[revision.Group]) -> None:
    """Gives these groups of tables a new revision, as the last thing in a transaction: PostgreSQL locks their rows, so
    that writers of one group wait for each other's commit and no longer. In alphabetical order, so that two writers
    never wait for each other in turn. Revisions are random, not counted: a store that was restored from a backup, or
    made again in the same place, must not repeat one that a cache has seen."""
    rows = [{"name": group, "stamp": secrets.randbits(62)} for group in sorted(touched)]
    if rows:
        connection.execute(upsert(connection, RevisionRow, replacing=["stamp"]), rows)
    if rows and connection.dialect.name == "sqlite":  # counted in the same page, for StoreFile
        statement = sqlite.insert(table(RevisionRow)).values(name=WRITES, stamp=1)
        connection.execute(statement.on_conflict_do_update(["name"], set_={"stamp": RevisionRow.stamp + 1}))


def _identity(engine: Engine, file: StoreFile) -> int | None:
    """The random number that tells this store from any other; given to one that has none and may be written."""
    query = select(RevisionRow.stamp).where(RevisionRow.name == IDENTITY)
    with reading(engine) as connection:
        identity = connection.scalar(query)
    if identity is not None or file.read_only:
        return identity
    with writing(engine) as connection:
        connection.execute(upsert(connection, RevisionRow), [{"name": IDENTITY, "stamp": secrets.randbits(62)}])
        return connection.scalar(query)


def serialise(connection: Connection) -> None:
    """Waits for other writers that assign keys, until they have committed. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(WRITE_LOCK)))


def insert_row(connection: Connection, row: type[Base], values: Mapping[str, Any]) -> int:
    """Inserts one row, and returns its key."""
    (key,) = connection.execute(insert(table(row)).values(values)).inserted_primary_key or (0,)
    return int(key)


class Aggregate:
    """The reads and writes of one kind of thing. Each public method is a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _reading(self) -> AbstractContextManager[Connection]:
        return reading(self._engine)

    def _writing(self) -> AbstractContextManager[Connection]:
        return writing(self._engine)

    def _execute(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> None:
        """One statement in a write transaction of its own."""
        with self._writing() as connection:
            connection.execute(statement, rows)

    def _rows(self, query: Select[*Ts]) -> Sequence[tuple[*Ts]]:
        with self._reading() as connection:
            return connection.execute(query).tuples().all()

    def _records(self, kind: Callable[..., T], query: Select[*tuple[Any, ...]]) -> list[T]:
        """A record for each row, from its columns as keywords."""
        with self._reading() as connection:
            return [kind(**row) for row in connection.execute(query).mappings()]

    def _scalars(self, query: Select[T, *tuple[Any, ...]]) -> Sequence[T]:
        with self._reading() as connection:
            return connection.scalars(query).all()

    def _scalar(self, query: Select[T]) -> T | None:
        with self._reading() as connection:
            return connection.scalar(query)


def _options(address: Address, file: StoreFile | None) -> dict[str, Any]:
    if file is not None:
        # A store that is only read is opened anew each time: SQLite then holds no lock on it that could go stale.
        return {"creator": file.connect, **({"poolclass": NullPool} if file.read_only else {})}
    if address.url.get_backend_name() == "sqlite":
        return {"connect_args": {"timeout": 30}}
    return {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}


def _sqlite_rules(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # SQLAlchemy says BEGIN, not the driver
        for rule in ("busy_timeout=30000", "foreign_keys=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {rule}")

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _postgresql_rules(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: Any) -> None:
        # In another zone the first and the last day that a time can have are no times that Python has.
        connection.execute("SET TIMEZONE='UTC'")
        connection.commit()


def _use_wal(engine: Engine) -> None:
    """Have SQLite write ahead, so that readers and a writer never wait for each other. The file remembers it."""
    if engine.dialect.name == "sqlite":
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()


def _migrate(engine: Engine, file: StoreFile | None, *, create: bool) -> None:
    """Brings the schema to HEAD. Alembic is imported only when there is something to do: it is slow to load."""
    with engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        version: Select[str] = select(literal_column("version_num")).select_from(text("alembic_version"))
        at = connection.scalar(version) if "alembic_version" in tables else None
    if at is None and tables and engine.dialect.name == "sqlite":
        raise BadInput(f"{redact(str(engine.url))} holds tables of another program: name another file, or a new one")
    if file is not None and file.read_only:
        if at is not None and at < HEAD:
            raise StoreError(
                f"the store {redact(str(engine.url))} has an older schema ({at}, this Touchstone needs {HEAD}) and is "
                "open for reading only: open it once where it may be written"
            )
    else:
        _use_wal(engine)
    if at == HEAD:
        return
    if at is None and not create:
        name = redact(str(engine.url))
        raise BadInput(f"{name} is no Touchstone store yet: name another; `demo` or `import` makes it one")
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if at is not None and at not in revisions:
        raise StoreError(
            f"the store {redact(str(engine.url))} is of a newer Touchstone (schema {at}, this one knows {HEAD}): "
            "upgrade Touchstone, or choose another store with --store"
        )
    with engine.connect().execution_options(immediate=True, touched=set()) as connection, connection.begin():
        serialise(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
