"""Answers of labellers: each counts once, and none takes the place of a label that its labeller has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from calibrate.errors import BadInput
from calibrate.types import VERDICTS, Label
from db.audit import record as audit
from db.engine import Aggregate, serialise
from db.labelling.guides import under_guide
from db.labels import append, gold_of, with_names
from db.tables import LabelRow, MemberRow
from db.tables.mapping import batches, label_of


@dataclass(frozen=True, slots=True)
class Standing:
    """A labeller's latest label on a trace, and its key."""

    key: int
    label: Label


class Answers(Aggregate):
    def add(
        self, pk: int, label: Label, *, sample_id: int | None, seen: int | None, now: datetime
    ) -> tuple[Standing, bool]:
        """Appends the label if `seen` is the key of its labeller's latest label on the trace, None: of none.

        Returns the label that stands then, and whether this one counts. It counts once however often it is sent: one
        that repeats a label newer than `seen` adds nothing. Where another one came meanwhile, it does not count.

        A label that adjudicates is held against the adjudications of the trace, whoever made them: they decide for all.
        Raises BadInput for one of a trace that nobody has labelled.
        """
        if label.verdict not in VERDICTS:
            raise BadInput(f"a verdict is one of {', '.join(VERDICTS)}, not {label.verdict!r}")
        with self._writing() as connection:
            serialise(connection)
            if label.adjudicates:
                mine: tuple[Any, ...] = (LabelRow.trace_pk == pk, LabelRow.adjudicates.is_(True))
                was = gold_of(connection, [pk]).get(pk)
                if was is None:
                    raise BadInput("nobody has labelled this trace yet: label it first, there is nothing to decide")
            else:
                mine = (LabelRow.trace_pk == pk, LabelRow.labeller == label.labeller, LabelRow.adjudicates.is_(False))
            query = with_names(*mine).order_by(LabelRow.id)
            before = [_standing(row) for row in connection.execute(query)]
            newer = [standing for standing in before if standing.key > (seen or 0)]
            if repeated := [standing for standing in newer if _content(standing.label) == _content(label)]:
                return repeated[-1], True
            if newer:
                return newer[-1], False
            append(connection, [(pk, under_guide(connection, label))], sample_id=sample_id, now=now)
            if label.adjudicates:  # a labeller's own labels are a log already
                gold = {"gold": was[0] if was else None}, {"gold": label.verdict}
                audit(connection, "dispute settled", label.trace_id, by=label.labeller, before=gold[0], after=gold[1])
            return [_standing(row) for row in connection.execute(query)][-1], True

    def standing(self, pks: Sequence[int], labeller: str) -> dict[int, Standing]:
        """This labeller's latest label on each of these traces; traces without one are left out."""
        latest: dict[int, Standing] = {}
        with self._reading() as connection:
            for batch in batches(list(pks), 500):
                mine = (LabelRow.trace_pk.in_(batch), LabelRow.labeller == labeller, LabelRow.adjudicates.is_(False))
                for row in connection.execute(with_names(*mine).order_by(LabelRow.id)):
                    latest[row.trace_pk] = _standing(row)
        return latest

    def decided(self, pks: Sequence[int]) -> dict[int, Standing]:
        """The latest adjudication of each of these traces, whoever made it; traces without one are left out."""
        latest: dict[int, Standing] = {}
        with self._reading() as connection:
            for batch in batches(list(pks), 500):
                query = with_names(LabelRow.trace_pk.in_(batch), LabelRow.adjudicates.is_(True))
                for row in connection.execute(query.order_by(LabelRow.id)):
                    latest[row.trace_pk] = _standing(row)
        return latest

    def labelled_by(self, sample_id: int, labeller: str, *, limit: int) -> list[int]:
        """The keys of the sample's traces that this labeller has labelled, in the order of their latest labels; the
        last `limit` of them."""
        members = select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id)
        query = select(LabelRow.trace_pk).where(LabelRow.labeller == labeller, LabelRow.trace_pk.in_(members))
        newest = query.group_by(LabelRow.trace_pk).order_by(func.max(LabelRow.id).desc()).limit(limit)
        return list(self._scalars(newest))[::-1]


def _standing(row: Any) -> Standing:
    return Standing(row.id, label_of(**row._mapping))


def _content(label: Label) -> tuple[Any, ...]:
    return (label.labeller, label.verdict, label.kinds, label.spans, label.note, label.seconds)
