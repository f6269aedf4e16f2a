"""The scores of many traces: how many there are, some drawn at random, several configurations side by side."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import aliased

from calibrate.types import TraceFilter
from db.engine import Aggregate, Ts
from db.tables import ConfigRow, DrawnRow, MemberRow, SampleRow, ScoreRow, SourceRow, TraceRow
from db.tables.filters import conditions, is_labelled
from db.tables.mapping import digest
from db.tables.numbers import read_numbers

BLANKS = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000"  # of those that str.strip takes off, what occurs


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a configuration gave each (status, reason) to some traces, and when it scored one of them last."""

    last: datetime
    counts: Counter[tuple[str, str | None]] = field(default_factory=Counter)


@dataclass(frozen=True)
class DrawnScores:
    """Some of a window's scores, NaN where there could be none, and what each trace shares with others: its group of
    sources, else its content. `pks` are the traces' keys."""

    scores: NDArray[np.float64]
    groups: tuple[str, ...]
    pks: tuple[int, ...]


@dataclass(frozen=True)
class SideBySide:
    """Scores of several configurations, one column each, NaN for none; `refusals` traces are left out of them."""

    scores: NDArray[np.float64]
    refusals: int


class Coverage(Aggregate):
    def tallies(
        self, *, sample_id: int | None = None, labelled: bool = False, config_id: int | None = None
    ) -> dict[int, Tally]:
        """How each configuration scored the members of a sample, the labelled traces, or all."""
        chosen = _contents(sample_id, labelled)
        contents: Any = chosen.subquery()
        if sample_id is not None or labelled:  # few: listed first, and their scores are looked up
            contents = chosen.cte("contents").prefix_with("MATERIALIZED")
        # Every refusal quotes its own sentence; they count as one.
        reason = sa.case((ScoreRow.status == "refusal", None), else_=ScoreRow.reason).label("why")
        query = select(ScoreRow.config_id, ScoreRow.status, reason, func.count(), func.max(ScoreRow.scored_at))
        query = query.join(contents, contents.c.content_hash == ScoreRow.content_hash)
        query = query.group_by(ScoreRow.config_id, ScoreRow.status, reason)
        # Named one by one, they are looked up by key; otherwise every score of the store is read.
        configs = [config_id] if config_id is not None else self._scalars(select(ConfigRow.id))
        tallies: dict[int, Tally] = {}
        for config, status, why, n, at in self._rows(query.where(ScoreRow.config_id.in_(configs))):
            before = tallies.get(config, Tally(at))
            before.counts[status, why] += n
            tallies[config] = Tally(max(before.last, at), before.counts)
        return tallies

    def fields(self, *, sample_id: int | None = None, labelled: bool = False) -> Counter[frozenset[str]]:
        """How many members of a sample, labelled traces, or traces of all have exactly these of the fields that
        detectors read, by the names that `Detector.needs` and `also_needs` use. A purged trace has none."""
        present = {name: test.label(f"has_{name}") for name, test in _presence().items()}
        contents = _contents(sample_id, labelled).subquery()
        query = select(*present.values(), func.count()).join(contents, contents.c.id == TraceRow.id)
        query = query.group_by(*(sa.literal_column(f"has_{name}") for name in present))
        counts: Counter[frozenset[str]] = Counter()
        for *has, n in self._rows(query):
            counts[frozenset(name for name, is_there in zip(present, has, strict=True) if is_there)] += n
        return counts

    def lacking(
        self, config_id: int, *, sample_id: int | None = None, labelled: bool = False, failed: bool = False
    ) -> Sequence[int]:
        """The keys, in order, of the members of a sample, of the labelled traces, or of all, that the configuration has
        no score of; a failure is none. With `failed`, only those on which it failed."""
        contents = _contents(sample_id, labelled).subquery()
        is_known = ScoreRow.status == "failed" if failed else ScoreRow.status != "failed"
        stored = select(ScoreRow.content_hash).where(ScoreRow.config_id == config_id, is_known)
        content = contents.c.content_hash
        in_scope = content.in_(stored) if failed else content.not_in(stored)
        with self._reading() as connection:
            keys, _ = read_numbers(connection, select(contents.c.id).where(in_scope))
        return array("q", np.sort(keys).tobytes())

    def count(self, config_id: int, where: TraceFilter, *, random: bool = False) -> int:
        """How many matching traces the configuration was run on, refusals left out; with `random`, of those that are in
        a sample drawn at random."""
        return self._scalar(_scored(select(func.count()), config_id, where, random=random)) or 0

    def count_refusals(self, config_id: int, where: TraceFilter) -> int:
        query = select(func.count()).select_from(TraceRow).join(ScoreRow, _match(config_id))
        return self._scalar(query.where(ScoreRow.status == "refusal", *conditions(where))) or 0

    def draw(
        self, config_id: int, where: TraceFilter, most: int, *, rng: np.random.Generator, random: bool = False
    ) -> DrawnScores:
        """At most `most` of the matching traces, at random: those whose content hashes follow a random one.

        Hashes are as good as random, and the index of scores is in their order, so no other rows are read. Traces of
        one content come together; they are one group.
        """
        columns = (ScoreRow.content_hash, ScoreRow.value, TraceRow.source_group, TraceRow.id)
        query = _scored(select(*columns), config_id, where, random=random)
        query = query.order_by(ScoreRow.content_hash, TraceRow.id)
        start = rng.bytes(16).hex()
        rows: list[Any] = []
        for part in (ScoreRow.content_hash >= start, ScoreRow.content_hash < start):
            if len(rows) < most:
                rows += self._rows(query.where(part).limit(most - len(rows)))
        scores = np.array([np.nan if value is None else value for _, value, _, _ in rows], dtype=np.float64)
        groups = (content if group is None else f"group {group}" for content, _, group, _ in rows)
        return DrawnScores(scores, tuple(groups), tuple(pk for *_, pk in rows))

    def side_by_side(self, configs: Sequence[int], where: TraceFilter, *, every: int = 1) -> SideBySide:
        """The scores of the matching traces that all of these configurations were run on, in key order, read in a
        stream; with `every`, of each second, third … trace only."""
        query: Any = select(TraceRow.id).where(*conditions(where)).order_by(TraceRow.id)
        if every > 1:
            query = query.where(TraceRow.id % every == 0)
        for config in configs:
            score = aliased(ScoreRow)
            match = sa.and_(score.config_id == config, score.content_hash == TraceRow.content_hash)
            query = query.join(score, match).add_columns(score.value, score.status)
        blocks, refusals = [np.empty((0, len(configs)))], 0
        with self._reading() as connection:
            rows = connection.execution_options(yield_per=10_000).execute(query)
            for block in rows.partitions():
                answers = [row[1::2] for row in block if "refusal" not in row[2::2]]
                refusals += len(block) - len(answers)
                blocks.append(np.array(answers, dtype=np.float64).reshape(len(answers), len(configs)))
        return SideBySide(np.concatenate(blocks), refusals)


def _contents(sample_id: int | None, labelled: bool) -> sa.Select[int, str]:
    """(trace key, content hash) of the members of a sample, of the labelled traces, or of all."""
    query = select(TraceRow.id, TraceRow.content_hash)
    if sample_id is not None:
        return query.join(MemberRow, MemberRow.trace_pk == TraceRow.id).where(MemberRow.sample_id == sample_id)
    return query.where(is_labelled()) if labelled else query


def _presence() -> dict[str, sa.Case[int]]:
    """Whether a trace has each field, 1 or 0; the same answers as `calibrate.types.Trace.presence`."""
    sources = select(SourceRow.trace_pk).where(SourceRow.trace_pk == TraceRow.id).correlate(TraceRow)
    drawn = select(func.json_array_length(DrawnRow.alternatives)).where(DrawnRow.content_hash == TraceRow.content_hash)
    alternatives = func.coalesce(
        func.json_array_length(TraceRow.alternatives), drawn.correlate(TraceRow).scalar_subquery(), 0
    )
    with_text = sources.where(SourceRow.text_digest != digest(""))
    tests: dict[str, sa.ColumnElement[bool]] = {
        "answer": func.trim(TraceRow.answer, BLANKS) != "",
        "question": sa.and_(TraceRow.question.is_not(None), TraceRow.question != ""),
        "retrieved": sources.exists(),
        "sources": with_text.exists(),
        "context": sa.or_(TraceRow.context_digest.is_not(None), with_text.exists()),
        "retrieval_scores": sources.where(SourceRow.retrieval_score.is_not(None)).exists(),
        "tokens": sa.and_(TraceRow.tokens.is_not(None), sa.cast(TraceRow.tokens, sa.Text) != "[]"),
        "alternatives": alternatives >= 2,
        "schema": TraceRow.output_schema.is_not(None),
    }
    alive = TraceRow.purged_at.is_(None)
    return {name: sa.case((sa.and_(alive, test), 1), else_=0) for name, test in tests.items()}


def _match(config_id: int) -> sa.ColumnElement[bool]:
    return sa.and_(ScoreRow.config_id == config_id, ScoreRow.content_hash == TraceRow.content_hash)


def _scored(query: sa.Select[*Ts], config_id: int, where: TraceFilter, *, random: bool) -> sa.Select[*Ts]:
    query = query.select_from(TraceRow).join(ScoreRow, _match(config_id))
    query = query.where(ScoreRow.status != "refusal", *conditions(where))
    if not random:
        return query
    member = select(MemberRow.trace_pk).join(SampleRow, SampleRow.id == MemberRow.sample_id)
    return query.where(TraceRow.id.in_(member.where(SampleRow.design == "random")))
