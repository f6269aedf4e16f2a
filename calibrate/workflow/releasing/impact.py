"""What a release would do to the people who act on it, against the live one: flags, pages and hallucinations a day.

Counted on the same gold labels, so both releases see the same week; unknown where traces carry no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibrate.errors import UnknownDetector
from calibrate.runtime import decide
from calibrate.stats.intervals.flag_differences import Paired, compare_flags
from calibrate.stats.sweep.design import Floats
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.workflow.evidence import traffic
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing import regression_guard
from calibrate.workflow.releasing.regression_guard import Check
from db import Store
from db.points import SavedPoint


@dataclass(frozen=True)
class DetectorImpact:
    """One detector before and after.

    `before` is None where it comes in, `after` where it leaves, `check` where there is nothing to compare. Flags a day
    are of the traffic that the new point's labels were drawn from: None where that is not known, 0 in tier off.
    """

    detector: str
    before: DetectorEntry | None
    after: DetectorEntry | None
    check: Check | None
    flags_before: float | None
    flags_after: float | None


@dataclass(frozen=True)
class Unknown:
    """Why two releases cannot be compared as a whole.

    For "not run", release `version` reads `detector`, which was not run on the labels as it was released; for "error",
    `error` says what is wrong.
    """

    reason: Literal["samples differ", "no shared labels", "not run", "error"]
    version: int | None = None
    detector: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Impact:
    """Release `new` against the live one, `old`: by detector, and as a whole on the labels that all points share.

    `pages` compares what pages, `flags` what is flagged in any tier; both are None where `unknown` says why. `per_day`
    is the traffic, None where traces carry no time.
    """

    old: int
    new: int
    rows: tuple[DetectorImpact, ...]
    pages: Paired | None
    flags: Paired | None
    per_day: float | None
    unknown: Unknown | None = None

    @property
    def worse(self) -> tuple[Check, ...]:
        """The points that got worse: releasing them needs a reason."""
        return tuple(row.check for row in self.rows if row.check and row.check.losses)

    @property
    def missing(self) -> tuple[Check, ...]:
        """The comparisons that could not be made."""
        return tuple(row.check for row in self.rows if row.check and row.check.missing)


def impact(
    store: Store,
    before: ThresholdsFile,
    after: ThresholdsFile,
    points: Mapping[str, SavedPoint] | None = None,
) -> Impact:
    """`after`, a candidate of these points (None: the latest saved ones), against the live release `before`."""
    points = store.points.latest() if points is None else points
    checks = {check.detector: check for check in regression_guard.checks(store, before, after, points)}
    names = sorted({*before.detectors, *after.detectors})
    rows = tuple(_make_row(store, name, before, after, points.get(name), checks.get(name)) for name in names)
    data = _load_shared_labels(store, [points[name] for name in sorted(after.detectors) if name in points])
    if isinstance(data, Unknown):
        return Impact(before.version, after.version, rows, None, None, None, data)
    per_day = traffic.traffic_per_day(store, data.sample)
    tiers = []
    for file in (before, after):
        decided = _decide_tiers(store, data, file)
        if isinstance(decided, Unknown):
            return Impact(before.version, after.version, rows, None, None, per_day, decided)
        tiers.append(np.asarray(decided))
    old, new = tiers
    design, groups = data.design, data.groups
    pages = compare_flags(data.labels, old == "page", new == "page", design=design, groups=groups)
    flags = compare_flags(data.labels, old != "off", new != "off", design=design, groups=groups)
    return Impact(before.version, after.version, rows, pages, flags, per_day)


def _make_row(
    store: Store,
    name: str,
    before: ThresholdsFile,
    after: ThresholdsFile,
    saved: SavedPoint | None,
    check: Check | None,
) -> DetectorImpact:
    old, new = before.detectors.get(name), after.detectors.get(name)
    sample = next(iter(saved.data.samples), None) if saved and new else None
    per_day = traffic.traffic_per_day(store, store.samples.get(sample) if sample else None)
    rates = [entry.metrics.flag_rate.value if entry else None for entry in (old, new)]
    if check and check.paired:
        rates = [check.paired.first.flag_rate, check.paired.second.flag_rate]
    daily = [
        0.0 if entry and entry.tier == "off" else None if rate is None or per_day is None else rate * per_day
        for entry, rate in zip((old, new), rates, strict=True)
    ]
    return DetectorImpact(name, old, new, check, *daily)


def _load_shared_labels(store: Store, points: list[SavedPoint]) -> Evidence | Unknown:
    """The labels that all of these points were chosen on, beside the scores of the first."""
    if len({point.data.samples for point in points}) != 1:
        return Unknown("samples differ")
    try:
        data = regression_guard.chosen_on(store, points[0])
    except UnknownDetector as error:
        return Unknown("error", error=str(error))
    common = set.intersection(*({content for content, _ in point.data.labels} for point in points))
    data = replace(data, rows=tuple(row for row in data.rows if row.content_hash in common))
    return data if data.rows else Unknown("no shared labels")


def _decide_tiers(store: Store, data: Evidence, file: ThresholdsFile) -> list[str] | Unknown:
    """What a release decides of every row."""
    scores: dict[str, Floats] = {}
    for rule in file.rules:
        config = regression_guard.config_of(store, rule.detector, file.detectors[rule.detector])
        values = regression_guard.scores_of(store, data, config)
        if values is None:
            return Unknown("not run", file.version, rule.detector)
        scores[rule.detector] = values
    pks = [row.pk for row in data.rows]
    segments = {by: store.traces.segments(pks, by) for by in file.segmented_by}
    return [
        decide(
            file,
            {name: float(values[place]) for name, values in scores.items()},
            segments={by: each[place] for by, each in segments.items()},
        ).tier
        for place in range(len(pks))
    ]
