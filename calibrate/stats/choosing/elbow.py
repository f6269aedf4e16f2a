"""How steady the elbow of a curve is, and the knee that a common method would take instead."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.stats.choosing.bootstrap_curves import bootstrap
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import FlagWhen

REFITS = 200  # quartiles need no more, and each is a fit


@dataclass(frozen=True)
class Spread:
    """The quartiles of a threshold over resampled labels, in the detector's units."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Elbow:
    """What is known of an elbow beside its place: its `spread`, and the `knee` to compare it with; None: not known."""

    spread: Spread | None
    knee: float | None

    @property
    def sentence(self) -> str:
        """ "Were as many labels drawn again, half of the elbows would lie from 0.42 to 0.51. Kneedle's knee is …"."""
        said = "How steady the elbow is cannot be told: too few of these labels are of one kind."
        if self.spread is not None:
            reach = f"from {self.spread.low:.4g} to {self.spread.high:.4g}"
            said = f"Were as many labels drawn again, half of the elbows would lie {reach}."
        if self.knee is None:
            return said
        return f"{said} For comparison, Kneedle's knee of the unsmoothed curve, which is less steady: {self.knee:.4g}."


def elbow_spread(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    rng: np.random.Generator,
    weights: ArrayLike | None = None,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
    flag_when: FlagWhen = "above",
    count: int = REFITS,
) -> Spread | None:
    """Where the middle half of the elbows lies when the labels are drawn again, `low` to `high`; arguments as for
    `bootstrap`. None where half the resamples or more hold one class only."""
    chosen = bootstrap(
        labels, scores, rng=rng, weights=weights, design=design, groups=groups, flag_when=flag_when,
        policy=Policy("elbow"), count=count,
    ).chosen  # fmt: skip
    known = chosen[~np.isnan(chosen)]
    if len(known) <= count / 2:
        return None
    return Spread(*(float(quartile) for quartile in np.quantile(known, (0.25, 0.5, 0.75))))


def knee(sweep: Sweep) -> float | None:
    """Kneedle's knee of the measured precision/recall curve (Satopaa et al., ICDCS Workshops 2011), for comparison.

    The threshold whose point is furthest above the chord of the curve, both axes scaled to 0..1, nothing smoothed. It
    jumps from sample to sample. None where the curve has no extent.
    """
    if sweep.missing:
        return None
    recall, precision = sweep.recall, sweep.precision
    across, up = np.ptp(recall), np.ptp(precision)
    if not across or not up:
        return None
    above = (recall - recall.min()) / across + (precision - precision.min()) / up
    return float(sweep.thresholds[np.argmax(above)])
