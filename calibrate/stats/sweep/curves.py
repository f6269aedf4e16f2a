"""One curve or thousands of resampled ones: what every threshold flags, and the shares that makes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Sweep


@dataclass(frozen=True)
class Curve:
    """What is flagged at every threshold, strict to loose along the last axis; leading axes, if any, are resamples.

    `tp` and `fp` are weighted sums. `positives` and `n` weigh all that is hallucinated and all there is, scored or not;
    their last axis is 1. A NaN in a share says that its denominator is empty.
    """

    tp: Floats
    fp: Floats
    positives: Floats
    n: Floats

    @classmethod
    def of(cls, sweep: Sweep) -> Curve:
        return cls(sweep.tp, sweep.fp, np.array([sweep.weighted_positives]), np.array([sweep.weighted_n]))

    @cached_property
    def precision(self) -> Floats:
        """Of what is flagged, the share that is hallucinated."""
        return _share(self.tp, self.tp + self.fp)

    @cached_property
    def recall(self) -> Floats:
        """Of all hallucinations, the share that is flagged, end to end."""
        return _share(self.tp, self.positives)

    def f_beta(self, beta: float) -> Floats:
        """(1 + b^2) tp / ((1 + b^2) tp + b^2 misses + fp): recall counts b times as much as precision."""
        square = beta**2
        return _share((1 + square) * self.tp, self.tp + self.fp + square * self.positives)

    def cost(self, false_alarm: float, miss: float) -> Floats:
        """The price of the false alarms and misses that a trace of the traffic brings on average."""
        return _share(false_alarm * self.fp + miss * (self.positives - self.tp), self.n)


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(part / whole)
