"""Save a certified threshold of one segment: beside the thresholds of the rest, which stay as they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.types import OperatingPoint, Part, PointState, Segments, SegmentThreshold
from calibrate.workflow.certification.attempts import Attempt, command
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import basis_of_saved
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.tuning.operating_points import require_reason
from calibrate.workflow.tuning.point_state import chance_of, count_disputed, judge_point
from calibrate.workflow.tuning.segments import measure_point
from db import Store
from db.points import SavedPoint


def save(
    store: Store,
    attempt: Attempt,
    part: Part,
    certified: OperatingPoint,
    *,
    state: PointState,
    reason: str = "",
    by: str,
    now: datetime,
) -> None:
    """Put a certified threshold into the detector's saved point as that of its segment. The figures of the point become
    those of all traffic, each trace at its own threshold; a guarantee of one threshold for all traffic ends.

    Raises BadInput where there is no saved point of the same scores, where its segments are told apart otherwise, and
    for what is known to be bad, without a `reason`.
    """
    require_reason(f"{attempt.detector} ({part.by} {part.name})", state, reason)
    saved = _saved_point(store, attempt, part)
    own = SegmentThreshold(
        certified.threshold,
        certified.n,
        certified.positives,
        certified.precision,
        certified.recall,
        certified.guarantee,
    )
    before = saved.data.segments.thresholds if saved.data.segments else {}
    segments = Segments(part.by, {**before, part.name: own})
    data = loading.load_evidence(
        store,
        attempt.detector,
        basis=basis_of_saved(store, saved.data.samples),
        config=store.scores.get_config(saved.config_id),
    )
    point = measure_point(data, replace(saved.point, guarantee=None), _flagged(store, data, saved.point, segments))
    moved_from = saved.data.state.moved_from if saved.data.state else None
    of_all = judge_point(
        point,
        chance=chance_of(data, point, moved_from),
        disputed=count_disputed(data, point),
        moved_from=moved_from,
    )
    given = reason.strip() or saved.data.reason
    require_reason(attempt.detector, of_all, given)
    document = replace(saved.data, segments=segments, state=of_all, reason=given if of_all.known_bad else "")
    store.points.save(replace(saved, id=0, point=point, data=document, chosen_by=by, chosen_at=now))


def _saved_point(store: Store, attempt: Attempt, part: Part) -> SavedPoint:
    """The point that has the common threshold."""
    name, saved = attempt.detector, store.points.latest().get(attempt.detector)
    if saved is None:
        raise BadInput(
            f"{name} has no saved threshold for the rest of its traffic: `choose {name} --policy … --save` first, then "
            f"`{command(attempt)} --save`"
        )
    if saved.config_id != attempt.config_id:
        raise BadInput(
            f"the saved threshold of {name} is of other scores than the certificate: choose one on the same settings "
            f"first (`choose {name} --policy … --save`)"
        )
    segments = saved.data.segments
    if segments is not None and segments.by != part.by:
        raise BadInput(
            f"{name} has thresholds by {segments.by}, and a detector has them by one thing only: certify a segment by "
            f"{segments.by}, or save one threshold for all first (`choose {name} --policy … --save`)"
        )
    return saved


def _flagged(store: Store, data: Evidence, point: OperatingPoint, segments: Segments) -> np.ndarray:
    own = {name: each.threshold for name, each in segments.thresholds.items()}
    names = store.traces.segments([row.pk for row in data.rows], segments.by)
    thresholds = np.array([point.threshold if name is None else own.get(name, point.threshold) for name in names])
    return flags(data.scores, thresholds, point.flag_when)
