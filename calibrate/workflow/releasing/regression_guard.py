"""The regression guard: a new operating point against the live one on the same gold labels.

Both are judged on the labels that the new point was chosen on, the live one by the scores of its own configuration.
Choosing on these labels flatters the new point, so a point that is worse even there is worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput, UnknownDetector
from calibrate.orientation import flags
from calibrate.stats.intervals.flag_differences import Paired, compare_flags
from calibrate.stats.sweep.design import Floats
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Interval
from calibrate.workflow.evidence import loading, traffic
from calibrate.workflow.evidence.basis import basis_of_saved
from calibrate.workflow.evidence.counted_labels import count_labels
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing.by_segment import thresholds_of
from db import Store
from db.points import SavedPoint
from db.scores import Config, Row


@dataclass(frozen=True)
class Loss:
    """A figure that fell by more than chance, `before` to `after`: by `least` to `most`, 95%. All are shares."""

    figure: str
    before: float
    after: float
    least: float
    most: float


@dataclass(frozen=True)
class NotRun:
    """The released configuration `entry` has no scores of the labels that the new point was chosen on.

    `version` is that of the detector installed here, `usual` the parameters it ships with. `stored` says whether the
    store has scores of the configuration at all.
    """

    entry: DetectorEntry
    version: str
    usual: Mapping[str, Any]
    stored: bool


@dataclass(frozen=True)
class Check:
    """One detector that both releases have: the new point against that of version `of`.

    `paired` is None where they cannot be compared; `missing` then says why, as a record or as an error's text.
    """

    detector: str
    of: int
    paired: Paired | None
    missing: NotRun | str | None = None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What fell by more than chance."""
        if self.paired is None:
            return ()
        return tuple(_find_loss(name, self.paired) for name in self.paired.worse)


def _find_loss(name: str, pair: Paired) -> Loss:
    difference: Interval = getattr(pair, name)
    assert difference.low is not None
    assert difference.high is not None
    return Loss(name, getattr(pair.first, name), getattr(pair.second, name), -difference.high, -difference.low)


def hold(store: Store, before: ThresholdsFile, after: ThresholdsFile, points: Mapping[str, SavedPoint]) -> None:
    """Raises BadInput where a point of `after` is worse than in `before` by more than chance."""
    worse = [check for check in checks(store, before, after, points) if check.losses]
    if worse:
        raise refusal(worse, "Choose another point, or say why it shall be so: `--reason TEXT`")


def refusal(worse: Sequence[Check], remedy: str) -> BadInput:
    """The error for points that are worse than the live ones, where no reason is given."""
    return BadInput(
        "; ".join(
            f"{check.detector} is worse than in v{check.of} on the same {check.paired.n if check.paired else 0:,} "
            "labels: "
            + " and ".join(
                f"{loss.figure} {loss.after:.0%} instead of {loss.before:.0%} "
                f"({100 * loss.least:.{int(loss.least < 0.0095)}f}–{100 * loss.most:.{int(loss.most < 0.0095)}f} "
                "points less)"
                for loss in check.losses
            )
            for check in worse
        )
        + f". {remedy}"
    )


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
    fields = ("version", "params", "revision", "flag_when", "threshold", "segments")
    return all(getattr(old, name) == getattr(new, name) for name in fields)


def check(store: Store, saved: SavedPoint, of: int, old: DetectorEntry, new: DetectorEntry) -> Check:
    """The new point against the old one on the labels that the new one was chosen on."""
    try:
        data = chosen_on(store, saved)
    except UnknownDetector as error:
        return Check(saved.detector, of, None, str(error))
    flagged = []
    for entry in (old, new):
        config = config_of(store, saved.detector, entry)
        scores = scores_of(store, data, config)
        if scores is None:
            detector = registry.get(saved.detector)
            usual = registry.config_of(registry.make(saved.detector))
            return Check(saved.detector, of, None, NotRun(entry, detector.version, usual, config is not None))
        flagged.append(flags(scores, thresholds_of(store, entry, [row.pk for row in data.rows]), entry.flag_when))
    return Check(saved.detector, of, compare_flags(data.labels, *flagged, design=data.design, groups=data.groups))


def chosen_on(store: Store, saved: SavedPoint) -> Evidence:
    """The labels that a point was chosen on, as they stand now, with the scores that it is about."""
    config = store.scores.get_config(saved.config_id)
    basis = basis_of_saved(store, saved.data.samples)
    data = loading.load_evidence(store, saved.detector, basis=basis, config=config)
    contents = {content for content, _ in saved.data.labels}
    return replace(data, rows=tuple(row for row in data.rows if row.content_hash in contents))


def config_of(store: Store, name: str, entry: DetectorEntry) -> Config | None:
    """The configuration that a release's entry is about; None where this store has no score of it."""
    released = (entry.version, dict(entry.params), entry.revision)
    for config in store.scores.configs(name):
        if (config.version, dict(config.params), config.revision) == released:
            return config
    return None


def scores_of(store: Store, data: Evidence, config: Config | None) -> Floats | None:
    """Another configuration's scores of the same rows, NaN where it could not score; None while it was not run on
    nearly all of them."""
    if config is None:
        return None
    if config == data.config:
        return data.scores
    by_trace: dict[int, Row] = {row.pk: row for row in count_labels(store, config, data.sample).rows}
    rows = [by_trace.get(row.pk) for row in data.rows]
    if sum(row is None or row.status is None for row in rows) > traffic.NOT_RUN * len(rows):
        return None
    return np.array([np.nan if row is None or row.value is None else row.value for row in rows], dtype=float)
