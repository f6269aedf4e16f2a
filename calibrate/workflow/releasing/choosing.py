"""Choose an operating point, judge it by what is known against it, and save it where nothing stands in the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from calibrate.errors import BadInput
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.types import OperatingPoint, PointState, Strength
from calibrate.workflow.evidence import traffic
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing.known_bad import last_target, state_of_choice
from calibrate.workflow.tuning import operating_points
from db import Store


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen point, what is known against it, and whether it was saved: the next release then takes it.

    `unheld`: it was set by hand, and nothing says what it must reach, so it is saved for a reason only.
    """

    point: OperatingPoint
    state: PointState
    saved: bool = False
    unheld: bool = False

    @property
    def threshold(self) -> float:
        """In the detector's units; a trace whose score equals it is flagged."""
        return self.point.threshold


def choose(
    store: Store,
    data: Evidence,
    policy: Policy,
    *,
    strength: Strength = "measured",
    looks: int = 1,
    moved_from: str | None = None,
    reason: str = "",
    save: bool = False,
    by: str,
    now: datetime,
) -> Choice:
    """Choose the point that the policy asks for, and with `save` save it.

    `moved_from` is the policy that a threshold set by hand is judged by, by default what was asked for last. A point
    that meets no policy is not saved, and one that is known to be bad, or that nothing is known to hold to, only with a
    `reason`. Raises BadInput as `choose_point` does, and for a `moved_from` that nothing reads.
    """
    pool = (traffic.scored_traffic if policy.kind == "alerts" else traffic.counted_traffic)(store, data)
    point = operating_points.choose_point(data, policy, strength=strength, pool=pool, looks=looks)
    target = _target_of(store, data.config.name, policy, moved_from, now)
    state = state_of_choice(store, data, point, moved_from=target)
    unheld = policy.kind == "manual" and target is None  # to nothing: whatever it is, it would pass
    saved = save and point.feasible and (bool(reason.strip()) or not (state.known_bad or unheld))
    if saved:
        operating_points.save_point(store, data, point, state=state, reason=reason.strip(), by=by, now=now)
    return Choice(point, state, saved, unheld)


def _target_of(store: Store, detector: str, policy: Policy, moved_from: str | None, now: datetime) -> str | None:
    """What a threshold set by hand is judged by; None where nothing was asked for. Raises BadInput for an option that
    nothing reads."""
    if policy.kind != "manual":
        if moved_from:
            raise BadInput(
                f"--moved-from goes with --policy manual:THRESHOLD, and the policy is {policy}: leave it out"
            )
        return None
    return str(parse(moved_from)) if moved_from else last_target(store, detector, now)
