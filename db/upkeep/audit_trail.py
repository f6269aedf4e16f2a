"""Whether the audit log is still what the database kept: guarded by its triggers, without gaps, true to the releases.

An entry that somebody with the database's own rights rewrote leaves no trace here, and neither do the newest entries
that were taken out, unless a release or a proposal misses its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, func, select

from calibrate.types import PURGED
from db.tables import AuditRow, ProposalRow, ReleaseRow, table

RELEASED = ("released", "rolled back")
PROPOSED = "release proposed"


def unguarded(connection: Connection) -> Iterator[str]:
    """The triggers that are missing, switched off or changed."""
    if connection.dialect.name == "sqlite":
        query = sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'")
        stored: Mapping[str, str] = dict(connection.execute(query).tuples().all())
        yield from (name for name, wanted in _triggers() if " ".join(stored.get(name, "").split()) != wanted)
        return
    query = sa.text(
        "SELECT p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = 'audit'::regclass "
        "AND t.tgname = 'audit_append_only' AND t.tgenabled IN ('O', 'A')"
    )
    if "RAISE EXCEPTION" not in (connection.scalar(query) or ""):
        yield "audit_append_only"


def _triggers() -> Iterator[tuple[str, str]]:
    """The triggers that SQLite was given, with their statements."""
    refusal = import_module("db.migrations.versions.0007_audit").REFUSAL
    taken = "SELECT 1 FROM audit WHERE id = NEW.id"
    for name, action, when in (
        ("audit_no_update", "UPDATE", ""),
        ("audit_no_delete", "DELETE", ""),
        ("audit_no_replace", "INSERT", f"WHEN EXISTS ({taken}) "),
    ):
        refuses = f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
        yield name, f"CREATE TRIGGER {name} BEFORE {action} ON audit {when}{refuses}"


def gaps(connection: Connection) -> Iterator[str]:
    """The numbers of entries that are missing. PostgreSQL leaves one out for each transaction that was undone."""
    if connection.dialect.name != "sqlite":
        return
    last = connection.exec_driver_sql("PRAGMA user_version").scalar() or 0
    for key in connection.scalars(select(AuditRow.id).where(AuditRow.id > last).order_by(AuditRow.id)):
        if key > last + 1:
            yield str(last + 1) if key == last + 2 else f"{last + 1} to {key - 1}"
        last = key


def note_gaps(connection: Connection) -> None:
    """Remember that the entries which came with an archive of PostgreSQL's have gaps from the start: `user_version`, a
    number that SQLite keeps for us in the file, is the newest of them."""
    newest, entries = connection.execute(select(func.max(table(AuditRow).c.id), func.count(AuditRow.id))).one()
    if connection.dialect.name == "sqlite" and newest is not None and newest != entries:
        connection.exec_driver_sql(f"PRAGMA user_version = {int(newest)}")


def unlogged(connection: Connection) -> Iterator[str]:
    """The releases and proposals without an entry, of those made since there is a log."""
    begun = connection.scalar(select(AuditRow.at).order_by(AuditRow.id).limit(1))
    logged = _releases(connection)
    first = min((int(what.removeprefix("v")) for what in logged), default=None)

    def since(at: datetime) -> bool:
        return begun is not None and at >= begun

    query = select(ReleaseRow.version, ReleaseRow.released_at).order_by(ReleaseRow.version)
    for version, at in connection.execute(query).tuples():
        if f"v{version}" not in logged and (since(at) or (first is not None and version > first)):
            yield f"release v{version}"
    proposed = set(connection.scalars(select(AuditRow.what).where(AuditRow.verb == PROPOSED)))
    proposals = select(ProposalRow.id, ProposalRow.proposed_at).order_by(ProposalRow.id)
    for key, at in connection.execute(proposals).tuples():
        if f"proposal {key}" not in proposed and since(at):
            yield f"proposal {key}"


def mislogged(connection: Connection) -> Iterator[str]:
    """The releases whose entry gives another digest, and those of entries that are not there."""
    stored = dict(connection.execute(select(ReleaseRow.version, ReleaseRow.sha256)).tuples().all())
    digests = {f"v{version}": sha256 for version, sha256 in stored.items()}
    for what, after in _releases(connection).items():
        written = str((after or {}).get("sha256"))
        if written != digests.get(what) and not (what in digests and PURGED in written):  # a purge may have cut it
            yield f"release {what}"


def _releases(connection: Connection) -> dict[str, Mapping[str, Any] | None]:
    """What the log says of each release."""
    query = select(AuditRow.what, AuditRow.after).where(AuditRow.verb.in_(RELEASED)).order_by(AuditRow.id)
    return dict(connection.execute(query).tuples().all())
