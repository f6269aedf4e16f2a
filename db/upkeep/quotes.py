"""Quotes of purged texts in what people and runs wrote elsewhere: notes, reasons, errors. They are cut out.

A quote is six words in a row that a purged text has too, or one word that may name somebody or something: at least
eight characters, with a digit or an @ in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, select, text, update

from calibrate.types import PURGED
from db.tables import (
    AuditRow,
    Base,
    CertificationRow,
    EnsembleRow,
    GuideRow,
    PointRow,
    ProposalRow,
    RecheckRow,
    ReleaseRow,
    RunRow,
    SampleRow,
    ScoreRow,
    TeamFileRow,
    TraceRow,
    table,
)
from db.tables.mapping import batches

WINDOW = 6
WRITTEN: Mapping[type[Base], tuple[str, ...]] = {
    ProposalRow: ("wanted",),
    PointRow: ("point", "data"),
    CertificationRow: ("plan", "outcome"),
    RecheckRow: ("plan", "outcome"),
    EnsembleRow: ("document",),
    SampleRow: ("filter",),
    GuideRow: ("text", "kinds", "why"),
    TeamFileRow: ("text", "reason"),
    AuditRow: ("before", "after"),
}
"""The documents that hold words of people: why a threshold was saved, a note on a release, the labelling guide,
prompts."""

_WORD = re.compile(r"\S+")
_NAMING = re.compile(r"(?=\S*[0-9@])\S{8,}")
_EDGES = ".,;:!?\"'()[]<>“”‘’«»"


class Quotes:
    """Notes which pieces of the written documents stand in purged texts, and cuts these out in the end."""

    def __init__(self, connection: Connection) -> None:
        self._releases = _of_releases(connection)
        self._pieces = {key for each in _texts(connection) for key, _, _ in _keys(each)}
        self._pieces.update(*self._releases.values())
        self._quoted: set[str] = set()

    def look(self, texts: Iterable[str]) -> None:
        """Look for the pieces in texts that are about to be purged."""
        if self._pieces:
            for each in texts:
                self._quoted.update(key for key, _, _ in _keys(each) if key in self._pieces)

    def releases(self) -> tuple[int, ...]:
        """The releases whose note or reasons quote what is purged: these are never changed."""
        return tuple(version for version, pieces in self._releases.items() if pieces & self._quoted)

    def cut(self, connection: Connection) -> None:
        if not self._quoted:
            return
        _rewrite(connection, lambda document: _map_texts(document, self._without))

    def _without(self, written: str) -> str:
        places = sorted((start, end) for key, start, end in _keys(written) if key in self._quoted)
        parts, last = [], 0
        for start, end in places:
            if start >= last:
                parts += [written[last:start], f"[{PURGED}]"]
            last = max(last, end)
        return "".join([*parts, written[last:]])


def cut_everywhere(connection: Connection, cut: Callable[[str], str]) -> None:
    """Put every written text through a function that takes something out of it."""
    _rewrite(connection, lambda document: _map_texts(document, cut))


def clear_runs(connection: Connection) -> None:
    """Runs keep why scores are missing, and their errors, word for word. What no kept score says too goes."""
    columns = (RunRow.id, RunRow.counts, RunRow.error)
    runs = connection.execute(select(*columns).where(RunRow.finished_at.is_not(None))).tuples().all()
    reasons = {why for _, counts, _ in runs for tally in counts.values() for why in tally.get("why", {})}
    common: set[str] = set()
    standing = select(TraceRow.content_hash).where(TraceRow.purged_at.is_(None))
    for batch in batches(sorted(reasons), 500):
        query = select(ScoreRow.reason).where(ScoreRow.reason.in_(batch), ScoreRow.content_hash.in_(standing))
        common.update(reason for reason in connection.scalars(query.distinct()) if reason)
    common.update(("a refusal", PURGED))
    for key, counts, error in runs:
        cleared = {name: {**tally, "why": _only_common(tally.get("why", {}), common)} for name, tally in counts.items()}
        values: dict[str, Any] = {"counts": cleared} if cleared != counts else {}
        values |= {"error": PURGED} if error not in (None, PURGED) else {}
        if values:
            connection.execute(update(RunRow).where(RunRow.id == key).values(values))


def clear_values(connection: Connection, where: Sequence[tuple[str, str]]) -> None:
    """The attributes that traces were chosen by may name people; filters of samples hold such values too."""
    pairs = {(name, value) for name, value in where if name not in ("model", "operation")}
    if pairs:
        _rewrite(connection, lambda document: _without_pairs(document, pairs))


def _rewrite(connection: Connection, change: Callable[[Any], Any]) -> None:
    """Change written documents where they differ then. The audit log is append-only but for this."""
    for row, columns in WRITTEN.items():
        changes = []
        for column in columns:
            for key, document in _documents(connection, row, column):
                changed = change(document)
                if changed != document:
                    changes.append(update(row).where(table(row).c.id == key).values({column: changed}))
        if changes:
            with _writable(connection, row):
                for statement in changes:
                    connection.execute(statement)


@contextmanager
def _writable(connection: Connection, row: type[Base]) -> Iterator[None]:
    """Lift the triggers that keep the audit log as it is, within this transaction."""
    name = table(row).name
    if row is not AuditRow:
        yield
    elif connection.dialect.name == "postgresql":
        connection.execute(text(f"ALTER TABLE {name} DISABLE TRIGGER USER"))
        yield
        connection.execute(text(f"ALTER TABLE {name} ENABLE TRIGGER USER"))
    else:
        query = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :table")
        triggers = connection.execute(query, {"table": name}).tuples().all()
        for trigger, _ in triggers:
            connection.execute(text(f'DROP TRIGGER "{trigger}"'))
        yield
        for _, definition in triggers:
            connection.exec_driver_sql(definition)


def _without_pairs(value: Any, pairs: set[tuple[str, str]]) -> Any:
    match value:
        case dict():
            return {
                key: PURGED if isinstance(item, str) and (key, item) in pairs else _without_pairs(item, pairs)
                for key, item in value.items()
            }
        case list():
            return [_without_pairs(item, pairs) for item in value]
        case _:
            return value


def _only_common(why: Mapping[str, int], common: set[str]) -> dict[str, int]:
    left = {reason: n for reason, n in why.items() if reason in common}
    rest = sum(why.values()) - sum(left.values())
    return {**left, PURGED: left.get(PURGED, 0) + rest} if rest else left


def _keys(written: str) -> Iterator[tuple[str, int, int]]:
    """The pieces of a text that a quote may be, with their places."""
    words = [(match.group().strip(_EDGES).casefold(), match.start(), match.end()) for match in _WORD.finditer(written)]
    for word, start, end in words:
        if _NAMING.fullmatch(word):
            yield word, start, end
    for first in range(len(words) - WINDOW + 1):
        window = words[first : first + WINDOW]
        yield " ".join([word for word, _, _ in window]), window[0][1], window[-1][2]


def _documents(connection: Connection, row: type[Base], column: str) -> Iterator[tuple[int, Any]]:
    query = select(table(row).c.id, table(row).c[column]).where(table(row).c[column].is_not(None))
    yield from connection.execute(query).tuples().all()


def _texts(connection: Connection) -> Iterator[str]:
    texts: list[str] = []

    def note(piece: str) -> str:
        texts.append(piece)
        return piece

    for row, columns in WRITTEN.items():
        for column in columns:
            for _, document in _documents(connection, row, column):
                _map_texts(document, note)
                yield from texts
                texts.clear()


def _of_releases(connection: Connection) -> dict[int, set[str]]:
    """The pieces of each release's note, and of the notes and reasons in its document."""
    pieces: dict[int, set[str]] = {}
    query = select(ReleaseRow.version, ReleaseRow.note, ReleaseRow.document).order_by(ReleaseRow.version)
    for version, note, document in connection.execute(query).tuples():
        try:
            written = [note, *_reasons(json.loads(document))]
        except ValueError:
            written = [note]
        pieces[version] = {key for each in written for key, _, _ in _keys(each)}
    return pieces


def _reasons(value: Any, name: str = "") -> Iterator[str]:
    """The texts under a key that is called note or reason."""
    match value:
        case str() if name.endswith(("note", "reason")):
            yield value
        case dict():
            for key, item in value.items():
                yield from _reasons(item, key)
        case list():
            for item in value:
                yield from _reasons(item, name)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a JSON value with every text changed; keys stay."""
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _map_texts(item, change) for key, item in value.items()}
        case list():
            return [_map_texts(item, change) for item in value]
        case _:
            return value
