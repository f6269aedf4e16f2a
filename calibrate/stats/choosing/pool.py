"""The traffic's scores: how much of the traffic a threshold flags, and how many traces a day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.intervals.binomial_intervals import wilson
from calibrate.stats.sweep.design import Floats
from calibrate.types import Counted, FlagWhen, Interval, OperatingPoint


@dataclass(frozen=True)
class Pool:
    """Traffic, labelled or not: a detector's `scores`, NaN for a trace it could not score, and traces a day.

    `per_day` is None for traces without a time.
    """

    scores: Floats
    per_day: float | None

    def __post_init__(self) -> None:
        if np.isinf(self.scores).any():
            raise BadInput(f"{np.isinf(self.scores).sum()} scores are infinite: a detector that cannot score abstains")

    def cuts(self, flag_when: FlagWhen) -> Floats:
        """Every score of the traffic once, the strictest threshold first."""
        scores = np.unique(self.scores[~np.isnan(self.scores)])
        return np.asarray(scores[np.argsort(-suspicion(scores, flag_when))])

    @cached_property
    def _ascending(self) -> Floats:
        return np.sort(self.scores[~np.isnan(self.scores)])

    def flag_rate(self, thresholds: Floats, flag_when: FlagWhen) -> Floats:
        """The share of the traffic that is flagged at each threshold, 0 to 1."""
        keys = np.sort(-suspicion(self._ascending, flag_when), kind="stable")  # at once, as they are in order
        return np.searchsorted(keys, -suspicion(thresholds, flag_when), side="right") / max(len(self.scores), 1)

    def flags_a_day(self, threshold: float, flag_when: FlagWhen) -> float | None:
        """How many traces a threshold flags a day; None for traces without a time."""
        rate = float(self.flag_rate(np.array([threshold]), flag_when)[0])
        return None if self.per_day is None else rate * self.per_day


def count_flags(point: OperatingPoint, pool: Pool) -> OperatingPoint:
    """The point with its flags counted in the traffic, not estimated from labels.

    For the window the share is known; the interval is Wilson's, of traffic to come whose traces are flagged one by one.

    Parameters
    ----------
    point : OperatingPoint
        A chosen point.
    pool : Pool
        The traffic, nearly all of it with a score.

    Returns
    -------
    OperatingPoint
        With `counted` and its flag rate.
    """
    if not len(pool.scores):
        return point
    share = pool.flag_rate(np.array([point.threshold]), point.flag_when)
    bounds = wilson(share, np.array([float(len(pool.scores))]))
    rate = Interval(float(share[0]), float(bounds.low[0]), float(bounds.high[0]))
    counted = Counted(round(float(share[0]) * len(pool.scores)), len(pool.scores))
    return replace(point, flag_rate=rate, counted=counted)
