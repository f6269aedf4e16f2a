"""What a release says of its own thresholds: the state that each went out with, and why if it was known to be bad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import PointState

STATE = "x-state"
REASON = "reason"


@dataclass(frozen=True)
class Judged:
    """A threshold or an ensemble of a release, what is known against it, and why it is out all the same."""

    name: str
    state: PointState
    reason: str


def states_in(file: ThresholdsFile) -> tuple[Judged, ...]:
    """The states that a release keeps of the thresholds and ensembles that may flag. Older releases keep none."""
    extras = {name: entry.extra for name, entry in sorted(file.detectors.items()) if entry.tier != "off"}
    extras |= {name: entry.extra for name, entry in file.live_ensembles}
    return tuple(judged for name, extra in extras.items() if (judged := _read_state(name, extra)) is not None)


def _read_state(name: str, extra: Mapping[str, Any]) -> Judged | None:
    """Keys that begin with x- are anybody's: what is not ours is passed over."""
    document = extra.get(STATE)
    try:
        state = PointState.from_json(document)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Judged(name, state, str(document.get(REASON, "")) if isinstance(document, Mapping) else "")
