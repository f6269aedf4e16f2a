"""Releases, and requests for one that wait for a second person."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, func, insert, select, update

from calibrate.types import Tier
from db.audit import record as audit
from db.engine import MOST, Aggregate, insert_row, serialise
from db.tables import ProposalRow, ReleaseRow, table

Outcome = Literal["approved", "declined"]


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
        """The note with the reason, so that people who read only notes see what is worse on purpose."""
        return "\n".join(filter(None, [self.note, f"Reason: {self.reason}" if self.reason else ""]))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A request that waits for a second person: it was made to be release `expected`, which would hold `content` (a
    digest). `outcome` is None until somebody decides; `version` is the release it became."""

    id: int
    request: ReleaseRequest
    expected: int
    content: str
    outcome: Outcome | None
    version: int | None
    proposed_by: str
    proposed_at: datetime
    decided_by: str | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True)
class Release:
    """One numbered, immutable version of the thresholds file: `document` is its exact text."""

    version: int
    document: str
    sha256: str
    released_by: str
    released_at: datetime
    note: str


class Releases(Aggregate):
    @contextmanager
    def adding(
        self,
        make: Callable[[int, str | None], str],
        *,
        by: str,
        note: str,
        now: datetime,
        settles: Callable[[Connection, int], None] | None = None,
        verb: str = "released",
    ) -> Iterator[Release]:
        """Stores version n+1 when the body of the `with` succeeds; after an error in it nothing is stored.

        `make(version, previous document)` returns the document; it is called inside the transaction, so two releases
        at once get two numbers and each names the one it replaces. `settles(transaction, version)` writes what belongs
        to the release, in the same transaction. `verb` is what the audit log calls it.
        """
        with self._writing() as connection:
            serialise(connection)
            newest = select(ReleaseRow.version, ReleaseRow.document).order_by(ReleaseRow.version.desc()).limit(1)
            row = connection.execute(newest).one_or_none()
            version = row.version + 1 if row else 1
            document = make(version, row.document if row else None)
            release = Release(version, document, hashlib.sha256(document.encode()).hexdigest(), by, now, note)
            columns = ("version", "document", "sha256", "released_by", "released_at", "note")
            connection.execute(insert(ReleaseRow), [{name: getattr(release, name) for name in columns}])
            before = {"version": row.version} if row else None
            after = {"version": version, "sha256": release.sha256, "note": note, "released_by": by}
            audit(connection, verb, f"v{version}", by=by, before=before, after=after)
            if settles is not None:
                settles(connection, version)
            _note_overtaken(connection, version, by)
            yield release

    @contextmanager
    def holding(self) -> Iterator[Release | None]:
        """The newest release, and nobody can make another until the `with` ends: what its body writes is not overtaken.

        The lock is the store's own, so it goes with the process or connection that held it.
        """
        with self._writing() as connection:
            serialise(connection)
            query = select(table(ReleaseRow)).order_by(ReleaseRow.version.desc()).limit(1)
            row = connection.execute(query).mappings().one_or_none()
            yield None if row is None else Release(**row)

    def get(self, version: int) -> Release | None:
        if version > MOST:
            return None
        query = select(table(ReleaseRow)).where(ReleaseRow.version == version)
        return next(iter(self._records(Release, query)), None)

    def count(self) -> int:
        return self._scalar(select(func.count()).select_from(ReleaseRow)) or 0

    def list(self, limit: int | None = None) -> list[Release]:
        """Newest first."""
        return self._records(Release, select(table(ReleaseRow)).order_by(ReleaseRow.version.desc()).limit(limit))


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
        with self._writing() as connection:
            key = insert_row(connection, ProposalRow, row)
            after = {"version": expected, "detectors": document["detectors"], "note": request.full_note}
            audit(connection, "release proposed", f"proposal {key}", by=request.by, after=after)
        return Proposal(key, request, expected, content, None, None, request.by, now, None, None)

    def get(self, key: int) -> Proposal | None:
        if key > MOST:
            return None
        return next(iter(self._records(_proposal, select(table(ProposalRow)).where(ProposalRow.id == key))), None)

    def list(self, *, waiting: bool = False, limit: int = 100) -> list[Proposal]:
        """Newest first; only those that wait, or all."""
        query = select(table(ProposalRow)).order_by(ProposalRow.id.desc()).limit(limit)
        if waiting:
            query = query.where(ProposalRow.outcome.is_(None))
        return self._records(_proposal, query)

    def decline(self, key: int, *, by: str, now: datetime) -> bool:
        """False where somebody has decided already."""
        with self._writing() as connection:
            return decide(connection, key, "declined", by=by, now=now)


def _note_overtaken(connection: Connection, version: int, by: str) -> None:
    """Note of the proposals that wait to become this version that they no longer can."""
    waiting = select(ProposalRow.id, ProposalRow.wanted).where(ProposalRow.outcome.is_(None)).order_by(ProposalRow.id)
    for key, wanted in connection.execute(waiting).tuples().all():
        if wanted["version"] == version:
            audit(connection, "proposal overtaken", f"proposal {key}", by=by, after={"version": version})


def _proposal(wanted: Mapping[str, Any], proposed_by: str, **columns: Any) -> Proposal:
    document = dict(wanted)
    expected, content = document.pop("version"), document.pop("content")
    request = ReleaseRequest(**document, by=proposed_by)
    return Proposal(request=request, expected=expected, content=content, proposed_by=proposed_by, **columns)


def decide(
    connection: Connection, key: int, outcome: Outcome, *, by: str, now: datetime, version: int | None = None
) -> bool:
    """Decides once, within the caller's transaction; False where somebody has decided already."""
    waits = (ProposalRow.id == key, ProposalRow.outcome.is_(None))
    values = {"outcome": outcome, "decided_by": by, "decided_at": now, "version": version}
    if connection.execute(update(ProposalRow).where(*waits).values(values)).rowcount != 1:
        return False
    audit(connection, f"proposal {outcome}", f"proposal {key}", by=by, after={"version": version})
    return True
