"""Questions about releases that wait for a second person, or waited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, RowMapping, insert, select, update

from calibrate.types import Tier
from db.engine import MOST, Aggregate, writing
from db.tables import ProposalRow, table

Decided = Literal["approved", "declined"]


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """What somebody asks to release: saved points of `detectors` (None: of all that have one) and saved `ensembles`.

    `tiers` are those that shall differ from the live release's. The `reason` says why points may be worse than the live
    ones on the same labels.
    """

    detectors: Sequence[str] | None = None
    ensembles: Sequence[str] = ()
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    note: str = ""
    reason: str = ""
    by: str

    @property
    def full_note(self) -> str:
        """The note with the reason in it: who reads only notes must not miss what is worse on purpose."""
        return "\n".join(filter(None, [self.note, f"Reason: {self.reason}" if self.reason else ""]))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A request that waits for a second person: it was made to be release `expected`, which would hold `content` (a
    digest). `outcome` is None until somebody decides; `version` is the release it became."""

    id: int
    request: ReleaseRequest
    expected: int
    content: str
    outcome: Decided | None
    version: int | None
    proposed_by: str
    proposed_at: datetime
    decided_by: str | None
    decided_at: datetime | None


class Proposals(Aggregate):
    def add(self, request: ReleaseRequest, *, expected: int, content: str, now: datetime) -> Proposal:
        document = {
            "detectors": None if request.detectors is None else list(request.detectors),
            "ensembles": list(request.ensembles),
            "tiers": dict(request.tiers),
            "note": request.note,
            "reason": request.reason,
            "version": expected,
            "content": content,
        }
        row = {"wanted": document, "proposed_by": request.by, "proposed_at": now}
        with writing(self._engine) as connection:
            (key,) = connection.execute(insert(ProposalRow).values(row)).inserted_primary_key or (0,)
        return Proposal(key, request, expected, content, None, None, request.by, now, None, None)

    def get(self, key: int) -> Proposal | None:
        if key > MOST:
            return None
        with self._reading() as connection:
            row = connection.execute(select(table(ProposalRow)).where(ProposalRow.id == key)).mappings().one_or_none()
        return _proposal(row) if row else None

    def list(self, *, waiting: bool = False, limit: int = 100) -> list[Proposal]:
        """Newest first; only those that wait, or all."""
        query = select(table(ProposalRow)).order_by(ProposalRow.id.desc()).limit(limit)
        if waiting:
            query = query.where(ProposalRow.outcome.is_(None))
        with self._reading() as connection:
            return [_proposal(row) for row in connection.execute(query).mappings()]

    def decline(self, key: int, *, by: str, now: datetime) -> bool:
        """False where somebody has decided already."""
        with writing(self._engine) as connection:
            return decide(connection, key, "declined", by=by, now=now)


def _proposal(row: RowMapping) -> Proposal:
    columns = {name: value for name, value in row.items() if name != "wanted"}
    document = dict(row["wanted"])
    expected, content = document.pop("version"), document.pop("content")
    request = ReleaseRequest(**document, by=row["proposed_by"])
    return Proposal(request=request, expected=expected, content=content, **columns)


def decide(
    connection: Connection, key: int, outcome: Decided, *, by: str, now: datetime, version: int | None = None
) -> bool:
    """Decides once, within the caller's transaction; False where somebody has decided already."""
    waits = (ProposalRow.id == key, ProposalRow.outcome.is_(None))
    values = {"outcome": outcome, "decided_by": by, "decided_at": now, "version": version}
    return connection.execute(update(ProposalRow).where(*waits).values(values)).rowcount == 1
