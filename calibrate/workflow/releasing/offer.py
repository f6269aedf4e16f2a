"""What is on offer for release once an earlier version is back: its own points and ensembles.

Without that the next release, of a tier perhaps, would bring back the very points that were just rolled back.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from calibrate.errors import BadInput
from calibrate.thresholds.model import ThresholdsFile
from calibrate.workflow.releasing.candidate import ensemble_of, entry_of, tiers_of
from db import Store
from db.chosen import SavedEnsemble
from db.releases import SavedPoint, save_again


def bring_back(connection: Connection, store: Store, file: ThresholdsFile, *, until: datetime) -> None:
    """Saves anew what the release `file` was made from, in the caller's transaction: of each detector and ensemble the
    newest saved by `until`, when it was released. What is the latest already, or no longer there, is left alone."""
    points, ensembles = store.points.latest(), store.ensembles.latest()
    for name in file.detectors:
        made = (one for one in store.points.of(name, until=until) if _made(store, one, file))
        if (point := next(made, None)) and point.id != points[name].id:
            save_again(connection, point)
    for name in file.ensembles:
        ensemble = next((one for one in store.ensembles.of(name, until=until) if _combined(one, file)), None)
        if ensemble and ensemble.id != ensembles[name].id:
            save_again(connection, ensemble)


def said(store: Store, version: int, file: ThresholdsFile) -> list[str]:
    """Whether the next release would start from `file`, in sentences: what `version` held, live again."""
    points, ensembles = store.points.latest(), store.ensembles.latest()
    newer = [name for name in file.detectors if name in points and not _made(store, points[name], file)]
    newer += [name for name in file.ensembles if name in ensembles and not _combined(ensembles[name], file)]
    what = "points and ensembles" if file.ensembles else "points"
    lines = [f"v{version}'s {what} are on offer again: the next release starts from them"]
    if newer:
        lines = [
            f"{', '.join(sorted(newer))}: what is saved is newer than the live release, whose own is no longer in the "
            "store; the next release would bring it, unless another is chosen and saved"
        ]
    if more := sorted({*points} - {*file.detectors}):
        names = ", ".join(more)
        lines.append(f"v{version} has no {names}, on offer with a saved point: leave out what shall not come back")
    return lines


def _made(store: Store, saved: SavedPoint, file: ThresholdsFile) -> bool:
    """Whether the release has this saved point, with all that was measured of it."""
    entry = file.detectors[saved.detector]
    return saved.point.feasible and entry_of(store, saved, entry.tier, file) == entry


def _combined(saved: SavedEnsemble, file: ThresholdsFile) -> bool:
    """Whether the release has this saved ensemble."""
    try:
        return ensemble_of(saved, file.detectors, tiers_of(file)[saved.name]) == file.ensembles[saved.name]
    except BadInput:  # made from other scores
        return False
