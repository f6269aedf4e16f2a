"""Release: the saved operating points become the next version of the thresholds file, or an old version comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from calibrate.errors import BadInput, TouchstoneError
from calibrate.thresholds import diff, files
from calibrate.thresholds.model import ThresholdsFile, from_json
from calibrate.types import Strength, Tier
from calibrate.workflow.certification.attempts import overturned
from calibrate.workflow.releasing import offer, regression_guard
from calibrate.workflow.releasing.candidate import candidate as candidate
from calibrate.workflow.releasing.history import content, read_release
from db import Store
from db.releases import Release

Out = Path | str
"""Where a thresholds file goes: a path, or a URL that fsspec writes ("s3://…")."""


def release(
    store: Store,
    *,
    detectors: Collection[str] | None = None,
    ensembles: Collection[str] = (),
    tiers: Mapping[str, Tier] | None = None,
    note: str,
    by: str,
    now: datetime,
    out: Out | None = None,
    expect: int | None = None,
    reason: str = "",
) -> Release:
    """Releases version n+1: in the store and, with `out`, as a file. Both or neither.

    With `expect`, nothing is released when the next version is another one: somebody released since the caller looked.
    Raises BadInput where nothing changes, and without a `reason` where a point is worse than the live one on the same
    labels; a reason is kept in the note and as `x-reason`.
    """

    def make(version: int, before: ThresholdsFile | None) -> ThresholdsFile:
        return prepared(
            store,
            detectors=detectors,
            ensembles=ensembles,
            tiers=tiers,
            note=note,
            by=by,
            now=now,
            reason=reason,
            version=version,
            before=before,
        )

    return publish(store, make, by=by, note=noted(note, reason), now=now, out=out, expect=expect)


def prepared(
    store: Store,
    *,
    detectors: Collection[str] | None,
    ensembles: Collection[str],
    tiers: Mapping[str, Tier] | None,
    note: str,
    by: str,
    now: datetime,
    reason: str,
    version: int,
    before: ThresholdsFile | None,
) -> ThresholdsFile:
    """The candidate, once it may be released: it changes something, and nothing gets worse without a reason."""
    file = candidate(
        store,
        detectors=detectors,
        ensembles=ensembles,
        tiers=tiers,
        note=noted(note, reason),
        by=by,
        now=now,
        version=version,
        replaces=before.version if before else None,
        before=before,
        reason=reason,
    )
    if before is not None:
        if not diff(before, file):
            raise BadInput(f"nothing changes against v{before.version}: save another point, or change a tier")
        if not reason:
            regression_guard.hold(store, before, file)
    return file


def publish(
    store: Store,
    make: Callable[[int, ThresholdsFile | None], ThresholdsFile],
    *,
    by: str,
    note: str,
    now: datetime,
    out: Out | None = None,
    expect: int | None = None,
    settles: Callable[[Connection, int], None] | None = None,
) -> Release:
    """Keeps what `make(version, live release)` gives as the next version, and writes it to `out`.

    A file is written beside `out` before the store commits and renamed after, so a full disk releases nothing. A
    process killed between the two leaves the version in the store, and so does a URL that cannot be written; `again`
    writes its file. `settles` is of `db.releases.Releases.adding`.
    """

    def document(version: int, previous: str | None) -> str:
        if expect is not None and version != expect:
            raise BadInput(f"version {version - 1} was released in the meantime: look at what it changed, then go on")
        file = make(version, from_json(json.loads(previous)) if previous is not None else None)
        made.append(file)
        return files.render(file)

    if out is not None and files.scheme_of(str(out)) is not None:
        out = _writable(str(out))
    made: list[ThresholdsFile] = []
    staged: list[files.Staged] = []
    with ExitStack() as leftovers:  # takes the temporary file away should the store refuse
        with store.releases.adding(document, by=by, note=note, now=now, settles=settles) as row:
            if out is not None and files.scheme_of(str(out)) is None:
                staged.append(leftovers.enter_context(files.stage(made[0], out)))
        for pending in staged:
            _put(pending.commit, row.version)
        if out is not None and not staged:
            _put(lambda: files.deliver(row.document.encode(), str(out)), row.version)
    return row


def _put(write: Callable[[], None], version: int) -> None:
    try:
        write()
    except TouchstoneError as error:
        raise TouchstoneError(
            f"version {version} is in the store, but not in its place as a file: {error}. "
            f"`release --again {version}` writes it"
        ) from error


def _writable(url: str) -> str:
    """Refuses a URL that nobody can write before anything is released; a file:// URL is a path."""
    if files.scheme_of(url) == "file":
        return files.local_path(url)
    if files.scheme_of(url) in ("http", "https"):
        raise BadInput(
            f"{files.redact_url(url)}: over HTTP a thresholds file is read, not written; give a path or s3:// URL"
        )
    files.filesystem(url)
    return url


def rollback(
    store: Store,
    version: int,
    *,
    note: str = "",
    by: str,
    now: datetime,
    out: Out | None = None,
    expect: int | None = None,
    reason: str = "",
) -> Release:
    """Releases an earlier version anew, as version n+1: equal to it in all but `OF_ITS_OWN`, so it decides the same.

    What it was made from is on offer again with it (`offer.said` tells), so the next release starts from there. A
    `reason` is kept in the note.

    Neither the guard nor a second person stands in its way: all it can bring back was live before, and whoever is woken
    by a bad release must be able to take it back alone, at once. Raises BadInput for a version that is not there, or
    that is live already.
    """
    row = _get(store, version)
    old = read_release(row)

    def make(number: int, before: ThresholdsFile | None) -> ThresholdsFile:
        assert before is not None
        if content(old) == content(before):
            raise BadInput(f"v{before.version} is live, and equal to v{version}: there is nothing to roll back")
        said = replace(old, version=number, released_at=now, released_by=by, note=told, replaces=before.version)
        assert content(said) == content(old)
        return said

    def settles(connection: Connection, _: int) -> None:
        offer.bring_back(connection, store, old, until=row.released_at)

    told = noted(note or f"Back to v{version}.", reason)
    return publish(store, make, by=by, note=told, now=now, out=out, expect=expect, settles=settles)


def again(store: Store, version: int, out: Out) -> Release:
    """Writes a version that was released before, byte for byte."""
    row = _get(store, version)
    files.deliver(row.document.encode(), str(out))
    return row


def stale(store: Store, file: ThresholdsFile) -> list[str]:
    """The certificates in a release whose labels have changed since."""
    said = (
        overturned(store, name, entry.guarantee)
        for name, entry in sorted(file.detectors.items())
        if entry.guarantee is not None and entry.guarantee.strength == "certified"
    )
    return [one for one in said if one]


def cautions(file: ThresholdsFile) -> list[str]:
    """What somebody who releases this should know: what would page people without a certified precision."""
    said = (caution(name, entry.tier, entry.strength) for name, entry in sorted(file.detectors.items()))
    paging = [name for name, entry in sorted(file.ensembles.items()) if entry.cuts.page is not None]
    return [one for one in said if one] + [
        f"the ensemble {name} pages people, and its precision is bounded, not certified: release it as signal "
        f"(`--tier {name}=signal`), or watch what it flags"
        for name in paging
    ]


def caution(name: str, tier: Tier, strength: Strength) -> str | None:
    """What to know before a detector goes into a tier; None where there is nothing to say."""
    if tier != "page" or strength == "certified":
        return None
    return (
        f"{name} pages people, and its precision is {strength}, not certified: certify it first (`certify {name}`, or "
        "the Tune page), or release it as signal"
    )


def noted(note: str, reason: str) -> str:
    """The note with the reason in it: what is worse on purpose must not be lost on those who read notes only."""
    return "\n".join(filter(None, [note, f"Reason: {reason}" if reason else ""]))


def _get(store: Store, version: int) -> Release:
    row = store.releases.get(version)
    if row is None:
        newest = store.releases.list(limit=1)
        known = str(newest[0].version) if newest else "none: nothing was released yet"
        raise BadInput(f"there is no release {version}; the newest is {known}")
    return row
