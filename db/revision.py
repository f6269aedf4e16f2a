"""The revision of each group of tables. It changes with every write to the group; cached reads are keyed by it.

No writer has to think of it: `db.engine.writing` notes which groups the statements of its transaction write to, and
gives them a new revision. The audit log is in no group, nor is what a receiver and its joiner write: they are read anew
whenever somebody looks at them.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from sqlalchemy import Connection, Engine, event, select
from sqlalchemy.sql.dml import UpdateBase

from db.tables import RevisionRow

Group = Literal[
    "traces", "samples", "labels", "skips", "scores", "runs", "points", "releases", "decisions", "rechecks", "team",
    "replies", "outbox", "purges", "guides",
    "assignments", "leases", "flags", "repeats", "pulls", "annotations",
]  # fmt: skip
GROUPS: tuple[Group, ...] = get_args(Group)
TABLES: dict[Group, tuple[str, ...]] = {
    "traces": ("traces", "sources", "texts", "drawn_alternatives", "trace_days", "logged"),
    "samples": ("samples", "sample_members"),
    "labels": ("labels", "gold", "prompt_examples"),
    "skips": ("skips",),
    "scores": ("scores", "detector_configs", "external_detectors"),
    "runs": ("runs",),
    "points": ("operating_points", "certifications", "ensembles"),
    "releases": ("releases", "proposals"),
    "decisions": ("decisions",),
    "rechecks": ("rechecks",),
    "team": ("team_files", "baselines", "prompt_comparisons"),
    "replies": ("replies",),
    "outbox": ("outbox",),
    "purges": ("purges",),
    "guides": ("guides",),
    "assignments": ("assignments",),
    "leases": ("leases",),
    "flags": ("flags",),
    "repeats": ("repeats",),
    "pulls": ("pulls", "origins", "pulled"),
    "annotations": ("annotations",),
}
GROUP_OF = {name: group for group, names in TABLES.items() for name in names}

Revision = tuple[tuple[Group, int], ...]


def read(connection: Connection, groups: tuple[Group, ...]) -> Revision:
    """The revision of these groups, or of all when none is named. A group that was never written to has 0."""
    if unknown := set(groups) - set(GROUPS):
        raise ValueError(f"no group of tables is called {sorted(unknown)[0]!r}: they are {', '.join(GROUPS)}")
    stamps = dict(connection.execute(select(RevisionRow.name, RevisionRow.stamp)).tuples().all())
    return tuple((group, stamps.get(group, 0)) for group in groups or GROUPS)


def watch(engine: Engine) -> None:
    """Note the groups that each write transaction writes to, in the set that is its execution option `touched`."""

    @event.listens_for(engine, "before_execute")
    def note(connection: Connection, statement: Any, *_: Any) -> None:
        if isinstance(statement, UpdateBase):
            touch(connection, statement.table)


def touch(connection: Connection, written: Any) -> None:
    """Note that this transaction writes to a table."""
    touched = connection.get_execution_options().get("touched")
    if touched is None:
        raise RuntimeError(f"a write to {written} outside of db.engine.writing would not be noticed")
    if group := GROUP_OF.get(str(written)):
        touched.add(group)
