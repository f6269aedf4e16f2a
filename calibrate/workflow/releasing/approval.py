"""Approval: where a team requires it, one person proposes a release and another makes it.

Exactly what was approved is released: the candidate is built again from the stored request, and must equal the proposed
one, against the same live release. Rolling back needs no approval (see `release.rollback`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from calibrate.errors import BadInput, Forbidden
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.signing import Signer
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.release import Out
from db import Store
from db.audit import actor
from db.engine import Transaction
from db.points import SavedPoint
from db.releases import Proposal, Release, ReleaseRequest, decide

APPROVED_BY = "x-approved-by"


class Overtaken(NamedTuple):
    """A proposal that waited to become `version`, when something else was released as that."""

    proposal: int
    by: str
    version: int


def propose(
    store: Store,
    request: ReleaseRequest,
    *,
    now: datetime,
    expect: int | None = None,
    points: Mapping[str, SavedPoint] | None = None,
) -> Proposal:
    """Store a release for a second person to approve.

    Raises BadInput if it could not be released, or if the same proposal waits already, and Forbidden under a name that
    was typed at a page: whoever typed it could approve under their own.
    """
    person = actor()
    if person is not None and person.how in ("typed", "unstated"):
        raise Forbidden(
            f"{request.by} is a name that was typed in, and who approves must be another person than who proposes: "
            "sign in, or let a proxy name you (docs/how-to/team.md), or propose under your own login name"
        )
    previous = history.live_release(store)
    version = previous.version + 1 if previous else 1
    if expect is not None and version != expect:
        raise BadInput(f"version {version - 1} was released in the meantime: look at what it changed, then go on")
    file = releasing.prepare(store, request, previous=previous, now=now, points=points)
    content = _compute_digest(file)
    for proposal in waiting(store):
        if (proposal.content, proposal.expected) == (content, version):
            raise BadInput(
                f"proposal {proposal.id} by {proposal.proposed_by} holds the same and waits: approve or decline it"
            )
    exact = replace(request, detectors=sorted(file.detectors), ensembles=sorted(set(request.ensembles)))
    return store.proposals.add(exact, expected=version, content=content, now=now)


def approve(store: Store, key: int, *, by: str, now: datetime, out: Out | None = None, sign: Signer = None) -> Release:
    """Release a proposal in its author's name; `x-approved-by` names the person who approved it.

    Raises BadInput for one that is decided and one that would no longer release what it held, and Forbidden for one's
    own and where nobody but the person says who they are.
    """
    proposal = _get_waiting(store, key)
    if same_person(by, proposal.proposed_by):
        raise Forbidden(f"proposal {key} is your own ({by}): somebody else approves it, or you decline it")
    check_verified(by)

    def make(version: int, previous: ThresholdsFile | None) -> ThresholdsFile:
        file = _rebuild(store, proposal, version, previous, now)
        return replace(file, extra={**file.extra, APPROVED_BY: by})

    def settles(connection: Transaction, version: int) -> None:
        if not decide(connection, key, "approved", by=by, now=now, version=version):
            raise _already_decided(store.proposals.get(key) or proposal)

    request = proposal.request
    author, note = request.by, request.full_note
    return releasing.publish(store, make, by=author, note=note, now=now, out=out, settles=settles, sign=sign)


def check_verified(name: str) -> None:
    """Raises Forbidden where a name was only typed in: it would make approval a formality."""
    person = actor()
    if person is not None and not person.verified:
        raise Forbidden(
            f"{name} is a name that was typed in, and approval needs a person who is known: sign in, or let a proxy "
            "name you (docs/how-to/team.md), or approve under your own login name, without TOUCHSTONE_USER"
        )


def same_person(first: str, second: str) -> bool:
    """Whether two names are of the same person: blanks and capitals do not count."""
    first, second = (" ".join(name.split()).casefold() for name in (first, second))
    return first == second


def decline(store: Store, key: int, *, by: str, now: datetime) -> Proposal:
    """Decline a proposal, or withdraw one's own. Raises BadInput for one that is decided."""
    waits = _get_waiting(store, key)
    is_declined = store.proposals.decline(key, by=by, now=now)
    proposal = store.proposals.get(key) or waits
    if not is_declined:
        raise _already_decided(proposal)
    return proposal


def waiting(store: Store) -> list[Proposal]:
    """The proposals that nobody has decided, newest first."""
    return store.proposals.list(waiting=True)


def overtaken(store: Store, version: int) -> list[Overtaken]:
    """The proposals that waited to become this version, and no longer can."""
    past = (proposal for proposal in waiting(store) if proposal.expected == version)
    return [Overtaken(proposal.id, proposal.proposed_by, version) for proposal in past]


def preview(store: Store, proposal: Proposal, now: datetime) -> ThresholdsFile:
    """Build what a proposal would release now. Raises BadInput if that is no longer what it held."""
    previous = history.live_release(store)
    return _rebuild(store, proposal, previous.version + 1 if previous else 1, previous, now)


def outlived(store: Store, proposal: Proposal, now: datetime) -> str | None:
    """Why a proposal can no longer be approved, and what to do; None where it can."""
    try:
        preview(store, proposal, now)
    except BadInput as error:
        return str(error)
    return None


def _rebuild(
    store: Store, proposal: Proposal, version: int, previous: ThresholdsFile | None, now: datetime
) -> ThresholdsFile:
    if version != proposal.expected:
        raise BadInput(
            f"v{version - 1} was released after proposal {proposal.id} was made: take it back or decline it, and "
            f"propose it anew against v{version - 1}"
        )
    file = releasing.prepare(store, proposal.request, previous=previous, now=now)
    if _compute_digest(file) != proposal.content:
        raise BadInput(
            f"points or ensembles have changed since proposal {proposal.id} was made: decline it and propose it anew"
        )
    return file


def _compute_digest(file: ThresholdsFile) -> str:
    return digest_of(history.content(file))


def _get_waiting(store: Store, key: int) -> Proposal:
    proposal = store.proposals.get(key)
    if proposal is None:
        keys = ", ".join(str(each.id) for each in waiting(store))
        raise BadInput(f"there is no proposal {key}; {f'waiting: {keys}' if keys else 'none is waiting'}")
    if proposal.outcome is not None:
        raise _already_decided(proposal)
    return proposal


def _already_decided(proposal: Proposal) -> BadInput:
    release = f" as v{proposal.version}" if proposal.version else ""
    return BadInput(
        f"proposal {proposal.id} was {proposal.outcome or 'decided'}{release} by {proposal.decided_by} already"
    )
