"""What a drift report holds: the states, the reasons, and one row for each detector on each model's traffic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from calibrate.stats.monitoring.drift import Moved, Shift
from calibrate.types import FlagWhen, Tier, TraceFilter
from calibrate.workflow.releasing.unknown_models import UnknownModel


class DriftState(StrEnum):
    """What is known of a detector on a model's traffic. RECALIBRATE: the release was made without the model."""

    RECALIBRATE = "recalibrate"
    MOVED = "moved"
    HOLDS = "holds"
    PARTLY_SCORED = "partly scored"
    NOT_SCORED = "not scored"
    TOO_FEW = "too few"
    NO_REFERENCE = "no reference"


class NextStep(StrEnum):
    """What a drift report asks people to do."""

    IMPORT = "import"
    RECHECK = "recheck"
    DETECT = "detect"
    NOTHING = "nothing"


class Stale(StrEnum):
    """Why an entropy baseline cannot be relied on."""

    MISSING = "missing"
    OLD = "old"
    MOVED = "moved"


@dataclass(frozen=True)
class StaleBaseline:
    """An entropy baseline that cannot be relied on; `days` is its age where that is the reason."""

    reason: Stale
    days: int | None = None


@dataclass(frozen=True)
class Gap:
    """Too few scores for a comparison: the detector ran on `scored` of a window's `traces`.

    `live` is True for the window since the release, False for the window before it.
    """

    state: DriftState
    traces: int = 0
    scored: int = 0
    live: bool = True


@dataclass(frozen=True)
class Bins:
    """Both windows' scores in bins of equal width.

    `before` and `now` are shares of each window's scores. Bin i holds edges[i] <= score < edges[i + 1]; the outermost
    bins also hold what lies beyond the edges. All three are empty where there are no scores.
    """

    edges: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]


@dataclass(frozen=True)
class DetectorDrift:
    """One detector on one model's traffic.

    `model` is "(none)" for traces that name no model. `traces` counts those since the release. The detector ran on
    `scored` of them, without refusals. The test drew `compared` of these, and `compared_before` from the window before.
    `shift`, `bins` and `moved` are None where nothing could be compared; `gap` then says which scores are missing.
    `unseen` is True if the release was made without the model. `baseline` says why the entropy baseline is stale; it is
    None if it is not stale, or if the detector has none. `prevalence` holds the shares of hallucinated traces before
    and now. The probability map estimates them without labels, so they only advise; they are None without a map.
    `promised` is the precision that the release is to hold, None where no number is known. `segments` have thresholds
    of their own, told `by` this, the one with most labels first; of an urgent line those
    that have flagged traces to recheck.
    """

    detector: str
    model: str
    tier: Tier
    threshold: float
    flag_when: FlagWhen
    limit: str
    state: DriftState
    unseen: bool
    traces: int
    scored: int
    compared: int
    compared_before: int
    shift: Shift | None
    moved: Moved | None
    bins: Bins | None
    gap: Gap | None
    baseline: StaleBaseline | None
    prevalence: tuple[float, float] | None
    promised: float | None
    by: str | None = None
    segments: tuple[str, ...] = ()

    @property
    def urgent(self) -> bool:
        """Whether it asks for something: it moved, or the release was made without the model."""
        return self.state in (DriftState.MOVED, DriftState.RECALIBRATE)


@dataclass(frozen=True)
class Report:
    """Whether the scores of a release's live detectors have moved.

    `lines` has one row for each detector on each model: detectors by name, and models with most traffic first. `before`
    and `now` are the windows compared, and `now` holds `traces` traces. A test draws at most `cap` traces of a window.
    `alpha` is the chance that a report says of anything that it moved when nothing did. The live window begins at
    `since`, or at the release if that is None. `left_out` counts the models with too little traffic to compare.
    """

    version: int
    released_at: datetime
    models: tuple[str, ...]
    before: TraceFilter
    now: TraceFilter
    traces: int
    unknown: tuple[UnknownModel, ...]
    lines: tuple[DetectorDrift, ...]
    cap: int
    seed: int
    alpha: float
    since: datetime | None = None
    left_out: int = 0

    @property
    def next(self) -> NextStep:
        """The step to take now."""
        if not self.traces:
            return NextStep.IMPORT
        if any(line.shift for line in self.moved):
            return NextStep.RECHECK
        return NextStep.DETECT if self.waiting else NextStep.NOTHING

    @property
    def waiting(self) -> tuple[str, ...]:
        """The detectors that must score the traffic before they can be compared, by name."""
        compared = (DriftState.HOLDS, DriftState.TOO_FEW, DriftState.NO_REFERENCE)
        return tuple(sorted({line.detector for line in self.lines if line.state not in compared}))

    @property
    def moved(self) -> tuple[DetectorDrift, ...]:
        """The lines that ask for something: moved, or a model that the release was made without."""
        return tuple(line for line in self.lines if line.urgent)

    def of(self, detector: str) -> tuple[DetectorDrift, ...]:
        """A detector's lines."""
        return tuple(line for line in self.lines if line.detector == detector)
