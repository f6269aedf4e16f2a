"""Whether a store is sound: what the database says of itself, and everything that can be computed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, func, select

from calibrate.errors import StoreError
from calibrate.types import Trace
from db.engine import reading
from db.labels import gold_of
from db.scores import key_of
from db.tables import AuditRow, Base, ConfigRow, GoldRow, LabelRow, ReleaseRow, TextRow, TraceRow, table
from db.tables.mapping import batches, digest, load_traces
from db.upkeep import audit_trail

# "database": what SQLite finds. "unreadable": rows that the database cannot give. "orphans": rows that point to a row
# which is not there. The others are what was computed from other columns, and comes out differently now.
Trouble = Literal[
    "database",
    "unreadable",
    "orphans",
    "contents",
    "texts",
    "gold",
    "configurations",
    "releases",
    "documents",
    "unguarded",
    "gaps",
    "unlogged",
    "mislogged",
]
AT_ONCE = 500
COUNTED = (TraceRow, TextRow, GoldRow, ConfigRow, ReleaseRow, AuditRow)
EXAMPLES = 5  # of what is wrong, by name


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: how many rows of `place` (a table, or a column that points elsewhere), and which."""

    trouble: Trouble
    place: str
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was looked at, and what is wrong. `purged` traces have no text left to compute their hash from; `entries`
    are those of the audit log."""

    traces: int
    purged: int
    texts: int
    labelled: int
    configurations: int
    releases: int
    entries: int
    findings: tuple[Finding, ...]


Progress = Callable[[int, int], None]
_Wrong = Iterator[str]


def check(engine: Engine, *, on_progress: Progress = lambda *_: None) -> Checked:
    """Look at all of a store, in one read. Nothing is changed."""
    findings: list[Finding] = []
    with reading(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        counts = {row.__tablename__: _count(connection, row) for row in COUNTED}
        if connection.dialect.name == "sqlite":
            lines = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars()
            findings += _finding("database", "", (" ".join(line.split()) for line in lines if line != "ok"))
        for parts in Base.metadata.sorted_tables:
            for constraint in sorted(parts.foreign_key_constraints, key=lambda each: str(each.name)):
                findings += _orphans(connection, constraint)
        purged: list[int] = []
        looks: tuple[tuple[Trouble, str, _Wrong], ...] = (
            ("texts", "texts", _texts(connection)),
            ("contents", "traces", _contents(connection, purged, counts["traces"], on_progress)),
            ("gold", "gold", _gold(connection)),
            ("configurations", "detector_configs", _configurations(connection)),
            ("releases", "releases", _releases(connection)),
            ("unguarded", "audit", audit_trail.unguarded(connection)),
            ("gaps", "audit", audit_trail.gaps(connection)),
            ("unlogged", "audit", audit_trail.unlogged(connection)),
            ("mislogged", "audit", audit_trail.mislogged(connection)),
        )
        for trouble, place, wrong in looks:
            findings += _finding(trouble, place, wrong)
    return Checked(
        traces=counts["traces"],
        purged=len(purged),
        texts=counts["texts"],
        labelled=counts["gold"],
        configurations=counts["detector_configs"],
        releases=counts["releases"],
        entries=counts["audit"],
        findings=tuple(findings),
    )


def _count(connection: Connection, row: type[Base]) -> int:
    return connection.scalar(select(func.count()).select_from(table(row))) or 0


def _finding(trouble: Trouble, place: str, wrong: Iterator[str]) -> list[Finding]:
    examples: list[str] = []
    rows = 0
    try:
        for name in wrong:
            rows += 1
            if len(examples) < EXAMPLES:
                examples.append(name)
    except (sa.exc.DBAPIError, StoreError, ValueError, TypeError, LookupError) as error:
        # A page that the database cannot read, or a document that is none: say so, and go on with the rest.
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) and error.orig else error
        return [Finding("unreadable", place, rows + 1, (*examples, " ".join(str(cause).split())[:200]))]
    return [Finding(trouble, place, rows, tuple(examples))] if rows else []


def _orphans(connection: Connection, constraint: sa.ForeignKeyConstraint) -> list[Finding]:
    child, parent = constraint.table, constraint.referred_table.alias()
    pairs = [(element.parent, parent.c[element.column.name]) for element in constraint.elements]
    matching = select(sa.literal(1)).where(*(mine == theirs for mine, theirs in pairs)).correlate(child)
    named = [mine.is_not(None) for mine, _ in pairs]
    query = select(*child.primary_key).where(*named, ~matching.exists())
    place = f"{child.name}.{'+'.join(mine.name for mine, _ in pairs)}"

    def wrong() -> Iterator[str]:
        for row in connection.execute(query):
            yield ", ".join(map(str, row))

    return _finding("orphans", place, wrong())


def _texts(connection: Connection) -> _Wrong:
    query = select(TextRow.digest, TextRow.text)
    for part in connection.execute(query, execution_options={"yield_per": AT_ONCE}).partitions():
        yield from (bytes(key).hex() for key, text in part if digest(text) != bytes(key))


def _contents(connection: Connection, purged: list[int], total: int, on_progress: Progress) -> _Wrong:
    """The traces whose content hash is another one, or of which a part is missing."""
    traces, last, done = table(TraceRow), 0, 0
    gone = traces.c.purged_at if "purged_at" in traces.c else sa.null()
    columns = (TraceRow.id, TraceRow.trace_id, TraceRow.content_hash, gone)
    while True:
        query = select(*columns).where(TraceRow.id > last).order_by(TraceRow.id).limit(AT_ONCE)
        rows = connection.execute(query).all()
        if not rows:
            return
        last = rows[-1][0]
        purged += [row[0] for row in rows if row[3] is not None]
        hashes = {row[0]: (row[1], row[2]) for row in rows if row[3] is None}
        for pk, trace in _load(connection, list(hashes)):
            trace_id, stored = hashes[pk]
            if trace is None or not any(each.content_hash() == stored for each in _as_it_came(trace)):
                yield trace_id
        done += len(rows)
        on_progress(done, total)


def _load(connection: Connection, pks: Sequence[int]) -> Iterator[tuple[int, Trace | None]]:
    """The traces; None for one that lacks a text."""
    try:
        yield from load_traces(connection, pks, as_logged=True)
    except KeyError:
        for pk in pks:
            try:
                yield from load_traces(connection, [pk], as_logged=True)
            except KeyError:
                yield pk, None


def _as_it_came(trace: Trace) -> Iterator[Trace]:
    """The trace as it may have been when it was hashed: the store keeps no empty context, and attributes as text."""
    for context in (trace.context,) if trace.context else (None, ""):
        yield replace(trace, context=context)
        try:
            retriever = json.loads(str(trace.attributes["retriever"]))
        except (KeyError, ValueError):
            continue
        yield replace(trace, context=context, attributes={**trace.attributes, "retriever": retriever})


def _gold(connection: Connection) -> _Wrong:
    """The traces whose gold verdict does not follow from their labels."""
    pks = list(connection.scalars(select(LabelRow.trace_pk).union(select(GoldRow.trace_pk))))
    for batch in batches(sorted(pks), AT_ONCE):
        query = select(GoldRow.trace_pk, GoldRow.verdict, GoldRow.labellers).where(GoldRow.trace_pk.in_(batch))
        stored = {pk: (verdict, labellers) for pk, verdict, labellers in connection.execute(query)}
        derived = gold_of(connection, batch)
        yield from (f"trace key {pk}" for pk in batch if stored.get(pk) != derived.get(pk))


def _configurations(connection: Connection) -> _Wrong:
    query = select(ConfigRow.id, ConfigRow.key, ConfigRow.name, ConfigRow.version, ConfigRow.params, ConfigRow.revision)
    for pk, key, *parts in connection.execute(query):
        if key_of(*parts) != key:
            yield f"{parts[0]} ({pk})"


def _releases(connection: Connection) -> _Wrong:
    for version, document, sha256 in connection.execute(
        select(ReleaseRow.version, ReleaseRow.document, ReleaseRow.sha256).order_by(ReleaseRow.version)
    ):
        if hashlib.sha256(document.encode()).hexdigest() != sha256:
            yield f"version {version}"


def documents(engine: Engine) -> Iterator[tuple[int, str]]:
    """Every release's version and text, one at a time."""
    with reading(engine) as connection:
        versions: list[Any] = list(connection.scalars(select(ReleaseRow.version).order_by(ReleaseRow.version)))
        for version in versions:
            document = connection.scalar(select(ReleaseRow.document).where(ReleaseRow.version == version))
            yield version, document or ""
