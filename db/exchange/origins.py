"""Where answers came from: which pulls brought each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection, select

from calibrate.types import TraceFilter
from db.engine import Aggregate
from db.tables import OriginRow, PulledRow, TraceRow
from db.tables.bulk import among, upsert
from db.tables.filters import conditions
from db.tables.mapping import batches


class Origins(Aggregate):
    def note(self, pull: str, system: str, trace_ids: Sequence[str]) -> None:
        """Keep that a pull has these answers; those that are not in the store are passed over."""
        with self._writing() as connection:
            origin = _origin(connection, pull, system)
            for batch in batches(sorted(set(trace_ids)), 1000):
                keys = connection.scalars(select(TraceRow.id).where(among(connection, TraceRow.trace_id, batch)))
                rows = [{"origin_id": origin, "trace_pk": pk} for pk in keys]
                if rows:
                    connection.execute(upsert(connection, PulledRow), rows)

    def ids(self, pull: str, system: str, where: TraceFilter, *, chunk: int = 900) -> Iterator[list[str]]:
        """The ids of the matching traces that a pull has, in key order, without those that were purged."""
        last = 0
        query = select(TraceRow.id, TraceRow.trace_id).join(PulledRow, PulledRow.trace_pk == TraceRow.id)
        query = query.join(OriginRow, OriginRow.id == PulledRow.origin_id)
        query = query.where(OriginRow.pull == pull, OriginRow.system == system, *conditions(where))
        query = query.where(TraceRow.purged_at.is_(None)).order_by(PulledRow.trace_pk).limit(chunk)
        while rows := self._rows(query.where(PulledRow.trace_pk > last)):
            yield [trace_id for _, trace_id in rows]
            last = rows[-1][0]

    def systems(self, pks: Sequence[int]) -> Mapping[int, frozenset[str]]:
        """The systems from which each of these traces was pulled, for those that were."""
        query = select(PulledRow.trace_pk, OriginRow.system).join(OriginRow, OriginRow.id == PulledRow.origin_id)
        systems: defaultdict[int, set[str]] = defaultdict(set)
        for batch in batches(pks, 900):
            for pk, system in self._rows(query.where(PulledRow.trace_pk.in_(batch))):
                systems[pk].add(system)
        return {pk: frozenset(names) for pk, names in systems.items()}


def _origin(connection: Connection, pull: str, system: str) -> int:
    this_one = select(OriginRow.id).where(OriginRow.pull == pull, OriginRow.system == system)
    if (origin := connection.scalar(this_one)) is not None:
        return origin
    connection.execute(upsert(connection, OriginRow), [{"pull": pull, "system": system}])
    return connection.execute(this_one).scalar_one()
