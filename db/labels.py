"""Labels, the gold verdicts that follow from them, and a labeller's place in a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, func, insert, select
from sqlalchemy.orm import aliased

from calibrate.errors import BadInput
from calibrate.types import VERDICTS, GoldVerdict, Label, Verdict, resolve_gold
from db.audit import record as audit
from db.engine import Aggregate, serialise
from db.labelling.guides import under_guide
from db.tables import GoldRow, LabelRow, MemberRow, SampleRow, SkipRow, TraceRow, table
from db.tables.mapping import batches, label_of, label_row

PAGE = 2_000  # labels that an export reads at once


@dataclass(frozen=True, slots=True)
class Place:
    """A labeller's progress in a sample. `position` is the member to show next, None when all are done, and `ahead`
    those that come then, in order, it among them. `purged` members that this labeller has not labelled are passed
    over."""

    position: int | None
    labelled: int
    skipped: int
    size: int
    seconds_each: float | None
    purged: int = 0
    ahead: tuple[int, ...] = ()

    @property
    def left(self) -> int:
        """How many members this labeller has yet to label."""
        return self.size - self.purged - self.labelled


@dataclass(frozen=True, slots=True)
class Reading:
    """Each labeller's latest verdict on a trace, and the latest adjudication, which `by` made. A purged trace can be
    read no more, so nobody can settle it."""

    pk: int
    trace_id: str
    group: str | None
    gold: GoldVerdict
    verdicts: Mapping[str, Verdict]
    adjudicated: Verdict | None
    by: str | None
    purged: bool = False


class Labels(Aggregate):
    def add(self, pk: int, label: Label, *, sample_id: int | None, now: datetime) -> None:
        """Appends a label and updates the gold verdict, in one transaction. A label that names no version of the
        labelling guide was given under the newest."""
        if label.verdict not in VERDICTS:
            raise BadInput(f"a verdict is one of {', '.join(VERDICTS)}, not {label.verdict!r}")
        with self._writing() as connection:
            serialise(connection)
            gold = select(GoldRow.verdict).where(GoldRow.trace_pk == pk)
            before = connection.scalar(gold) if label.adjudicates else None
            append(connection, [(pk, under_guide(connection, label))], sample_id=sample_id, now=now)
            if label.adjudicates:  # a labeller's own labels are a log already
                was, is_now = {"gold": before}, {"gold": label.verdict}
                audit(connection, "dispute settled", label.trace_id, by=label.labeller, before=was, after=is_now)

    def add_many(self, labels: Sequence[Label], *, now: datetime) -> tuple[int, list[str]]:
        """Adds labels by trace id in one transaction; a label that its labeller's latest repeats is left out.
        Returns how many were added, and the trace ids that the store does not have."""
        with self._writing() as connection:
            serialise(connection)
            keys: dict[str, int] = {}
            for batch in batches(sorted({label.trace_id for label in labels}), 500):
                query = select(TraceRow.trace_id, TraceRow.id).where(TraceRow.trace_id.in_(batch))
                keys.update(connection.execute(query).tuples().all())
            pairs = [(keys[label.trace_id], label) for label in labels if label.trace_id in keys]
            added = append(connection, pairs, sample_id=None, now=now, skip_standing=True)
            if added:
                names = sorted({label.labeller for label in labels})
                audit(connection, "labels imported", ", ".join(names), after={"labels": added})
        return added, [label.trace_id for label in labels if label.trace_id not in keys]

    def skip(self, pk: int, *, sample_id: int, labeller: str, now: datetime) -> None:
        """Moves the trace to the end of this labeller's queue; skipping it again moves it again."""
        key = {"sample_id": sample_id, "trace_pk": pk, "labeller": labeller}
        with self._writing() as connection:
            where = [getattr(SkipRow, name) == value for name, value in key.items()]
            connection.execute(sa.delete(SkipRow).where(*where))
            connection.execute(insert(SkipRow), [{**key, "skipped_at": now}])

    def place(
        self, sample_id: int, labeller: str, *, only_open: bool = False, gap_first: bool = False, ahead: int = 1
    ) -> Place:
        """What this labeller labels next: unlabelled members in order, then the skipped ones, oldest skip first, those
        in the gap before others; `ahead` of them are looked up. With `only_open`, members that anybody has labelled are
        passed over; with `gap_first` the gap comes before all. The gap: members that nobody has labelled, before the
        last that somebody has. Purged members are passed over."""
        mine = select(LabelRow.trace_pk).where(LabelRow.labeller == labeller, LabelRow.trace_pk == MemberRow.trace_pk)
        mine = mine.correlate(MemberRow)
        skip = sa.and_(
            SkipRow.sample_id == MemberRow.sample_id,
            SkipRow.trace_pk == MemberRow.trace_pk,
            SkipRow.labeller == labeller,
        )
        members = select(MemberRow.position).where(MemberRow.sample_id == sample_id)
        is_purged = select(TraceRow.id).where(TraceRow.id == MemberRow.trace_pk, TraceRow.purged_at.is_not(None))
        is_purged = is_purged.correlate(MemberRow)
        lost = members.where(~mine.exists(), is_purged.exists())
        todo = members.outerjoin(SkipRow, skip).where(~mine.exists(), ~is_purged.exists())
        gold = select(GoldRow.trace_pk).where(GoldRow.trace_pk == MemberRow.trace_pk).correlate(MemberRow)
        if only_open:
            todo = todo.where(~gold.exists())
        another = aliased(MemberRow)
        last = select(func.max(another.position)).join(GoldRow, GoldRow.trace_pk == another.trace_pk)
        in_gap = sa.and_(
            ~gold.exists(), MemberRow.position < last.where(another.sample_id == sample_id).scalar_subquery()
        )
        skipped = SkipRow.skipped_at.is_not(None)
        later = sa.case((in_gap, 0), (sa.or_(sa.literal(gap_first), skipped), 1), else_=0)
        order = (*((later, skipped) if gap_first else (skipped, later)), SkipRow.skipped_at, MemberRow.position)
        with self._reading() as connection:
            positions = tuple(connection.scalars(todo.order_by(*order).limit(ahead)))
            size = connection.scalar(select(func.count()).select_from(members.subquery())) or 0
            purged = connection.scalar(select(func.count()).select_from(lost.subquery())) or 0
            left, skips = connection.execute(todo.with_only_columns(func.count(), func.count(SkipRow.skipped_at))).one()
            seconds = list(
                connection.scalars(
                    select(LabelRow.seconds)
                    .where(
                        LabelRow.sample_id == sample_id, LabelRow.labeller == labeller, LabelRow.seconds.is_not(None)
                    )
                    .order_by(LabelRow.id.desc())
                    .limit(20)
                )
            )
        pace = sorted(s for s in seconds if s is not None)
        each = pace[len(pace) // 2] if pace else None
        position = positions[0] if positions else None
        return Place(position, size - left - purged, skips, size, each, purged, positions)

    def of_flagged_only(self) -> set[int]:
        """The keys of the traces that were labelled only because a threshold flagged them."""
        by = select(SampleRow.id).where(SampleRow.design == "fresh-flagged")
        another = aliased(LabelRow)
        elsewhere = select(another.id).where(
            another.trace_pk == LabelRow.trace_pk, sa.or_(another.sample_id.is_(None), another.sample_id.not_in(by))
        )
        query = select(LabelRow.trace_pk).where(LabelRow.sample_id.in_(by), ~elsewhere.exists())
        return set(self._scalars(query))

    def of_trace(self, pk: int) -> list[Label]:
        """Every label of a trace, oldest first."""
        return self._read(LabelRow.trace_pk == pk)

    def export(self, sample_id: int | None = None) -> Iterator[Label]:
        """Every label, oldest first, read some at a time; with a sample, the labels of its members."""
        inside = LabelRow.trace_pk.in_(select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id))
        query = with_names(*([inside] if sample_id is not None else [])).order_by(LabelRow.id).limit(PAGE)
        rows = self._records(dict[str, Any], query)
        while rows:
            yield from (label_of(**row) for row in rows)
            rows = self._records(dict[str, Any], query.where(LabelRow.id > rows[-1]["id"])) if len(rows) == PAGE else []

    def count(self, sample_id: int | None = None) -> int:
        """How many labels there are; with a sample, of its members."""
        query = select(func.count()).select_from(LabelRow)
        if sample_id is not None:
            query = query.where(
                LabelRow.trace_pk.in_(select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id))
            )
        return self._scalar(query) or 0

    def gold_counts(self, sample_id: int | None = None) -> dict[str, int]:
        """How many traces have each gold verdict; with a sample, among its members."""
        query = select(GoldRow.verdict, func.count()).group_by(GoldRow.verdict)
        if sample_id is not None:
            query = query.join(MemberRow, MemberRow.trace_pk == GoldRow.trace_pk).where(
                MemberRow.sample_id == sample_id
            )
        return dict(self._rows(query))

    def decided_since(self, moment: datetime) -> set[int]:
        """The keys of the traces whose gold verdict is newer."""
        return set(self._scalars(select(GoldRow.trace_pk).where(GoldRow.decided_at > moment)))

    def readings(self, sample_id: int | None = None, *, least: int = 2) -> list[Reading]:
        """The traces that have at least `least` labels, by key; with a sample, its members in labelling order."""
        several = select(LabelRow.trace_pk).group_by(LabelRow.trace_pk).having(func.count() >= least)
        columns = (TraceRow.id, TraceRow.trace_id, TraceRow.source_group, GoldRow.verdict.label("gold"))
        purged = TraceRow.purged_at.is_not(None).label("purged")
        columns_of_labels = (LabelRow.labeller, LabelRow.verdict, LabelRow.adjudicates)
        query = select(*columns, purged, *columns_of_labels).select_from(LabelRow)
        query = query.join(TraceRow, TraceRow.id == LabelRow.trace_pk)
        query = query.join(GoldRow, GoldRow.trace_pk == LabelRow.trace_pk).where(LabelRow.trace_pk.in_(several))
        order: tuple[Any, ...] = (LabelRow.trace_pk, LabelRow.id)
        if sample_id is not None:
            inside = sa.and_(MemberRow.trace_pk == LabelRow.trace_pk, MemberRow.sample_id == sample_id)
            query, order = query.join(MemberRow, inside), (MemberRow.position, LabelRow.id)
        rows_by_trace: dict[int, list[Any]] = {}
        with self._reading() as connection:
            for row in connection.execute(query.order_by(*order)):
                rows_by_trace.setdefault(row.id, []).append(row)
        return [_reading(rows) for rows in rows_by_trace.values()]

    def kinds(self, pks: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """The kinds of error of each trace of these, of its labels and of their spans, in order; one that nobody gave
        any is left out. The latest of each labeller counts where it says hallucinated, and where an adjudication names
        kinds, it alone does."""
        columns = (LabelRow.trace_pk, LabelRow.labeller, LabelRow.adjudicates, LabelRow.verdict)
        query = select(*columns, LabelRow.kinds, LabelRow.spans).order_by(LabelRow.id)
        voices: dict[int, dict[tuple[str, bool], set[str]]] = {}
        for batch in batches(sorted(pks), 500):
            for pk, labeller, adjudicates, verdict, kinds, spans in self._rows(
                query.where(LabelRow.trace_pk.in_(batch))
            ):
                named = {*(kinds or ()), *(kind for _, _, kind in spans or () if kind)}
                latest = voices.setdefault(pk, {})
                latest.pop((labeller, adjudicates), None)
                latest[labeller, adjudicates] = named if verdict == "hallucinated" else set()
        decided = {pk: _kinds_of(latest) for pk, latest in voices.items()}
        return {pk: tuple(sorted(kinds)) for pk, kinds in decided.items() if kinds}

    def labellers(self) -> list[str]:
        return list(self._scalars(select(LabelRow.labeller).distinct().order_by(LabelRow.labeller)))

    def who_labelled(self, sample_id: int | None = None) -> list[str]:
        """Whoever has a label of their own, which decides for nobody else; with a sample, on one of its traces."""
        query = select(LabelRow.labeller).distinct().where(LabelRow.adjudicates.is_(False))
        if sample_id is not None:
            members = select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id)
            query = query.where(LabelRow.trace_pk.in_(members))
        return list(self._scalars(query.order_by(LabelRow.labeller)))

    def _read(self, *where: Any) -> list[Label]:
        return self._records(label_of, with_names(*where).order_by(LabelRow.id))


def with_names(*where: Any) -> Any:
    """Labels with the id of their trace and the name of their sample."""
    query = select(table(LabelRow), TraceRow.trace_id, SampleRow.name.label("sample"))
    query = query.join(TraceRow, TraceRow.id == LabelRow.trace_pk)
    return query.outerjoin(SampleRow, SampleRow.id == LabelRow.sample_id).where(*where)


def append(
    connection: Connection,
    labels: Sequence[tuple[int, Label]],
    *,
    sample_id: int | None,
    now: datetime,
    skip_standing: bool = False,
) -> int:
    """Appends labels and updates gold, inside the caller's transaction. `skip_standing` leaves out a label that its
    labeller's latest repeats, one that is kept already, and one that is older than the latest: importing a file twice
    adds nothing, and an old file changes no mind. A label of a purged trace is kept without note and spans: they may
    quote what was purged, or point at nothing."""
    labels = _without_texts(connection, labels)
    pks = {pk for pk, _ in labels}
    standing = _latest(connection, pks)
    history = _History(connection, pks) if skip_standing else None
    rows = []
    for pk, label in labels:
        row = label_row(pk, label, sample_id, now)
        content = (row["verdict"], row["kinds"], row["spans"], row["note"])
        voice = (label.labeller, label.adjudicates)
        if skip_standing and standing.get(pk, {}).get(voice) == content:
            continue
        if history and label.created_at and not history.takes(pk, voice, content, label.created_at):
            continue
        _set_latest(standing.setdefault(pk, {}), voice, content)
        rows.append(row)
    if rows:
        connection.execute(insert(table(LabelRow)), rows)
        changed = {row["trace_pk"] for row in rows}
        _decide(connection, {pk: standing[pk] for pk in changed}, now)
    return len(rows)


class _History:
    """When each voice gave its labels of these traces."""

    def __init__(self, connection: Connection, pks: Iterable[int]) -> None:
        self._given: dict[tuple[int, tuple[str, bool]], dict[datetime, list[tuple[Any, ...]]]] = {}
        columns = (LabelRow.verdict, LabelRow.kinds, LabelRow.spans, LabelRow.note)
        query = select(LabelRow.trace_pk, LabelRow.labeller, LabelRow.adjudicates, LabelRow.created_at, *columns)
        for batch in batches(sorted(pks), 500):
            for pk, labeller, adjudicates, at, *content in connection.execute(
                query.where(LabelRow.trace_pk.in_(batch))
            ):
                self._of(pk, (labeller, adjudicates)).setdefault(at, []).append(tuple(content))

    def takes(self, pk: int, voice: tuple[str, bool], content: tuple[Any, ...], at: datetime) -> bool:
        """Whether this label is news: not older than the voice's newest, and not one of its labels. It is one then."""
        given = self._of(pk, voice)
        if (given and at < max(given)) or content in given.get(at, ()):
            return False
        given.setdefault(at, []).append(content)
        return True

    def _of(self, pk: int, voice: tuple[str, bool]) -> dict[datetime, list[tuple[Any, ...]]]:
        return self._given.setdefault((pk, voice), {})


def _without_texts(connection: Connection, labels: Sequence[tuple[int, Label]]) -> Sequence[tuple[int, Label]]:
    wordy = sorted({pk for pk, label in labels if label.note or label.spans})
    query = select(TraceRow.id).where(TraceRow.purged_at.is_not(None))
    purged = {pk for batch in batches(wordy, 500) for pk in connection.scalars(query.where(TraceRow.id.in_(batch)))}
    return [(pk, replace(label, note=None, spans=()) if pk in purged else label) for pk, label in labels]


# The latest label of each voice on a trace, in the order they were given. Somebody who labels and adjudicates is two
# voices: (labeller, adjudicates).
_Voices = dict[tuple[str, bool], tuple[Any, ...]]


def _set_latest(voices: _Voices, voice: tuple[str, bool], content: tuple[Any, ...]) -> None:
    voices.pop(voice, None)
    voices[voice] = content


def _latest(connection: Connection, pks: Iterable[int]) -> dict[int, _Voices]:
    latest: dict[int, _Voices] = {}
    columns = (LabelRow.verdict, LabelRow.kinds, LabelRow.spans, LabelRow.note)
    query = select(LabelRow.trace_pk, LabelRow.labeller, LabelRow.adjudicates, *columns).order_by(LabelRow.id)
    for batch in batches(sorted(pks), 500):
        for pk, labeller, adjudicates, *content in connection.execute(query.where(LabelRow.trace_pk.in_(batch))):
            _set_latest(latest.setdefault(pk, {}), (labeller, adjudicates), tuple(content))
    return latest


def _decide(connection: Connection, standing: dict[int, _Voices], now: datetime) -> None:
    for batch in batches(sorted(standing), 500):
        connection.execute(sa.delete(GoldRow).where(GoldRow.trace_pk.in_(batch)))
    rows = []
    for pk, voices in standing.items():
        gold, labellers = _gold_of(voices)
        rows.append({"trace_pk": pk, "verdict": gold, "labellers": labellers, "decided_at": now})
    connection.execute(insert(table(GoldRow)), rows)


def _gold_of(voices: _Voices) -> tuple[GoldVerdict | None, int]:
    """The gold verdict that follows from the latest labels, and how many labellers they are of."""
    verdicts = [content[0] for (_, adjudicates), content in voices.items() if not adjudicates]
    adjudicated = [content[0] for (_, adjudicates), content in voices.items() if adjudicates]
    gold = resolve_gold(verdicts, adjudicated=adjudicated[-1] if adjudicated else None)
    return gold, len({labeller for labeller, _ in voices})


def _kinds_of(voices: Mapping[tuple[str, bool], set[str]]) -> set[str]:
    """From the kinds of each voice on a trace, the latest last."""
    last = [kinds for (_, adjudicates), kinds in voices.items() if adjudicates][-1:]
    return last[0] if last and last[0] else set().union(*(kinds for (_, by), kinds in voices.items() if not by))


def gold_of(connection: Connection, pks: Iterable[int]) -> dict[int, tuple[GoldVerdict | None, int]]:
    """The gold verdict of each labelled trace of these, and how many labelled it, from the labels themselves."""
    return {pk: _gold_of(voices) for pk, voices in _latest(connection, pks).items()}


def _reading(rows: Sequence[Any]) -> Reading:
    """From every label of one trace, oldest first."""
    first = rows[0]
    verdicts = {row.labeller: row.verdict for row in rows if not row.adjudicates}
    last = next((row for row in reversed(rows) if row.adjudicates), None)
    adjudicated, by = (None, None) if last is None else (last.verdict, last.labeller)
    trace = (first.id, first.trace_id, first.source_group, first.gold)
    return Reading(*trace, verdicts, adjudicated, by, bool(first.purged))
