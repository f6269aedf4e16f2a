"""Opening a store: the URL, the engine, the schema's version."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from calibrate.errors import BadInput, StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = "0004"  # the newest migration; a test compares it with the folder
# Serialises writers that assign keys, on databases with more than one writer at a time.
WRITE_LOCK = 0x70C57


def connect(url: str, *, create: bool = True) -> Engine:
    """An engine on a store whose schema is current.

    create: make an absent SQLite file or empty database into a store; without it an absent store is refused.
    Raises BadInput for a URL that is none of ours, StoreError where the store cannot be opened.
    """
    parsed = _parse(url)
    _check_file(parsed, create=create)
    engine = create_engine(parsed, **_options(parsed))
    if parsed.get_backend_name() == "sqlite":
        _sqlite_rules(engine)
    try:
        _migrate(engine, create=create)
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(f"cannot open the store {shown(url)}: {reason(error)}") from error
    except StoreError:
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
    """The database's own first line, without SQLAlchemy's trailer."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    return str(cause).strip().split("\n")[0] or type(cause).__name__


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One write transaction: all of it is kept or none. On SQLite the write lock is taken at once, so that two
    processes wait for each other instead of failing half-way. A database error leaves as a StoreError."""
    try:
        with engine.connect().execution_options(immediate=True) as connection, connection.begin():
            yield connection
    except DBAPIError as error:
        raise StoreError(f"the store could not be written: {reason(error)}; nothing of this step was kept") from error


def serialise(connection: Connection) -> None:
    """Waits for other writers that assign keys; released at the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": WRITE_LOCK})


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


def _check_file(parsed: URL, *, create: bool) -> None:
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return
    path = Path(str(parsed.database))
    if path.is_dir():
        raise StoreError(f"the store {path} is a folder; name a file in it, like sqlite:///{path}/touchstone.db")
    if not path.parent.is_dir():
        raise StoreError(f"the store {path} cannot be made: there is no folder {path.parent}")
    if not path.exists():
        if not create:
            raise StoreError(f"there is no store at {path}; `python -m calibrate demo` or `import` makes one")
        if not os.access(path.parent, os.W_OK):
            raise StoreError(f"the store {path} cannot be made: no right to write in {path.parent}")


def _options(parsed: URL) -> dict[str, Any]:
    if parsed.get_backend_name() == "sqlite":
        return {"connect_args": {"timeout": 30}}
    return {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}


def _sqlite_rules(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # SQLAlchemy says BEGIN, not the driver
        for rule in ("busy_timeout=30000", "journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {rule}")

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _migrate(engine: Engine, *, create: bool) -> None:
    """Brings the schema to HEAD. Alembic is imported only when there is something to do: it is slow to load."""
    with engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        at = connection.scalar(text("SELECT version_num FROM alembic_version")) if "alembic_version" in tables else None
    if at == HEAD:
        return
    if at is None and not create:
        raise StoreError(f"{shown(str(engine.url))} is no Touchstone store yet; `demo` or `import` makes it one")
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if at is not None and at not in known:
        raise StoreError(
            f"the store {shown(str(engine.url))} is of a newer Touchstone (schema {at}, this one knows {HEAD}): "
            "upgrade Touchstone, or choose another store with --store"
        )
    with engine.connect().execution_options(immediate=True) as connection, connection.begin():
        serialise(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
