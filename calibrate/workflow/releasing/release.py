"""Release: the saved operating points become the next version of the thresholds file, or an old version comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from calibrate.errors import BadInput, TouchstoneError
from calibrate.thresholds import diff, files, signing
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile, from_json
from calibrate.thresholds.signing import Signer
from calibrate.thresholds.states import Judged
from calibrate.types import SegmentThreshold
from calibrate.workflow.certification.attempts import Overturned, overturned
from calibrate.workflow.releasing import entries, known_bad, regression_guard
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.releasing.history import content, read_release
from db import Store
from db.engine import Transaction
from db.points import SavedPoint
from db.releases import Release, ReleaseRequest

Out = Path | str
"""Where a thresholds file goes: a path, or a URL that fsspec writes ("s3://…")."""


def release(
    store: Store,
    request: ReleaseRequest,
    *,
    now: datetime,
    out: Out | None = None,
    expect: int | None = None,
    points: Mapping[str, SavedPoint] | None = None,
    sign: Signer = None,
) -> Release:
    """Release version n+1: in the store and, with `out`, as a file. Both or neither.

    With `expect`, nothing is released if the next version is another one: somebody has released since the caller
    looked.
    `points` are released instead of the latest saved ones. Raises BadInput where nothing changes, and without a reason
    where a point is worse than the live one on the same labels or is known to be bad.
    """

    def make(_: int, previous: ThresholdsFile | None) -> ThresholdsFile:
        return prepare(store, request, previous=previous, now=now, points=points)

    return publish(store, make, by=request.by, note=request.full_note, now=now, out=out, expect=expect, sign=sign)


def prepare(
    store: Store,
    request: ReleaseRequest,
    *,
    previous: ThresholdsFile | None,
    now: datetime,
    points: Mapping[str, SavedPoint] | None = None,
) -> ThresholdsFile:
    """Build the candidate and check it: it changes something, and without a reason nothing gets worse and nothing goes
    out that is known to be bad."""
    points = store.points.latest() if points is None else points
    file = build_candidate(store, request, points=points, previous=previous, now=now)
    if previous is not None:
        if not diff(previous, file):
            raise BadInput(f"nothing changes against v{previous.version}: save another point, or change a tier")
        if not request.reason:
            regression_guard.hold(store, previous, file, points)
    known_bad.hold(file)
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
    settles: Callable[[Transaction, int], None] | None = None,
    verb: str = "released",
    sign: Signer = None,
) -> Release:
    """Store what `make(version, live release)` returns as the next version, and write it to `out`.

    A file is written beside `out` before the store commits and renamed after, so a full disk releases nothing. A
    process killed between the two leaves the version in the store, and so does a URL that cannot be written; `again`
    writes its file. Where somebody has released since, `out` gets the newest version: of two releases at once, the
    older one is never what stays there. `settles` and `verb` are of
    `db.releases.Releases.adding`.
    """

    def document(version: int, previous: str | None) -> str:
        if expect is not None and version != expect:
            raise BadInput(f"version {version - 1} was released in the meantime: look at what it changed, then go on")
        before = from_json(json.loads(previous)) if previous is not None else None
        file = _sign(make(version, before), before, sign)
        made_files.append(file)
        return files.render(file)

    if out is not None:
        out = files.check_place(str(out), store=store.file)
    made_files: list[ThresholdsFile] = []
    staged: list[files.Staged] = []
    with ExitStack() as leftovers:  # takes the temporary file away should the store refuse
        with store.releases.adding(document, by=by, note=note, now=now, settles=settles, verb=verb) as row:
            if out is not None and files.scheme_of(str(out)) is None:
                staged.append(leftovers.enter_context(files.stage(made_files[0], out)))
        if out is not None:
            _put(store, row, staged[0] if staged else None, str(out))
    return row


def _sign(file: ThresholdsFile, before: ThresholdsFile | None, sign: Signer) -> ThresholdsFile:
    """Sign a release. Raises BadInput where the one before it is signed and nobody said how this one is."""
    file = signing.without_signature(file)
    if sign is None and before is not None and signing.SIGNATURE in before.extra:
        raise BadInput(
            f"v{before.version} is signed, and no key is set here, so those who check signatures would refuse "
            f"v{file.version}: give `--sign KEYFILE` or set TOUCHSTONE_SIGN_KEY; `none` as the key releases it unsigned"
        )
    return file if sign is None or sign == "none" else signing.sign(file, sign)


def _put(store: Store, row: Release, staged: files.Staged | None, out: str) -> None:
    """Put the newest release in its place. Raises TouchstoneError, with the way to do it later, where that fails."""
    try:
        if staged is not None:
            _move(store, row, staged)
        else:
            _upload(store, row, out)
    except TouchstoneError as error:
        raise TouchstoneError(
            f"version {row.version} is in the store, but not in its place as a file: {error}. "
            f"`release --again {row.version}` writes it"
        ) from error


def _move(store: Store, row: Release, staged: files.Staged) -> None:
    """Move the file to its place while nobody else can release; the newest one, where somebody has."""
    with store.releases.holding() as newest:
        if newest is None or newest.version == row.version:
            staged.commit()
        else:
            files.deliver(newest.document.encode(), staged.path)


def _upload(store: Store, row: Release, url: str) -> None:
    """Upload the release, then what was released in the meantime.

    The store is not locked meanwhile: an object store that hangs would stop everybody who labels.
    """
    uploaded: Release | None = None
    newest: Release | None = row
    while newest is not None and (uploaded is None or uploaded.version < newest.version):
        files.deliver(newest.document.encode(), url)
        uploaded, newest = newest, next(iter(store.releases.list(limit=1)), None)


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
    sign: Signer = None,
) -> Release:
    """Release an earlier version again, as version n+1: equal to it in all but `OF_ITS_OWN`, so it decides the same.

    What it was made from is saved anew with it, so the next release starts from there. A `reason` is kept in the note.

    Neither the guard nor a second person stands in its way: all it can bring back was live before, and whoever is woken
    by a bad release must be able to take it back alone, at once. Raises BadInput for a version that is not there, or
    that is live already.
    """
    row = read_version(store, version)
    old = read_release(row)
    request = ReleaseRequest(note=note or f"Back to v{version}.", reason=reason, by=by)

    def make(number: int, live: ThresholdsFile | None) -> ThresholdsFile:
        assert live is not None
        if content(old) == content(live):
            raise BadInput(f"v{live.version} is live, and equal to v{version}: there is nothing to roll back")
        note = request.full_note
        file = replace(old, version=number, released_at=now, released_by=by, note=note, replaces=live.version)
        assert content(file) == content(old)
        return file

    def settles(connection: Transaction, _: int) -> None:
        entries.bring_back(connection, store, old, until=row.released_at)

    note = request.full_note
    return publish(
        store, make, by=by, note=note, now=now, out=out, expect=expect, settles=settles, verb="rolled back", sign=sign
    )


def again(store: Store, version: int, out: Out) -> Release:
    """Write an earlier release to a file, byte for byte."""
    row = read_version(store, version)
    files.deliver(row.document.encode(), files.check_place(str(out), store=store.file))
    return row


def judge_again(store: Store, row: Release) -> tuple[Judged, ...]:
    """What is known now of the thresholds and ensembles of a release that may flag."""
    file = read_release(row)
    return tuple(known_bad.judge_live(store, file, entries.points_of(store, file, until=row.released_at)))


def stale_certificates(store: Store, file: ThresholdsFile) -> list[Overturned]:
    """The certificates in a release whose labels have changed since."""
    changes = (
        overturned(store, name, sure)
        for name, entry in sorted(file.detectors.items())
        for sure in (entry.guarantee, *(own.guarantee for own in _owns(entry)))
        if sure is not None and sure.strength == "certified"
    )
    return [change for change in changes if change]


def _owns(entry: DetectorEntry) -> Iterable[SegmentThreshold]:
    return entry.segments.thresholds.values() if entry.segments else ()


def read_version(store: Store, version: int) -> Release:
    """Read a release from the store. Raises BadInput, naming the newest, where it is not there."""
    row = store.releases.get(version)
    if row is None:
        newest = store.releases.list(limit=1)
        raise BadInput(
            f"there is no release {version}; the newest is "
            f"{newest[0].version if newest else 'none: nothing was released yet'}"
        )
    return row
