"""Scores: the cache that runs fill, and the labelled rows that sweeps read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import func, select

from calibrate.types import Evidence, Score, ScoreStatus, Stratum, TraceFilter, Usage
from db.engine import Aggregate
from db.tables import ConfigRow, GoldRow, MemberRow, ScoreRow, TraceRow, table
from db.tables.bulk import upsert, upsert_many
from db.tables.filters import conditions, gold_of_member, is_labelled
from db.tables.mapping import batches, evidence_json, evidence_of, score_of, usage_json
from db.tables.numbers import read_numbers

PAGE = 2_000  # rows that an export reads at once
CONFIG = (ConfigRow.id, ConfigRow.name, ConfigRow.version, ConfigRow.params, ConfigRow.revision)


@dataclass(frozen=True, slots=True)
class Config:
    """A detector as it was run."""

    id: int
    name: str
    version: str
    params: Mapping[str, Any]
    revision: str


@dataclass(frozen=True, slots=True)
class Row:
    """One trace as a sweep sees it. `gold` is None without a verdict; `value` None where there is no score.

    `strata` are those it was drawn in: none for a label of no sample, several where samples taken as one both drew it.
    """

    pk: int
    trace_id: str
    content_hash: str
    gold: str | None
    value: float | None
    status: str | None
    reason: str | None
    strata: tuple[Stratum, ...]
    group: str | None
    model: str | None
    timestamp: datetime | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What one score took: the time, and what it asked of a chat endpoint."""

    status: ScoreStatus
    seconds: float
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one trace: its gold verdict, and a configuration's score; no status where it was not run."""

    trace_id: str
    gold: str | None
    value: float | None
    status: str | None
    reason: str | None


def key_of(name: str, version: str, params: Mapping[str, Any], revision: str) -> str:
    """The digest by which a configuration is found."""
    text = json.dumps([name, version, params, revision], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Scores(Aggregate):
    def config(self, name: str, version: str, params: Mapping[str, Any], revision: str, *, now: datetime) -> Config:
        """The stored configuration with these four, made when it is new."""
        key = key_of(name, version, params, revision)
        stored = select(*CONFIG).where(ConfigRow.key == key)
        if config := next(iter(self._records(Config, stored)), None):
            return config
        row = {"key": key, "name": name, "version": version, "params": dict(params), "revision": revision}
        with self._writing() as connection:
            connection.execute(upsert(connection, ConfigRow), [{**row, "created_at": now}])
            return Config(*connection.execute(stored).one())

    def configs(self, name: str) -> list[Config]:
        """Every configuration of a detector that has scores, the most recently used last."""
        newest = select(func.max(ScoreRow.scored_at)).where(ScoreRow.config_id == ConfigRow.id)
        at = newest.correlate(ConfigRow).scalar_subquery().label("at")
        rows = self._rows(select(*CONFIG, at).where(ConfigRow.name == name))
        used = [row for row in rows if row[-1] is not None]
        return [Config(*row[:-1]) for row in sorted(used, key=lambda row: (row[-1], row[0]))]

    def get_config(self, config_id: int) -> Config:
        return self.get_configs([config_id])[config_id]

    def find_config(self, config_id: int) -> Config | None:
        return self.get_configs([config_id]).get(config_id)

    def get_configs(self, ids: Sequence[int]) -> dict[int, Config]:
        """By key."""
        configs = self._records(Config, select(*CONFIG).where(ConfigRow.id.in_(ids)))
        return {config.id: config for config in configs}

    def statuses(self, config_id: int, hashes: Sequence[str]) -> dict[str, str]:
        """Content hash → status, for the contents that need no new score: a failure is tried again."""
        return {content: score.status for content, score in self.reusable(config_id, hashes).items()}

    def reusable(self, config_id: int, hashes: Sequence[str]) -> dict[str, Score]:
        """Content hash → score, without evidence and of no trace in particular, for the contents that need no new one:
        a failure is tried again."""
        columns = (ScoreRow.content_hash, ScoreRow.value, ScoreRow.reason, ScoreRow.status)
        query = select(*columns).where(ScoreRow.config_id == config_id, ScoreRow.status != "failed")
        return {
            content: Score("", value, reason, cast(ScoreStatus, status))
            for batch in batches(hashes, 900)
            for content, value, reason, status in self._rows(query.where(ScoreRow.content_hash.in_(batch)))
        }

    def failed(self, config_id: int, hashes: Sequence[str]) -> set[str]:
        """Those of the contents on which this configuration failed."""
        query = select(ScoreRow.content_hash).where(ScoreRow.config_id == config_id, ScoreRow.status == "failed")
        return {
            content
            for batch in batches(hashes, 900)
            for content in self._scalars(query.where(ScoreRow.content_hash.in_(batch)))
        }

    def save(self, config_id: int, scores: Sequence[tuple[str, Score]], *, now: datetime) -> None:
        """Stores (content hash, score) pairs in one transaction; a newer score of the same content replaces."""
        rows = {
            content: {
                "config_id": config_id,
                "content_hash": content,
                "status": score.status,
                "value": score.value,
                "reason": score.reason,
                "seconds": score.seconds,
                "evidence": evidence_json(score.evidence),
                "usage": usage_json(score.usage),
                "scored_at": now,
            }
            for content, score in scores
        }
        if not rows:
            return
        replaced = ("status", "value", "reason", "seconds", "evidence", "usage", "scored_at")
        with self._writing() as connection:
            upsert_many(connection, ScoreRow, [rows[content] for content in sorted(rows)], replacing=replaced)

    def of_trace(self, pk: int) -> list[tuple[Config, Score]]:
        """Every score of a trace's content, with evidence; each detector's newest configuration last."""
        query = select(table(ScoreRow), TraceRow.trace_id, *CONFIG[1:]).join(
            TraceRow, TraceRow.content_hash == ScoreRow.content_hash
        )
        query = query.join(ConfigRow, ConfigRow.id == ScoreRow.config_id).where(TraceRow.id == pk)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(ConfigRow.name, ScoreRow.scored_at)).mappings()
            return [
                (
                    Config(row["config_id"], row["name"], row["version"], row["params"], row["revision"]),
                    score_of(row, row["trace_id"]),
                )
                for row in rows
            ]

    def evidence(self, config_id: int, pks: Sequence[int]) -> dict[int, tuple[Evidence, ...]]:
        """Trace key → what this configuration's score of it rests on, for the few traces that are shown."""
        query = select(TraceRow.id, ScoreRow.evidence).join(ScoreRow, ScoreRow.content_hash == TraceRow.content_hash)
        query = query.where(ScoreRow.config_id == config_id, TraceRow.id.in_(pks))
        return {pk: evidence_of(stored) for pk, stored in self._rows(query)}

    def labelled(self, config_id: int) -> list[Row]:
        """Every trace with a gold verdict of any kind, and this configuration's score of it."""
        query = self._labels_and_scores(config_id, None).join(GoldRow, GoldRow.trace_pk == TraceRow.id)
        return self._fetch(query.where(is_labelled()).add_columns(GoldRow.verdict), None)

    def outcomes(self, config_id: int, *, sample_id: int | None = None) -> Iterator[Outcome]:
        """Every trace that this configuration was run on, in the order of import; with a sample, every member of it in
        labelling order. They are read some at a time."""
        match = sa.and_(ScoreRow.config_id == config_id, ScoreRow.content_hash == TraceRow.content_hash)
        place = TraceRow.id if sample_id is None else MemberRow.position
        columns = (TraceRow.trace_id, GoldRow.verdict, ScoreRow.value, ScoreRow.status, ScoreRow.reason)
        query = select(place, *columns).select_from(TraceRow)
        if sample_id is None:
            query = query.join(ScoreRow, match)
        else:
            query = query.join(MemberRow, MemberRow.trace_pk == TraceRow.id).outerjoin(ScoreRow, match)
            query = query.where(MemberRow.sample_id == sample_id)
        query = query.outerjoin(GoldRow, GoldRow.trace_pk == TraceRow.id).order_by(place).limit(PAGE)
        rows = self._rows(query)
        while rows:
            yield from (Outcome(*row[1:]) for row in rows)
            rows = self._rows(query.where(place > rows[-1][0])) if len(rows) == PAGE else ()

    def count_outcomes(self, config_id: int) -> int:
        """How many traces this configuration was run on."""
        query = select(func.count()).select_from(TraceRow)
        return (
            self._scalar(query.where(TraceRow.content_hash == ScoreRow.content_hash, ScoreRow.config_id == config_id))
            or 0
        )

    def costs(self, config_id: int, *, sample_id: int | None = None) -> list[Cost]:
        """What each score of a labelled trace took; with a sample, of its labelled members."""
        query = select(ScoreRow.status, ScoreRow.seconds, ScoreRow.usage)
        query = query.join(TraceRow, TraceRow.content_hash == ScoreRow.content_hash)
        query = query.join(GoldRow, GoldRow.trace_pk == TraceRow.id).where(ScoreRow.config_id == config_id)
        if sample_id is not None:
            query = query.join(MemberRow, MemberRow.trace_pk == TraceRow.id).where(MemberRow.sample_id == sample_id)
        return [_cost(*row) for row in self._rows(query)]

    def newest_costs(self, config_id: int, *, limit: int) -> list[Cost]:
        """What the newest scores that have a value took, newest first."""
        query = select(ScoreRow.status, ScoreRow.seconds, ScoreRow.usage).where(ScoreRow.config_id == config_id)
        query = query.where(ScoreRow.status == "scored").order_by(ScoreRow.scored_at.desc()).limit(limit)
        return [_cost(*row) for row in self._rows(query)]

    def has_evidence(self, config_id: int, *, look_at: int = 200) -> bool:
        """Whether scores of this configuration say why, by a few of them."""
        query = select(ScoreRow.evidence).where(ScoreRow.config_id == config_id, ScoreRow.status == "scored")
        return any(self._scalars(query.limit(look_at)))

    def window(self, config_id: int, where: TraceFilter) -> NDArray[np.float64]:
        """The scores of the matching traces that this configuration was run on, in key order; NaN where it could not
        score. Refusals are left out."""
        query = select(TraceRow.id, ScoreRow.value).join(ScoreRow, TraceRow.content_hash == ScoreRow.content_hash)
        query = query.where(ScoreRow.config_id == config_id, ScoreRow.status != "refusal", *conditions(where))
        with self._reading() as connection:
            keys, values = read_numbers(connection, query)
        in_order: NDArray[np.float64] = values[np.argsort(keys, kind="stable"), 0]
        return in_order

    def members(self, config_id: int, sample_id: int) -> list[Row]:
        """Every member of a sample in labelling order; `gold` may be unsure or disputed, too, None without a label."""
        query = self._labels_and_scores(config_id, sample_id).outerjoin(GoldRow, GoldRow.trace_pk == TraceRow.id)
        return self._fetch(query.add_columns(gold_of_member()), sample_id)

    def _labels_and_scores(self, config_id: int, sample_id: int | None) -> sa.Select[*tuple[Any, ...]]:
        match = sa.and_(ScoreRow.config_id == config_id, ScoreRow.content_hash == TraceRow.content_hash)
        columns = (
            TraceRow.id,
            TraceRow.trace_id,
            TraceRow.content_hash,
            ScoreRow.value,
            ScoreRow.status,
            ScoreRow.reason,
            TraceRow.source_group,
            TraceRow.model,
            TraceRow.timestamp,
        )
        if sample_id is None:
            everything = select(*columns, sa.null().label("stratum")).select_from(TraceRow)
            return everything.outerjoin(ScoreRow, match).order_by(TraceRow.id)
        query = select(*columns, MemberRow.stratum).select_from(MemberRow)
        query = query.join(TraceRow, TraceRow.id == MemberRow.trace_pk).outerjoin(ScoreRow, match)
        return query.where(MemberRow.sample_id == sample_id).order_by(MemberRow.position)

    def _fetch(self, query: sa.Select[*tuple[Any, ...]], sample_id: int | None) -> list[Row]:
        rows = []
        strata: dict[str | None, tuple[Stratum, ...]] = {None: ()}
        for pk, trace_id, content, value, status, reason, group, model, at, stratum, gold in self._rows(query):
            if stratum not in strata:
                strata[stratum] = (Stratum(sample_id or 0, stratum),)
            rows.append(Row(pk, trace_id, content, gold, value, status, reason, strata[stratum], group, model, at))
        return rows


def _cost(status: str, seconds: float, usage: Sequence[Any] | None) -> Cost:
    return Cost(cast(ScoreStatus, status), seconds, Usage(*usage) if usage else None)
