"""One revision for each group of tables: it changes with every write to one of them, and with nothing else.

Cached reads are keyed by it. No writer has to think of it: `db.engine.writing` watches the statements of its
transaction and stamps the groups they touched, last of all, so that the lock on a group's row is held only while the
transaction commits.
"""

from __future__ import annotations

import secrets
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Engine, event, select, text
from sqlalchemy.sql.dml import UpdateBase

from db.tables import RevisionRow

Group = Literal[
    "traces", "samples", "labels", "skips", "scores", "runs", "points", "releases", "decisions", "rechecks", "team",
    "replies",
]  # fmt: skip
GROUPS: tuple[Group, ...] = get_args(Group)
TABLES: dict[Group, tuple[str, ...]] = {
    "traces": ("traces", "sources", "texts", "drawn_alternatives"),
    "samples": ("samples", "sample_members"),
    "labels": ("labels", "gold"),
    "skips": ("skips",),
    "scores": ("scores", "detector_configs"),
    "runs": ("runs",),
    "points": ("operating_points", "certifications", "ensembles"),
    "releases": ("releases", "proposals"),
    "decisions": ("decisions",),
    "rechecks": ("rechecks",),
    "team": ("team_files", "baselines"),
    "replies": ("replies",),
}
GROUP_OF = {name: group for group, names in TABLES.items() for name in names}

UPSERT = text(
    "INSERT INTO revisions (name, stamp) VALUES (:name, :stamp) ON CONFLICT (name) DO UPDATE SET stamp = excluded.stamp"
)
Revision = tuple[tuple[Group, int], ...]


def read(connection: Connection, groups: tuple[Group, ...]) -> Revision:
    """The revision of each group, of all groups when none is named. One query; a group never written to has 0."""
    if unknown := set(groups) - set(GROUPS):
        raise ValueError(f"no group of tables is called {sorted(unknown)[0]!r}: they are {', '.join(GROUPS)}")
    stamps = dict(connection.execute(select(RevisionRow.name, RevisionRow.stamp)).tuples().all())
    return tuple((group, stamps.get(group, 0)) for group in groups or GROUPS)


def watch(engine: Engine) -> None:
    """Notes the groups that each write transaction touches, in the set it carries as the option `touched`."""

    @event.listens_for(engine, "before_execute")
    def note(connection: Connection, statement: Any, *_: Any) -> None:
        if not isinstance(statement, UpdateBase):
            return
        touched = connection.get_execution_options().get("touched")
        if touched is None:
            raise RuntimeError(f"a write to {statement.table} outside of db.engine.writing would not be noticed")
        if group := GROUP_OF.get(str(statement.table)):
            touched.add(group)


def stamp(connection: Connection, touched: set[Group]) -> None:
    """Gives the groups a new revision, within the caller's transaction. In one order, so that two writers never wait
    for each other in turn. Stamps are random and not counted, so that a store that was restored from a backup, or made
    anew in the same place, never comes by a revision that somebody remembers."""
    if not touched:
        return
    rows = [{"name": group, "stamp": secrets.randbits(62)} for group in sorted(touched)]
    connection.execute(UPSERT, rows)
