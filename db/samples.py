"""Samples: store one, extend it, list its members in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from calibrate.errors import BadInput
from calibrate.types import Member, Sample, SampleOptions, TraceFilter
from db.audit import record as audit
from db.engine import Aggregate, insert_row
from db.tables import GoldRow, MemberRow, SampleRow, TraceRow, table
from db.tables.filters import gold_of_member
from db.tables.mapping import sample_of


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member by its trace's id; `gold` is None while nobody has labelled it, "purged" where nobody can any more."""

    trace_id: str
    stratum: str
    inclusion_probability: float
    gold: str | None


class Samples(Aggregate):
    def add(
        self,
        name: str,
        *,
        design: str,
        by: str | None,
        seed: int,
        pool: int,
        undated: int,
        where: TraceFilter,
        strata: Mapping[str, tuple[int, int]],
        members: Sequence[Member],
        now: datetime,
        options: SampleOptions | None = None,
    ) -> Sample:
        """Stores a sample with its members. Raises BadInput when the name is taken."""
        row = {
            "name": name,
            "design": design,
            "by": by,
            "size": len(members),
            "seed": seed,
            "pool": pool,
            "undated": undated,
            "filter": where.to_json(),
            "strata": {key: list(value) for key, value in strata.items()},
            "options": (options.to_json() or None) if options else None,
            "created_at": now,
        }
        taken = BadInput(f"there is a sample {name!r} already; choose another name, or go on labelling that one")
        if self.get(name) is not None:
            raise taken
        with self._writing() as connection:
            try:
                sample_id = insert_row(connection, SampleRow, row)
            except IntegrityError:  # somebody drew it in this moment
                raise taken from None
            connection.execute(insert(table(MemberRow)), _rows(sample_id, members, first=0))
            audit(
                connection, "sample drawn", name, after={name: row[name] for name in ("design", "size", "pool", "seed")}
            )
        return self._named(name)

    def extend(
        self,
        sample: Sample,
        members: Sequence[Member],
        *,
        strata: Mapping[str, tuple[int, int]],
        options: SampleOptions,
    ) -> Sample:
        """Adds members after those of a sample, and updates the strata and inclusion probabilities of all.

        All in one transaction. Raises BadInput when somebody else has extended it since it was read.
        """
        changed = {
            "size": sample.size + len(members),
            "strata": {key: list(value) for key, value in strata.items()},
            "options": options.to_json(),
        }
        same = (SampleRow.id == sample.id, SampleRow.size == sample.size)
        with self._writing() as connection:
            if not connection.execute(update(SampleRow).where(*same).values(changed)).rowcount:
                raise BadInput(f"somebody topped up {sample.name!r} in this moment: look at it again first")
            for stratum, (population, drawn) in strata.items():
                inside = (MemberRow.sample_id == sample.id, MemberRow.stratum == stratum)
                chance = {"inclusion_probability": drawn / population}
                connection.execute(update(MemberRow).where(*inside).values(chance))
            connection.execute(insert(table(MemberRow)), _rows(sample.id, members, first=sample.size))
            before, after = {"size": sample.size}, {"size": changed["size"]}
            audit(connection, "sample topped up", sample.name, before=before, after=after)
        return self._named(sample.name)

    def restate(
        self,
        sample: Sample,
        *,
        design: str,
        pool: int,
        undated: int,
        where: TraceFilter,
        stratum: str,
        options: SampleOptions,
    ) -> Sample:
        """Gives a sample another design, with one stratum of all its members. Raises BadInput when somebody else has
        changed it since it was read."""
        changed = {
            "design": design,
            "pool": pool,
            "undated": undated,
            "filter": where.to_json(),
            "strata": {stratum: [pool, sample.size]},
            "options": options.to_json(),
        }
        same = (SampleRow.id == sample.id, SampleRow.size == sample.size, SampleRow.design == sample.design)
        members = {"stratum": stratum, "inclusion_probability": sample.size / pool}
        with self._writing() as connection:
            if not connection.execute(update(SampleRow).where(*same).values(changed)).rowcount:
                raise BadInput(f"somebody changed {sample.name!r} in this moment: look at it again first")
            connection.execute(update(MemberRow).where(MemberRow.sample_id == sample.id).values(members))
        return self._named(sample.name)

    def get(self, name: str) -> Sample | None:
        return next(iter(self._records(sample_of, select(table(SampleRow)).where(SampleRow.name == name))), None)

    def list(self) -> list[Sample]:
        """Newest first."""
        return self._records(sample_of, select(table(SampleRow)).order_by(SampleRow.id.desc()))

    def members(self, sample_id: int) -> Sequence[Member]:
        """In labelling order."""
        query = select(MemberRow.trace_pk, MemberRow.inclusion_probability, MemberRow.stratum)
        query = query.where(MemberRow.sample_id == sample_id).order_by(MemberRow.position)
        return [Member(*row) for row in self._rows(query)]

    def lines(self, sample_id: int) -> Sequence[MemberLine]:
        """The members by trace id, in labelling order."""
        columns = (TraceRow.trace_id, MemberRow.stratum, MemberRow.inclusion_probability, gold_of_member())
        query = select(*columns).select_from(MemberRow).join(TraceRow, TraceRow.id == MemberRow.trace_pk)
        query = query.outerjoin(GoldRow, GoldRow.trace_pk == MemberRow.trace_pk)
        query = query.where(MemberRow.sample_id == sample_id).order_by(MemberRow.position)
        return [MemberLine(*row) for row in self._rows(query)]

    def verdicts(self, sample_id: int) -> Sequence[tuple[int, str | None]]:
        """(trace key, gold) of the members, in labelling order; None while nobody has labelled one, "purged" where
        nobody can any more."""
        query = select(MemberRow.trace_pk, gold_of_member()).select_from(MemberRow)
        query = query.join(TraceRow, TraceRow.id == MemberRow.trace_pk).outerjoin(
            GoldRow, GoldRow.trace_pk == MemberRow.trace_pk
        )
        query = query.where(MemberRow.sample_id == sample_id).order_by(MemberRow.position)
        return [(pk, gold) for pk, gold in self._rows(query)]

    def at(self, sample_id: int, position: int) -> int | None:
        """The key of the trace at this place of the sample."""
        query = select(MemberRow.trace_pk).where(MemberRow.sample_id == sample_id, MemberRow.position == position)
        return self._scalar(query)

    def keys(self, sample_id: int) -> Sequence[tuple[int, str]]:
        """(trace key, content hash) of the members, in labelling order."""
        query = select(MemberRow.trace_pk, TraceRow.content_hash).join(TraceRow, TraceRow.id == MemberRow.trace_pk)
        return self._rows(query.where(MemberRow.sample_id == sample_id).order_by(MemberRow.position))

    def _named(self, name: str) -> Sample:
        sample = self.get(name)
        assert sample is not None
        return sample


def _rows(sample_id: int, members: Sequence[Member], *, first: int) -> Sequence[Mapping[str, Any]]:
    return [
        {
            "sample_id": sample_id,
            "position": position,
            "trace_pk": member.trace_pk,
            "inclusion_probability": member.inclusion_probability,
            "stratum": member.stratum,
        }
        for position, member in enumerate(members, first)
    ]
