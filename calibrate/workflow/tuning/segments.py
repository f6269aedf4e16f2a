"""Thresholds per segment of the traffic beside one for all: chosen, measured out of fold, and saved where they gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import flags, suspicion
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.intervals.sweep_intervals import Figures, figures
from calibrate.stats.segments.choosing import FEWEST, SegmentChoice, check_policy, choose_segments
from calibrate.stats.segments.rivals import Gain
from calibrate.stats.segments.rows import SegmentRows
from calibrate.stats.sweep.design import Bools, Ints
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import (
    ATTRIBUTE,
    Interval,
    OperatingPoint,
    PointState,
    Segments,
    SegmentThreshold,
    names_segments,
    segment_of,
)
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.tuning.operating_points import choose_point, require_reason, saved_point
from calibrate.workflow.tuning.point_state import state_of
from db import Store

MOST = 50
"""Segments that are looked at; those with the fewest labels beyond them have the common threshold."""
BATCH = 500  # traces that are read at once
USUAL = ("operation", "model", "language")


class SegmentVerdict(StrEnum):
    """Whether thresholds per segment are offered, and why not."""

    OFFERED = "offered"
    NO_GAIN = "no gain"  # not shown to find more than one threshold does
    UNMET = "unmet"  # no threshold meets the policy
    FEW = "few"  # fewer than two segments have enough labels


@dataclass(frozen=True)
class SegmentRow:
    """One segment: its labels, and the figures of the common threshold and of its own there.

    `own` is None where it has none: its labels are not `enough`, or too few segments have enough. The own figures are
    out of fold. `shrinkage`: how much of the difference from the common curve its labels keep, 0 to 1.
    """

    segment: str
    n: int
    positives: int
    precision: Interval
    recall: Interval
    enough: bool
    own: float | None = None
    own_precision: Interval | None = None
    own_recall: Interval | None = None
    shrinkage: float | None = None


@dataclass(frozen=True)
class Segmented:
    """Thresholds per segment beside one for all.

    `point` is the one threshold; `own_point` the same with the figures of the segments' thresholds, out of fold, where
    there are any, and `state` what is known against that. `outside`: labels of no segment that is listed.
    """

    by: str
    policy: Policy
    verdict: SegmentVerdict
    point: OperatingPoint
    rows: tuple[SegmentRow, ...]
    outside: int
    gain: Gain | None = None
    own_point: OperatingPoint | None = None

    @property
    def offered(self) -> bool:
        return self.verdict == SegmentVerdict.OFFERED

    @property
    def segments(self) -> Segments:
        """The thresholds as a release keeps them."""
        return Segments(
            self.by,
            {
                row.segment: SegmentThreshold(row.own, row.n, row.positives, row.own_precision, row.own_recall)
                for row in self.rows
                if row.own is not None and row.own_precision is not None and row.own_recall is not None
            },
        )


def segment_labels(store: Store, data: Evidence, policy: Policy, *, by: str, seed: int = 0) -> Segmented:
    """Choose a threshold for each segment and measure what they gain. The same seed, the same answer.

    Raises BadInput for another `by`, for one that no labelled trace has, for policies that set no threshold per
    segment, and where the labels allow no choice.
    """
    check_policy(policy)
    by = full_name(store, by)
    point = choose_point(data, policy)
    names, codes = _read_segments(store, data, by)
    rows = SegmentRows.of(
        data.labels,
        data.scores,
        codes,
        segments=len(names),
        flag_when=data.flag_when,
        design=data.design,
        groups=data.groups,
    )
    outside = int(np.count_nonzero(codes < 0))
    if rows.enough.sum() < FEWEST:
        choice, verdict = None, SegmentVerdict.FEW
    else:
        choice = choose_segments(rows, policy, rng=np.random.default_rng(seed))
        better = SegmentVerdict.OFFERED if choice.offered else SegmentVerdict.NO_GAIN
        verdict = better if choice.feasible else SegmentVerdict.UNMET
    common = choice.common_flags if choice else flags(data.scores, point.threshold, data.flag_when)
    lines = tuple(_make_row(data, rows, choice, common, code, name) for code, name in enumerate(names))
    own_point = measure_point(data, point, choice.own_flags) if choice else None
    return Segmented(
        by,
        policy,
        verdict,
        point,
        lines,
        outside,
        choice.gain if choice else None,
        own_point,
    )


def save(
    store: Store,
    data: Evidence,
    segmented: Segmented,
    *,
    state: PointState | None = None,
    reason: str = "",
    by: str,
    now: datetime,
) -> None:
    """Save the common threshold with those of the segments as the operating point; the next release takes them.

    `state` is what is known of them, by these labels alone where it is not given. Raises BadInput where they are not
    offered, and for a point that is known to be bad, without a `reason`.
    """
    point = segmented.own_point
    if not segmented.offered or point is None:
        raise BadInput(
            f"{data.config.name}: thresholds by {segmented.by} are not shown to gain on these labels "
            f"({segmented.verdict}), so nothing was saved: save one threshold for all, or label more traces"
        )
    state = state or state_of(data, point)
    require_reason(point.detector, state, reason)
    saved = saved_point(store, data, point, state=state, reason=reason, by=by, now=now)
    store.points.save(replace(saved, data=replace(saved.data, segments=segmented.segments)))


def segmented_by(store: Store) -> list[str]:
    """What segments can be told apart by: the operation, the model, and the attributes that the newest traces carry."""
    attributes = [f"attributes.{name}" for name in store.traces.attribute_names() if name != "language"]
    return [*USUAL, *attributes] if "language" in store.traces.attribute_names() else [*USUAL[:2], *attributes]


def full_name(store: Store, by: str) -> str:
    """`by` as segments are told apart: "tier" is "attributes.tier" where traces carry that attribute."""
    return f"{ATTRIBUTE}{by}" if not names_segments(by) and by in store.traces.attribute_names() else by


def measure_point(data: Evidence, point: OperatingPoint, flagged: Bools) -> OperatingPoint:
    """The point with the figures of these flags instead of its own."""
    measured = _measure(data, flagged)
    return replace(
        point,
        precision=measured.precision,
        recall=measured.recall,
        fpr=measured.fpr,
        flag_rate=measured.flag_rate,
        true_positives=measured.true_positives,
        false_positives=measured.false_positives,
        false_negatives=measured.false_negatives,
        true_negatives=measured.true_negatives,
        counted=None,
    )


def _read_segments(store: Store, data: Evidence, by: str) -> tuple[Sequence[str], Ints]:
    """The segments with most labels, by name, and the code of every row's segment."""
    if not names_segments(by):
        raise BadInput(f"segments cannot be told apart by {by!r}: name one of {', '.join(segmented_by(store))}")
    values = _values(store, data, by)
    counts = Counter(value for value in values if value is not None)
    if not counts:
        apart = [name for name in segmented_by(store) if len(set(_values(store, data, name)) - {None}) > 1]
        if not apart:
            raise BadInput(f"no labelled trace has {by!r}, and nothing else tells traces apart: log it")
        raise BadInput(
            f"no labelled trace has {by!r}; traces can be told apart by {', '.join(apart)}: name one of these, or log "
            "it"
        )
    names = sorted(sorted(counts, key=lambda name: (-counts[name], name))[:MOST])
    codes = {name: code for code, name in enumerate(names)}
    return names, np.array([codes.get(value, -1) if value is not None else -1 for value in values], dtype=np.int64)


def _values(store: Store, data: Evidence, by: str) -> list[str | None]:
    """The segment of every row; None where the trace does not say."""
    values: list[str | None] = []
    for start in range(0, len(data.rows), BATCH):
        traces = store.traces.load([row.pk for row in data.rows[start : start + BATCH]])
        value_of_trace = {trace.id: segment_of(trace, by) for trace in traces}
        values += [value_of_trace.get(row.trace_id) for row in data.rows[start : start + BATCH]]
    return values


def _make_row(
    data: Evidence, rows: SegmentRows, choice: SegmentChoice | None, common: Bools, code: int, name: str
) -> SegmentRow:
    here = rows.segment == code
    at_common = _measure(data, common, here)
    n, positives = int(np.count_nonzero(here)), int(np.count_nonzero(here & data.labels))
    row = SegmentRow(name, n, positives, at_common.precision, at_common.recall, bool(rows.enough[code]))
    if choice is None or not rows.enough[code]:
        return row
    place = int(np.count_nonzero(rows.enough[:code]))
    at_own = _measure(data, choice.own_flags, here)
    return replace(
        row,
        own=float(suspicion(choice.own[place], data.flag_when)) + 0.0,
        own_precision=at_own.precision,
        own_recall=at_own.recall,
        shrinkage=float(choice.curves.pooled.shrinkage[place]),
    )


def _measure(data: Evidence, flagged: Bools, here: Bools | None = None) -> Figures:
    """Figures of flags, of all labels or of some, as the sample was drawn."""
    inside = np.ones(len(flagged), dtype=bool) if here is None else here
    values = np.where(np.isnan(data.scores), np.nan, flagged.astype(np.float64))
    whole = bool(inside.all())
    weights = None if whole or data.design is None else data.design.weights[inside]
    curve = sweep(
        data.labels[inside],
        values[inside],
        weights=weights,
        design=data.design if whole else None,
        groups=[group for group, used in zip(data.groups, inside, strict=True) if used],
    )
    return figures(curve, 0.5)
