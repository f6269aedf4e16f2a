"""Scores that were computed elsewhere: the detectors they belong to, and their revisions.

A revision is a configuration of the detector, (name, "1", {}, revision). What stands in one is never changed, so that a
release that was made from it can still be explained: a changed score begins the next, which takes the others over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, delete, insert, select, update

from calibrate.types import Evidence, ExternalDetector
from db.audit import record as audit
from db.engine import Aggregate
from db.scores import key_of
from db.tables import ConfigRow, ExternalRow, ScoreRow, TraceRow, table
from db.tables.bulk import among, upsert, upsert_many
from db.tables.mapping import batches, evidence_json

VERSION = "1"
PAGE = 2_000  # traces read at once
AT_ONCE = 900  # values in one query
SCORES = table(ScoreRow)


@dataclass(frozen=True, slots=True)
class NewScore:
    """A score of one content that its revision does not have yet."""

    content_hash: str
    value: float
    reason: str | None


class External(Aggregate):
    def all(self) -> list[ExternalDetector]:
        """By name."""
        return self._records(ExternalDetector, select(table(ExternalRow)).order_by(ExternalRow.name))

    def find(self, name: str) -> ExternalDetector | None:
        query = select(table(ExternalRow)).where(ExternalRow.name == name)
        return next(iter(self._records(ExternalDetector, query)), None)

    def save(self, detector: ExternalDetector, *, now: datetime) -> None:
        """Add the detector, or replace what is known of one; its revision stays as it is in the store."""
        fields = ("flag_when", "unit", "low", "high")
        with self._writing() as connection:
            query = select(table(ExternalRow)).where(ExternalRow.name == detector.name)
            stored = connection.execute(query.with_for_update()).mappings().first()
            after = {field: getattr(detector, field) for field in fields}
            before = {field: stored[field] for field in fields} if stored else None
            if before == after:
                return
            connection.execute(upsert(connection, ExternalRow, replacing=fields), [asdict(detector)])
            audit(
                connection, "detector defined", detector.name, by=detector.created_by, now=now, before=before,
                after=after,
            )  # fmt: skip

    def remove(self, name: str, *, by: str, now: datetime) -> bool:
        """Remove a detector. False, with nothing done, where it has a configuration, and so scores."""
        with self._writing() as connection:
            query = select(table(ExternalRow)).where(ExternalRow.name == name)
            stored = connection.execute(query.with_for_update()).mappings().first()
            if stored is None or connection.scalar(select(ConfigRow.id).where(ConfigRow.name == name).limit(1)):
                return False
            connection.execute(delete(ExternalRow).where(ExternalRow.name == name))
            before = {field: stored[field] for field in ("flag_when", "unit", "low", "high")}
            audit(connection, "detector removed", name, by=by, now=now, before=before, after={})
        return True

    def contents(self, trace_ids: Sequence[str]) -> dict[str, str]:
        """Trace id → content hash, of those of the traces that are in the store and not purged."""
        query = select(TraceRow.trace_id, TraceRow.content_hash).where(TraceRow.purged_at.is_(None))
        with self._reading() as connection:
            return {
                trace_id: content
                for batch in batches(trace_ids, AT_ONCE)
                for trace_id, content in connection.execute(
                    query.where(among(connection, TraceRow.trace_id, batch))
                ).tuples()
            }

    def texts(self) -> Iterator[tuple[int, str, str, str | None, str]]:
        """(key, trace id, content hash, question, answer) of every trace that is not purged, read in a stream."""
        columns = (TraceRow.id, TraceRow.trace_id, TraceRow.content_hash, TraceRow.question, TraceRow.answer)
        query = select(*columns).where(TraceRow.purged_at.is_(None)).order_by(TraceRow.id).limit(PAGE)
        rows = self._rows(query)
        while rows:
            yield from rows
            rows = self._rows(query.where(TraceRow.id > rows[-1][0])) if len(rows) == PAGE else ()

    def values(self, name: str, revision: str, hashes: Sequence[str]) -> dict[str, float | None]:
        """Content hash → value, of those of the contents that the revision has a score of."""
        config = select(ConfigRow.id).where(ConfigRow.key == key_of(name, VERSION, {}, revision)).scalar_subquery()
        query = select(ScoreRow.content_hash, ScoreRow.value).where(ScoreRow.config_id == config)
        with self._reading() as connection:
            return {
                content: value
                for batch in batches(hashes, AT_ONCE)
                for content, value in connection.execute(
                    query.where(among(connection, ScoreRow.content_hash, batch))
                ).tuples()
            }

    def outside(self, name: str, revision: str, *, low: float | None, high: float | None) -> int:
        """How many contents have a value of the revision that is below the lowest or above the highest."""
        config = select(ConfigRow.id).where(ConfigRow.key == key_of(name, VERSION, {}, revision)).scalar_subquery()
        sides = [ScoreRow.value < low] if low is not None else []
        sides += [ScoreRow.value > high] if high is not None else []
        query = select(sa.func.count()).select_from(ScoreRow)
        return int(self._scalar(query.where(ScoreRow.config_id == config, sa.or_(*sides))) or 0) if sides else 0

    def spread(self, name: str, revision: str) -> tuple[float, float, float] | None:
        """The lowest, the middle and the highest value of a revision, one of each content; None without values."""
        config = select(ConfigRow.id).where(ConfigRow.key == key_of(name, VERSION, {}, revision)).scalar_subquery()
        where = (ScoreRow.config_id == config, ScoreRow.value.is_not(None))
        n = self._scalar(select(sa.func.count()).select_from(ScoreRow).where(*where)) or 0
        if not n:
            return None
        in_order = select(ScoreRow.value).where(*where).order_by(ScoreRow.value)
        low, median, high = (self._scalar(in_order.offset(place).limit(1)) for place in (0, (n - 1) // 2, n - 1))
        return float(low or 0.0), float(median or 0.0), float(high or 0.0)

    def add(
        self,
        name: str,
        scores: Sequence[NewScore],
        *,
        after: str,
        revision: str,
        replacing: bool,
        by: str,
        now: datetime,
    ) -> bool:
        """Store scores under a revision in one transaction. Another revision than `after`, the newest that the caller
        knows, begins with everything that stands in that one. Where a score is there already it stays, unless it is to
        be replaced. False, with nothing stored, where `after` is the newest no more."""
        with self._writing() as connection:
            newest = select(ExternalRow.revision).where(ExternalRow.name == name)
            if connection.scalar(newest.with_for_update()) != after:
                return False
            config = _config(connection, name, revision, now)
            if revision != after:
                _take_over(connection, _config(connection, name, after, now), config)
                connection.execute(update(ExternalRow).where(ExternalRow.name == name).values(revision=revision))
                audit(
                    connection, "scores revised", name, by=by, now=now, before={"revision": after},
                    after={"revision": revision},
                )  # fmt: skip
            replaced = ("value", "evidence", "scored_at") if replacing else ("scored_at",)
            rows = [_row(config, score, now) for score in scores]
            upsert_many(connection, ScoreRow, rows, replacing=replaced)
        return True

    def newest(self, configs: Sequence[int]) -> datetime | None:
        """When the newest score of these configurations came."""
        newest = [select(sa.func.max(ScoreRow.scored_at)).where(ScoreRow.config_id == config) for config in configs]
        return max((at for query in newest if (at := self._scalar(query)) is not None), default=None)

    def scored_since(self, configs: Sequence[int], since: datetime | None) -> set[int]:
        """The keys of the traces of which a score of these configurations came at that time or later."""
        query = select(TraceRow.id).join(ScoreRow, ScoreRow.content_hash == TraceRow.content_hash)
        newer = [ScoreRow.scored_at >= since] if since is not None else []
        return {pk for config in configs for pk in self._scalars(query.where(ScoreRow.config_id == config, *newer))}

    def imported_at(self, pks: Sequence[int]) -> dict[int, datetime]:
        """When these traces came into the store, by key."""
        query = select(TraceRow.id, TraceRow.imported_at)
        return {pk: at for batch in batches(pks, AT_ONCE) for pk, at in self._rows(query.where(TraceRow.id.in_(batch)))}

    def revisions(self, name: str) -> list[str]:
        """Every revision of the scores, the oldest first."""
        where = (ConfigRow.name == name, ConfigRow.version == VERSION)
        return list(self._scalars(select(ConfigRow.revision).where(*where).order_by(ConfigRow.id)))


def _config(connection: Connection, name: str, revision: str, now: datetime) -> int:
    """The key of the configuration that is a revision, made when it is new."""
    key = key_of(name, VERSION, {}, revision)
    row: Mapping[str, Any] = {"key": key, "name": name, "version": VERSION, "params": {}, "revision": revision}
    connection.execute(upsert(connection, ConfigRow), [{**row, "created_at": now}])
    return connection.execute(select(ConfigRow.id).where(ConfigRow.key == key)).scalar_one()


def _take_over(connection: Connection, old: int, new: int) -> None:
    names = [column.name for column in SCORES.c]
    columns = [sa.literal(new) if name == "config_id" else SCORES.c[name] for name in names]
    connection.execute(insert(SCORES).from_select(names, select(*columns).where(ScoreRow.config_id == old)))


def _row(config: int, score: NewScore, now: datetime) -> dict[str, Any]:
    return {
        "config_id": config,
        "content_hash": score.content_hash,
        "status": "scored",
        "value": score.value,
        "reason": None,
        "seconds": 0.0,
        "evidence": evidence_json([Evidence(score.reason)] if score.reason else ()),
        "usage": None,
        "scored_at": now,
    }
