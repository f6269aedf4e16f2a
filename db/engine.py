"""Opening a store, and its transactions: one to read, one to write, and what every aggregate needs of them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import (
    URL,
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
    make_url,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError, TimeoutError

from calibrate.errors import BadInput, StoreError, TouchstoneError
from db import revision
from db.tables import Base, RevisionRow, table

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Transaction = Connection
"""A write transaction under way. Other packages only pass it back to this one."""
MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = "0007"  # the newest migration; a test compares it with the folder
# The advisory lock of writers that assign keys, on databases with more than one writer at a time.
WRITE_LOCK = 0x70C57
MOST = 2**31 - 1  # the largest key a database counts to; to ask for a larger one is an error there
CHECKS: list[Callable[[frozenset[revision.Group]], None]] = []
"""Asked before a write transaction commits, with the groups of tables it writes to: one that raises undoes it."""
NO_STORE = ("SQLITE_NOTADB", "SQLITE_CANTOPEN")  # what is wrong with the file, not with its state


def connect(url: str, *, create: bool = True) -> Engine:
    """Open a store and bring its schema up to date.

    With `create` an absent SQLite file or an empty database becomes a store; without it, it is refused. Raises BadInput
    where another URL is the remedy (a kind of database we do not support, a file that is no store or cannot be made),
    StoreError where the store cannot be opened now.
    """
    parsed = _parse(url)
    _check_file(parsed, create=create)
    engine = create_engine(parsed, **_options(parsed))
    if parsed.get_backend_name() == "sqlite":
        _sqlite_rules(engine)
    revision.watch(engine)
    try:
        _migrate(engine, create=create)
    except SQLAlchemyError as error:
        engine.dispose()
        cause = error.orig if isinstance(error, DBAPIError) else None
        if getattr(cause, "sqlite_errorname", "").startswith(NO_STORE):
            raise BadInput(f"cannot open the store {shown(url)}: {reason(error)}; name another file") from error
        raise StoreError(f"cannot open the store {shown(url)}: {reason(error)}") from error
    except TouchstoneError:
        engine.dispose()
        raise
    return engine


def shown(url: str) -> str:
    """The URL without its password, for messages."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return repr(url)


def reason(error: Exception) -> str:
    """The first line of the database's own message, without what SQLAlchemy adds."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    return str(cause).strip().split("\n")[0] or type(cause).__name__


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reading. A database error becomes a StoreError."""
    try:
        with engine.connect() as connection:
            yield connection
    except (DBAPIError, TimeoutError) as error:
        raise StoreError(f"the store could not be read: {reason(error)}; try again") from error


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction, which gives a new revision to the groups of tables it writes to.

    On SQLite it takes the write lock at once, so that two processes wait for each other instead of failing half-way. A
    database error becomes a StoreError.
    """
    touched: set[revision.Group] = set()
    try:
        with engine.connect().execution_options(immediate=True, touched=touched) as connection, connection.begin():
            yield connection
            for check in CHECKS:
                check(frozenset(touched))
            _renew(connection, touched)
    except DBAPIError as error:
        raise StoreError(f"the store could not be written: {reason(error)}; nothing of this step was kept") from error


def _renew(connection: Connection, touched: set[revision.Group]) -> None:
    """Gives these groups of tables a new revision, as the last thing in a transaction: PostgreSQL locks their rows, so
    that writers of one group wait for each other's commit and no longer. In alphabetical order, so that two writers
    never wait for each other in turn. Revisions are random, not counted: a store that was restored from a backup, or
    made again in the same place, must not repeat one that a cache has seen."""
    rows = [{"name": group, "stamp": secrets.randbits(62)} for group in sorted(touched)]
    if rows:
        connection.execute(upsert(connection, RevisionRow, replacing=["stamp"]), rows)


def serialise(connection: Connection) -> None:
    """Waits for other writers that assign keys, until they have committed. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(WRITE_LOCK)))


def upsert(connection: Connection, row: type[Base], *, replacing: Sequence[str] = ()) -> Any:
    """An insert that skips rows whose key exists already, or replaces these columns of them."""
    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table(row))
    if not replacing:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(
        index_elements=list(table(row).primary_key), set_={name: statement.excluded[name] for name in replacing}
    )


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


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise BadInput(f"the store URL {url!r} is not one: write sqlite:///file.db or postgresql://…") from error
    if backend == "postgres":
        parsed, backend = parsed.set(drivername="postgresql"), "postgresql"
    if backend == "postgresql" and parsed.drivername == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend not in ("sqlite", "postgresql"):
        raise BadInput(f"the store URL {shown(url)} names {backend!r}; Touchstone keeps stores in sqlite or postgresql")
    return parsed


def file_of(url: URL) -> Path | None:
    """The file of an SQLite store; None for one in memory or on a server."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database))


def _check_file(parsed: URL, *, create: bool) -> None:
    path = file_of(parsed)
    if path is None:
        return
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except OSError as error:  # a name too long, a folder that is not ours to look into
        raise BadInput(f"the store {path} cannot be opened: {error.strerror}; name another file") from error
    if is_folder:
        raise BadInput(f"the store {path} is a folder; name a file in it, like sqlite:///{path}/touchstone.db")
    if exists:
        return
    if not create:
        raise BadInput(f"there is no store at {path}: name another; `python -m calibrate demo` or `import` makes one")
    if not path.parent.is_dir():
        raise BadInput(f"the store {path} cannot be made: there is no folder {path.parent}; make it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise BadInput(f"the store {path} cannot be made: no right to write in {path.parent}; name another folder")


def _options(parsed: URL) -> dict[str, Any]:
    if parsed.get_backend_name() == "sqlite":
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


def _use_wal(engine: Engine) -> None:
    """Have SQLite write ahead, so that readers and a writer never wait for each other. The file remembers it."""
    if engine.dialect.name == "sqlite":
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()


def _migrate(engine: Engine, *, create: bool) -> None:
    """Brings the schema to HEAD. Alembic is imported only when there is something to do: it is slow to load."""
    with engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        version: Select[str] = select(literal_column("version_num")).select_from(text("alembic_version"))
        at = connection.scalar(version) if "alembic_version" in tables else None
    if at is None and tables and engine.dialect.name == "sqlite":
        raise BadInput(f"{shown(str(engine.url))} holds tables of another program: name another file, or a new one")
    _use_wal(engine)
    if at == HEAD:
        return
    if at is None and not create:
        name = shown(str(engine.url))
        raise BadInput(f"{name} is no Touchstone store yet: name another; `demo` or `import` makes it one")
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if at is not None and at not in revisions:
        raise StoreError(
            f"the store {shown(str(engine.url))} is of a newer Touchstone (schema {at}, this one knows {HEAD}): "
            "upgrade Touchstone, or choose another store with --store"
        )
    with engine.connect().execution_options(immediate=True, touched=set()) as connection, connection.begin():
        serialise(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
