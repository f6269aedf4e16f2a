"""What the URL of a store means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from calibrate.errors import BadInput
from calibrate.urls import redact

MODES = ("ro", "rw", "rwc")  # SQLite's own words: only read; do not create; create


@dataclass(frozen=True)
class Address:
    """A store's URL for SQLAlchemy, its file where it has one, and whether it was asked for reading only."""

    url: URL
    file: Path | None
    mode: str = "rwc"


def parse(url: str) -> Address:
    """Read a store's URL. Raises BadInput, without its password, for one that names no store of ours."""
    try:
        parsed = make_url(url)
        backend, _, driver = parsed.drivername.partition("+")
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise BadInput(
            f"the store URL {redact(url)!r} is not one: write sqlite:///file.db or "
            "postgresql://user:password@host:5432/database, with %40 for an @ in the password"
        ) from error
    if backend == "sqlite" and driver in ("", "pysqlite"):
        return _sqlite(parsed, url)
    if backend not in ("postgres", "postgresql", "sqlite"):
        raise BadInput(
            f"the store URL {redact(url)} names {backend!r}; Touchstone keeps stores in sqlite or postgresql"
        )
    if driver not in ("", "psycopg") or backend == "sqlite":
        raise BadInput(
            f"the store URL {redact(url)} names the driver {driver!r}, which is not used here: begin it with "
            f"{'sqlite' if backend == 'sqlite' else 'postgresql'}://"
        )
    if "@" in (parsed.host or "") or url.count("@") > 1:
        raise BadInput(f"the store URL {redact(url)} has more than one @: write %40 for an @ in the password")
    return Address(parsed.set(drivername="postgresql+psycopg"), None)


def _sqlite(parsed: URL, url: str) -> Address:
    database, query = str(parsed.database or ""), dict(parsed.query)
    if database.startswith("file:"):
        database = unquote(database.removeprefix("file:"))
    query.pop("uri", None)
    mode = query.pop("mode", "rwc")
    if query or mode not in MODES:
        raise BadInput(f"the store URL {redact(url)}: after the ? it may say mode=ro, for reading only")
    plain = parsed.set(database=database or None, query={})
    file = None if database in ("", ":memory:") else Path(database)
    return Address(plain, file, str(mode))
