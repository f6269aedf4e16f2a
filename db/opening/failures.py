"""What a database's error means, as one sentence with the remedy."""

from __future__ import annotations

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError

from calibrate.errors import NOT_WRITTEN, StoreError
from calibrate.urls import redact, scrub


def reason(error: Exception, url: URL | None = None) -> str:
    """The first line of the database's own message, without what SQLAlchemy adds and without the URL's secrets."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    line = str(cause).strip().split("\n")[0] or type(cause).__name__
    return scrub(line, [url.render_as_string(hide_password=False)]) if url is not None else line


def failure(error: SQLAlchemyError, url: URL, *, wrote: bool) -> StoreError:
    """The error to raise for one of the database's, while reading or (`wrote`) writing."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    name = str(getattr(cause, "sqlite_errorname", None) or "")
    state = str(getattr(cause, "sqlstate", None) or "")
    store, outcome = redact(url.render_as_string(hide_password=True)), f"; {NOT_WRITTEN}" if wrote else ""
    why = reason(error, url)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return damaged(url, why, wrote=wrote)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(f"the store {store} is being written by another process ({why}){outcome}: try again")
    if name.startswith("SQLITE_FULL") or state == "53100":
        return StoreError(f"the disk of the store {store} is full{outcome}: free some space, then try again")
    if name.startswith("SQLITE_READONLY") or state == "25006":
        return StoreError(f"the store {store} may only be read ({why}){outcome}: give this user the right to write it")
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        return StoreError(
            f"the file of the store {store} could not be {'written' if wrote else 'read'} ({why}){outcome}: look "
            "whether its disk is full or broken, and whether this user may write its folder"
        )
    if isinstance(error, TimeoutError):
        return StoreError(f"the store {store} has too many readers at once{outcome}: try again")
    lost = isinstance(error, DBAPIError) and (error.connection_invalidated or state[:2] in ("08", "57") or not state)
    if lost and not name:
        return StoreError(
            f"the connection to the store {store} was lost ({why}){outcome}: try again when the server is up"
        )
    return StoreError(f"the store {store} could not be {'written' if wrote else 'read'}: {why}{outcome}; try again")


def damaged(url: URL, why: str, *, wrote: bool) -> StoreError:
    """The error to raise for a file that holds what SQLite never wrote."""
    store, outcome = redact(url.render_as_string(hide_password=True)), f"; {NOT_WRITTEN}" if wrote else ""
    return StoreError(
        f"the store {store} is damaged ({why}){outcome}: stop what uses it, keep a copy of the file, and put a "
        "backup in its place"
    )
