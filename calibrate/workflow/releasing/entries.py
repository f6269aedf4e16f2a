"""Saved points and ensembles as entries of a thresholds file, and which of them a release was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibrate.errors import BadInput
from calibrate.probability import JudgedMap
from calibrate.thresholds.ensembles import Cuts, EnsembleEntry, EnsembleMetrics
from calibrate.thresholds.model import DetectorEntry, Metrics, ThresholdsFile
from calibrate.types import SavedEnsemble, Tier
from db import Store
from db.engine import Transaction
from db.points import SavedPoint, save_again


def entry_of(
    store: Store,
    saved: SavedPoint,
    tier: Tier,
    previous: ThresholdsFile | None,
    extra: Mapping[str, Any] | None = None,
) -> DetectorEntry:
    """Write a saved point as an entry of a release, sampled as in `previous`, with the keys of `extra`.

    Raises BadInput for a point that meets no policy.
    """
    config = store.scores.get_config(saved.config_id)
    point, probability_map = saved.point, saved.data.probability_map
    if not point.feasible:
        raise BadInput(
            f"{saved.detector}: no threshold meets {point.policy}; choose another policy, or save "
            "the nearest point on purpose with --policy manual:THRESHOLD"
        )
    before = previous.detectors.get(saved.detector) if previous else None
    return DetectorEntry(
        version=config.version,
        params=config.params,
        revision=config.revision,
        flag_when=point.flag_when,
        threshold=point.threshold,
        tier=tier,
        policy=point.policy,
        metrics=Metrics(point.precision, point.recall, point.fpr, point.flag_rate, point.n, point.positives),
        coverage=point.coverage,
        feasible=point.feasible,
        guarantee=point.guarantee,
        probability_map=None if probability_map is None else JudgedMap.from_json(probability_map),
        sampling=before.sampling if before else None,
        segments=saved.data.segments,
        extra=extra or {},
    )


def ensemble_of(
    saved: SavedEnsemble, entries: Mapping[str, DetectorEntry], tier: Tier, extra: Mapping[str, Any] | None = None
) -> EnsembleEntry:
    """Write a saved ensemble as an entry of a release of these detectors, with the keys of `extra`.

    Raises BadInput if the release has other scores of a member than the ensemble was built from: its figures do not
    hold for those.
    """
    ensemble = saved.ensemble
    for name, member in sorted(ensemble.detectors.items()):
        if name not in entries:
            raise BadInput(
                f"the ensemble {saved.name} reads {name}, which is not in this release: save an operating point for "
                f"it (`choose {name} --policy … --save`) and release it, as tier off if it should not flag by itself"
            )
        entry = entries[name]
        differ = [part for part in ("version", "params", "revision") if getattr(member, part) != getattr(entry, part)]
        if differ:
            differing = "; ".join(f"{part} {getattr(member, part)!r}, here {getattr(entry, part)!r}" for part in differ)
            raise BadInput(
                f"the ensemble {saved.name} was made from other scores of {name} than this release has "
                f"({differing}): make it again and save it, or save the point of those scores"
            )
    page, signal = ensemble.cuts.page.threshold, ensemble.cuts.signal.threshold
    figures, data = ensemble.figures, ensemble.data
    return EnsembleEntry(
        rule=dict(ensemble.rule),
        members=tuple(sorted(ensemble.detectors)),
        cuts=Cuts(page if tier == "page" else None, signal if tier != "off" else None),
        metrics=EnsembleMetrics(figures.precision, figures.recall, figures.flag_rate, data.n, data.positives),
        budget=ensemble.budget,
        extra=extra or {},
    )


def tiers_of(file: ThresholdsFile) -> dict[str, Tier]:
    """The tier of every detector and ensemble of a release."""
    tiers: dict[str, Tier] = {name: entry.tier for name, entry in file.detectors.items()}
    for name, ensemble in file.ensembles.items():
        tiers[name] = "page" if ensemble.cuts.page is not None else "off" if ensemble.cuts.signal is None else "signal"
    return tiers


@dataclass(frozen=True)
class OnOffer:
    """How what is saved differs from the live release: the next release would bring `newer` points and ensembles
    instead of its own, and detectors that it does not have, `added`."""

    file: ThresholdsFile
    newer: tuple[str, ...]
    added: tuple[str, ...]


def on_offer(store: Store, file: ThresholdsFile) -> OnOffer:
    """Compare what is saved with the live release `file`."""
    points, ensembles = store.points.latest(), store.ensembles.latest()
    newer = [name for name in file.detectors if name in points and not _is_point_of(store, points[name], file)]
    newer += [name for name in file.ensembles if name in ensembles and not _is_ensemble_of(ensembles[name], file)]
    return OnOffer(file, tuple(sorted(newer)), tuple(sorted({*points} - {*file.detectors})))


def bring_back(connection: Transaction, store: Store, file: ThresholdsFile, *, until: datetime) -> None:
    """Save again what the release `file` was made from, in the caller's transaction.

    That is, of each detector and ensemble, the newest saved by `until`, when it was released. Without this the next
    release, of a tier perhaps, would bring back the very points that were just rolled back. A point that is the latest
    already, or no longer in the store, is left alone.
    """
    points, ensembles = store.points.latest(), store.ensembles.latest()
    for name in file.detectors:
        history = store.points.of(name, until=until)
        point = next((saved for saved in history if _is_point_of(store, saved, file)), None)
        if point and point.id != points[name].id:
            save_again(connection, point)
    for name in file.ensembles:
        versions = store.ensembles.of(name, until=until)
        ensemble = next((saved for saved in versions if _is_ensemble_of(saved, file)), None)
        if ensemble and ensemble.id != ensembles[name].id:
            save_again(connection, ensemble)


def points_of(store: Store, file: ThresholdsFile, *, until: datetime) -> dict[str, SavedPoint]:
    """The saved points that a release was made from, of those that are still in the store. `until`: its moment."""
    latest = store.points.latest()
    points = {}
    for name in file.detectors:
        history = [latest[name]] if name in latest and _is_point_of(store, latest[name], file) else []
        history = history or [saved for saved in store.points.of(name, until=until) if _is_point_of(store, saved, file)]
        if history:
            points[name] = history[0]
    return points


def _is_point_of(store: Store, saved: SavedPoint, file: ThresholdsFile) -> bool:
    """Whether the release has this saved point, with all that was measured of it."""
    entry = file.detectors[saved.detector]
    return saved.point.feasible and entry_of(store, saved, entry.tier, file, entry.extra) == entry


def _is_ensemble_of(saved: SavedEnsemble, file: ThresholdsFile) -> bool:
    """Whether the release has this saved ensemble."""
    try:
        entry = file.ensembles[saved.name]
        return ensemble_of(saved, file.detectors, tiers_of(file)[saved.name], entry.extra) == entry
    except BadInput:  # made from other scores
        return False
