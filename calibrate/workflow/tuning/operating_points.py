"""The operating point that a policy chooses on the evidence, how steady its elbow is, and saving it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.choosing.choose import choose, choose_bounded
from calibrate.stats.choosing.elbow import Elbow, elbow_gain, elbow_spread
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.pool import Pool, count_flags
from calibrate.stats.choosing.window_share import WindowShare, window_share
from calibrate.stats.intervals.exact_tests import ALPHA
from calibrate.stats.sweep.curves import Curve
from calibrate.types import Guarantee, Interval, OperatingPoint, PointState, Strength, TraceFilter, UnmetReason
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence.basis import must_describe_traffic
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.tuning.point_state import state_of
from db import Store
from db.points import PointData, SavedPoint


def choose_point(
    data: Evidence, policy: Policy, *, strength: Strength = "measured", pool: Pool | None = None, looks: int = 1
) -> OperatingPoint:
    """The operating point that the policy chooses, measured or bounded. `pool` is the traffic: `alerts` needs it, and
    where it is given the point's flags are counted there. A bounded choice shares its 5% among `looks` detectors and
    looks (Bonferroni).

    Raises BadInput where labels do not allow a choice or do not describe the traffic, and for `certified`, which takes
    labels drawn for it.
    """
    must_describe_traffic(data.caution)
    if strength == "certified":
        raise BadInput(
            f"labels at hand cannot certify a threshold: `certify {data.config.name}`, or Certified on the Tune page, "
            "draws others for it"
        )
    if strength == "bounded":
        point = choose_bounded(data.sweep, policy, detector=data.config.name, alpha=ALPHA / looks)
    else:
        point = choose(data.sweep, policy, detector=data.config.name, pool=pool)
    return point if pool is None else count_flags(point, pool)


def looks_of(guarantee: Guarantee | None) -> int:
    """Among how many detectors and looks a bound shares its 5%; 1 without one."""
    if guarantee is None or guarantee.strength != "bounded":
        return 1
    return round(ALPHA / (1 - guarantee.confidence))


def bootstrap_elbow(data: Evidence) -> Elbow:
    """How steady the elbow of these labels is, and what it is worth. The same labels, the same answer."""
    groups = data.groups if any(data.groups) else None
    point = choose(data.sweep, Policy("elbow"))
    spread = elbow_spread(
        data.labels,
        data.scores,
        rng=np.random.default_rng(0),
        design=data.design,
        groups=groups,
        flag_when=data.flag_when,
    )
    low, high = elbow_gain(
        data.labels,
        data.scores,
        cut=point.threshold,
        rng=np.random.default_rng(0),
        design=data.design,
        groups=groups,
        flag_when=data.flag_when,
    )
    measured = Curve.of(data.sweep).f_beta(1.0)
    f1, everything = (
        float(measured[int(np.flatnonzero(data.sweep.thresholds == point.threshold)[0])]),
        float(measured[-1]),
    )
    return Elbow(spread, f1, everything, Interval(f1 - everything, low, high), point.flag_rate.value or 0.0)


@dataclass(frozen=True)
class BoundedScope:
    """What a bounded choice holds for. `window`: what it flags there, and how much of that is labelled (None without a
    design). `detectors`: settings of detectors with scores beside these labels, of which the choice may be the best;
    `looks`: how many detectors and looks together its error was shared among."""

    window: WindowShare | None
    detectors: int
    looks: int


def bounded_scope(store: Store, data: Evidence, point: OperatingPoint, *, looks: int = 1) -> BoundedScope | None:
    """What a bounded point holds for; None for a point that is not bounded."""
    if point.guarantee is None or point.guarantee.strength != "bounded":
        return None
    window = None if data.design is None else window_share(data.sweep, point.threshold)
    detectors = sum(len(configs) for configs in configurations.configs_by_detector(store).values())
    return BoundedScope(window, detectors, looks)


def octave_would_help(data: Evidence, point: OperatingPoint) -> bool:
    """Whether a sample by octaves is likely to bound what these labels do not: it labels many more flagged traces."""
    unmet = point.why is not None and point.why.reason in (UnmetReason.BOUND, UnmetReason.FEW_FLAGGED)
    return unmet and (data.sample is None or data.sample.design == "random")


def save_point(
    store: Store,
    data: Evidence,
    point: OperatingPoint,
    *,
    state: PointState | None = None,
    reason: str = "",
    by: str,
    now: datetime,
) -> None:
    """Save a chosen point with the labels it was measured on. The next release can then take it.

    `state` is what is known against it, by default by these labels alone. Raises BadInput for a point that is known to
    be bad, without a `reason` to save it all the same.
    """
    state = state or state_of(data, point)
    require_reason(point.detector, state, reason)
    store.points.save(saved_point(store, data, point, state=state, reason=reason, by=by, now=now))


def require_reason(name: str, state: PointState, reason: str) -> None:
    """Raises BadInput for something that is known to be bad, without a reason to save it all the same."""
    if state.known_bad and not reason.strip():
        raise BadInput(
            f"{name}: what is known of it says do not release this ({state.why}), so nothing was saved: take another, "
            "or say why it shall be saved all the same (`--reason TEXT`)"
        )


def saved_point(
    store: Store,
    data: Evidence,
    point: OperatingPoint,
    *,
    state: PointState | None = None,
    reason: str = "",
    by: str,
    now: datetime,
) -> SavedPoint:
    """Make the record that `save_point` would save."""
    state = state or state_of(data, point)
    where = data.sample.filter if data.sample else TraceFilter()
    flagged_only = set() if data.sample else store.labels.of_flagged_only()
    return SavedPoint(
        id=0,
        detector=point.detector,
        config_id=data.config.id,
        sample_id=data.sample.id or None if data.sample else None,  # several samples as one have no id
        point=point,
        data=PointData(
            samples=data.sample.names if data.sample else (),
            design=data.sample.design if data.sample else None,
            label_set_digest=data.digest(),
            n=len(data.rows),
            positives=int(data.labels.sum()),
            since=where.since,
            until=where.until,
            # Of a model of which only flagged answers are labelled, nothing is known of the rest.
            models=tuple(sorted({row.model for row in data.rows if row.model and row.pk not in flagged_only})),
            labels=tuple(sorted((row.content_hash, str(row.gold)) for row in data.rows)),
            state=state,
            reason=reason.strip() if state.known_bad else "",
        ),
        chosen_by=by,
        chosen_at=now,
    )
