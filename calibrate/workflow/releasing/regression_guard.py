"""The regression guard: a new operating point against the live one on the same gold labels.

Both are judged on the labels that the new point was chosen on, the live one by the scores of its own configuration. Who
chose on these labels flatters the new point, so what is worse even there is worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput, UnknownDetector
from calibrate.stats.intervals.flag_differences import Paired, compare_flags
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Interval
from calibrate.workflow.evidence import loading, traffic
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.releases import SavedPoint
from db.scores import Config, Row


@dataclass(frozen=True)
class Check:
    """One detector that both releases have. `paired` is the new point against the old; where they cannot be compared it
    is None and `missing` says why, and how they could be. `of` is the old version."""

    detector: str
    of: int
    paired: Paired | None
    missing: str | None = None

    @property
    def worse(self) -> str | None:
        """What fell by more than chance, in a sentence; None where nothing did."""
        if self.paired is None or not self.paired.worse:
            return None
        fell = " and ".join(_fell(name, self.paired) for name in self.paired.worse)
        return f"{self.detector} is worse than in v{self.of} on the same {self.paired.n:,} labels: {fell}"


def hold(store: Store, before: ThresholdsFile, after: ThresholdsFile, points: Mapping[str, SavedPoint]) -> None:
    """Raises BadInput where a point of `after` is worse than in `before` by more than chance."""
    said = [one.worse for one in checks(store, before, after, points) if one.worse]
    if said:
        raise BadInput(f"{'; '.join(said)}. Choose another point, or say why it shall be so: `--reason TEXT`")


def checks(
    store: Store, before: ThresholdsFile, after: ThresholdsFile, points: Mapping[str, SavedPoint]
) -> list[Check]:
    """Every detector of both releases whose point is not the same, by name. `after` is a candidate of these points."""
    names = sorted({*before.detectors} & {*after.detectors} & {*points})
    return [
        check(store, points[name], before.version, before.detectors[name], after.detectors[name])
        for name in names
        if not same_point(before.detectors[name], after.detectors[name])
    ]


def same_point(old: DetectorEntry, new: DetectorEntry) -> bool:
    """Whether two entries flag the same traces, whatever was measured of them."""
    return all(
        getattr(old, of) == getattr(new, of) for of in ("version", "params", "revision", "flag_when", "threshold")
    )


def check(store: Store, saved: SavedPoint, of: int, old: DetectorEntry, new: DetectorEntry) -> Check:
    """The new point against the old one on the labels that the new one was chosen on."""
    try:
        data = chosen_on(store, saved)
    except UnknownDetector as error:
        return Check(saved.detector, of, None, f"{saved.detector} cannot be compared with v{of}: {error}")
    flags = []
    for entry in (old, new):
        config = config_of(store, saved.detector, entry)
        values = scores_of(store, data, config)
        if values is None:
            return Check(saved.detector, of, None, _cannot(saved.detector, of, entry, config))
        flags.append(flagged(values, entry))
    return Check(saved.detector, of, compare_flags(data.labels, *flags, design=data.design, groups=data.groups))


def chosen_on(store: Store, saved: SavedPoint) -> Evidence:
    """The labels that a point was chosen on, as they stand now, with the scores that it is about."""
    config = store.scores.get_config(saved.config_id)
    data = loading.load_evidence(store, saved.detector, sample=saved.data.samples or None, config=config)
    then = {content for content, _ in saved.data.labels}
    return replace(data, rows=tuple(row for row in data.rows if row.content_hash in then))


def config_of(store: Store, name: str, entry: DetectorEntry) -> Config | None:
    """The configuration that a release's entry is about; None where this store has no score of it."""
    wanted = (entry.version, dict(entry.params), entry.revision)
    found = (one for one in store.scores.configs(name) if (one.version, dict(one.params), one.revision) == wanted)
    return next(found, None)


def scores_of(store: Store, data: Evidence, config: Config | None) -> Floats | None:
    """Another configuration's scores of the same rows, NaN where it could not score; None while it was not run on
    nearly all of them."""
    if config is None:
        return None
    if config == data.config:
        return data.scores
    rows: dict[int, Row] = {row.pk: row for row in loading.gold_rows(store, config, data.sample)}
    there = [rows.get(row.pk) for row in data.rows]
    if sum(row is None or row.status is None for row in there) > traffic.NOT_RUN * len(there):
        return None
    return np.array([np.nan if row is None or row.value is None else row.value for row in there], dtype=float)


def flagged(scores: Floats, entry: DetectorEntry) -> Bools:
    """Which scores an entry flags; NaN is not flagged. As `calibrate.orientation.flags`, for arrays."""
    with np.errstate(invalid="ignore"):
        return np.asarray(scores >= entry.threshold if entry.flag_when == "above" else scores <= entry.threshold)


def _cannot(name: str, of: int, entry: DetectorEntry, config: Config | None) -> str:
    said = f"{name} cannot be compared with v{of} on the same labels: it was not run on them as it was released"
    now = registry.get(name)
    if now.version != entry.version:
        return f"{said} (version {entry.version}; this Touchstone has version {now.version}, which scores otherwise)"
    usual = registry.config_of(registry.make(name))
    params = [f"--param {key}={value}" for key, value in sorted(entry.params.items()) if usual.get(key) != value]
    models = f", with the models of then ({entry.revision})" if config is None and entry.revision else ""
    return f"{said}. `{' '.join(['detect', name, '--labelled', *params])}` makes them{models}"


def _fell(name: str, found: Paired) -> str:
    figure: Interval = getattr(found, name)
    first, second = (getattr(one, name) for one in (found.first, found.second))
    return f"{name} {second:.0%} instead of {first:.0%} ({'–'.join(_points(figure))} points less)"


def _points(figure: Interval) -> Iterator[str]:
    """The bounds of a loss in percentage points, the smaller first."""
    for bound in (figure.high, figure.low):
        assert bound is not None
        yield f"{-100 * bound:.0f}" if bound < -0.0095 else f"{-100 * bound:.1f}"
