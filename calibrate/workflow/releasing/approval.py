"""Approval: where it is asked for, a release is proposed by one person and made by another.

What was approved is what is released: the candidate is made again from what was asked for, and must hold exactly what
the proposal held, against the same live release. Rolling back needs no approval (see `release.rollback`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from calibrate.errors import BadInput
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Tier
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.release import Out
from db import Store
from db.proposals import Proposal, decide
from db.releases import Release

APPROVED_BY = "x-approved-by"


def propose(
    store: Store,
    *,
    detectors: Collection[str] | None = None,
    ensembles: Collection[str] = (),
    tiers: Mapping[str, Tier] | None = None,
    note: str,
    by: str,
    now: datetime,
    reason: str = "",
    expect: int | None = None,
) -> Proposal:
    """Keeps a release for a second person to approve. Raises BadInput where it could not be released, or where the very
    same is waiting already."""
    before = history.live_release(store)
    version = before.version + 1 if before else 1
    if expect is not None and version != expect:
        raise BadInput(f"version {version - 1} was released in the meantime: look at what it changed, then go on")
    asked: dict[str, Any] = {"ensembles": sorted(set(ensembles)), "note": note, "reason": reason}
    file = releasing.prepared(
        store,
        detectors=detectors,
        tiers=tiers,
        by=by,
        now=now,
        version=version,
        before=before,
        **asked,
    )
    wanted = {
        **asked,
        "detectors": sorted(file.detectors),
        "tiers": dict(tiers or {}),
        "version": version,
        "content": _digest(file),
    }
    for one in waiting(store):
        if (one.wanted["content"], one.wanted["version"]) == (wanted["content"], version):
            raise BadInput(f"proposal {one.id} by {one.proposed_by} holds the same and waits: approve or decline it")
    return store.proposals.add(wanted, by=by, now=now)


def approve(store: Store, key: int, *, by: str, now: datetime, out: Out | None = None) -> Release:
    """Releases what was proposed, in the name of who proposed it; `x-approved-by` says who approved.

    Raises BadInput for one's own proposal, one that is decided, and one that would no longer release what it held.
    """
    one = _waiting(store, key)
    if same_person(by, one.proposed_by):
        raise BadInput(f"proposal {key} is your own ({by}): somebody else approves it, or you decline it")

    def make(version: int, before: ThresholdsFile | None) -> ThresholdsFile:
        file = _rebuilt(store, one, version, before, now)
        return replace(file, extra={**file.extra, APPROVED_BY: by})

    def settles(connection: Connection, version: int) -> None:
        if not decide(connection, key, "approved", by=by, now=now, version=version):
            raise _decided(store, key)

    note = releasing.noted(one.wanted["note"], one.wanted["reason"])
    return releasing.publish(store, make, by=one.proposed_by, note=note, now=now, out=out, settles=settles)


def same_person(one: str, other: str) -> bool:
    """Whether two names are of one person: neither blanks nor capitals make another."""
    first, second = (" ".join(name.split()).casefold() for name in (one, other))
    return first == second


def decline(store: Store, key: int, *, by: str, now: datetime) -> Proposal:
    """Turns a proposal down, or takes one's own back. Raises BadInput for one that is decided."""
    _waiting(store, key)
    if not store.proposals.decline(key, by=by, now=now):
        raise _decided(store, key)
    found = store.proposals.get(key)
    assert found is not None
    return found


def waiting(store: Store) -> list[Proposal]:
    """The proposals that nobody has decided, newest first."""
    return store.proposals.list(waiting=True)


def preview(store: Store, one: Proposal, now: datetime) -> ThresholdsFile:
    """What a proposal would release now. Raises BadInput where that is no longer what it held."""
    before = history.live_release(store)
    return _rebuilt(store, one, before.version + 1 if before else 1, before, now)


def outlived(store: Store, one: Proposal, now: datetime) -> str | None:
    """Why a proposal can no longer be approved, and what to do; None where it can."""
    try:
        preview(store, one, now)
    except BadInput as error:
        return str(error)
    return None


def _rebuilt(store: Store, one: Proposal, version: int, before: ThresholdsFile | None, now: datetime) -> ThresholdsFile:
    wanted = one.wanted
    if version != wanted["version"]:
        raise BadInput(
            f"v{version - 1} was released after proposal {one.id} was made: take it back or decline it, and propose it "
            f"anew against v{version - 1}"
        )
    asked = {name: wanted[name] for name in ("detectors", "ensembles", "tiers", "note", "reason")}
    file = releasing.prepared(store, **asked, by=one.proposed_by, now=now, version=version, before=before)
    if _digest(file) != wanted["content"]:
        raise BadInput(
            f"points or ensembles have changed since proposal {one.id} was made: decline it and propose it anew"
        )
    return file


def _digest(file: ThresholdsFile) -> str:
    return digest_of(history.content(file))


def _waiting(store: Store, key: int) -> Proposal:
    found = store.proposals.get(key)
    if found is None:
        known = ", ".join(str(one.id) for one in waiting(store))
        raise BadInput(f"there is no proposal {key}; {f'waiting: {known}' if known else 'none is waiting'}")
    if found.outcome is not None:
        raise _decided(store, key)
    return found


def _decided(store: Store, key: int) -> BadInput:
    one = store.proposals.get(key)
    assert one is not None
    became = f" as v{one.version}" if one.version else ""
    return BadInput(f"proposal {key} was {one.outcome or 'decided'}{became} by {one.decided_by} already")
