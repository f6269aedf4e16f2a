"""How steady the elbow of a precision/recall curve is, and whether it is worth its threshold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from calibrate.orientation import suspicion
from calibrate.stats.choosing.bootstrap_curves import bootstrap_curves
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.sweep.design import Design
from calibrate.types import FlagWhen, Interval

REFITS = 200  # quartiles need no more, and each is a fit
MOST = 0.5
"""The share of the traffic above which a threshold flags most of it: no queue, but the traffic in another order."""


@dataclass(frozen=True)
class Spread:
    """The quartiles of a threshold over resampled labels, in the detector's units."""

    low: float
    median: float
    high: float


class ElbowDoubt(StrEnum):
    """Why an elbow is hardly a threshold."""

    NO_BETTER = "no better"  # the interval of what its F1 gains on flagging everything reaches 0
    FLAGS_MOST = "flags most"  # it flags more than half of the traffic


@dataclass(frozen=True)
class Elbow:
    """How steady an elbow is: its `spread`, or None where too few labels are of one kind to tell; and what it is worth:
    its measured `f1`, that of flagging `everything` that has a score, their difference with its 95% interval (None
    where it cannot be told), and the `flag_rate`, each 0 to 1."""

    spread: Spread | None
    f1: float
    everything: float
    gain: Interval
    flag_rate: float

    @property
    def doubts(self) -> tuple[ElbowDoubt, ...]:
        no_better = self.gain.low is None or self.gain.low <= 0
        doubts = ((ElbowDoubt.NO_BETTER, no_better), (ElbowDoubt.FLAGS_MOST, self.flag_rate > MOST))
        return tuple(doubt for doubt, holds in doubts if holds)


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
    """Where the middle half of the elbows lies when the labels are drawn again.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    rng : Generator
        Source of the random draws.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: all alike.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The sources a trace shares with others; default: none shares any.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    count : int
        How many resamples.

    Returns
    -------
    Spread or None
        Quartiles in the detector's units; None where half the resamples or more hold one class only.
    """
    chosen = bootstrap_curves(
        labels, scores, rng=rng, weights=weights, design=design, groups=groups, flag_when=flag_when,
        policy=Policy("elbow"), count=count,
    ).chosen  # fmt: skip
    elbows = chosen[~np.isnan(chosen)]
    if len(elbows) <= count / 2:
        return None
    return Spread(*(float(quartile) for quartile in np.quantile(elbows, (0.25, 0.5, 0.75))))


def elbow_gain(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    cut: float,
    rng: np.random.Generator,
    weights: ArrayLike | None = None,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
    flag_when: FlagWhen = "above",
) -> tuple[float | None, float | None]:
    """How much more F1 a threshold has than flagging everything that has a score: the 95% interval by percentiles.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    cut : float
        The threshold, in the detector's units.
    rng : Generator
        Source of the random draws.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: all alike.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The sources a trace shares with others; default: none shares any.
    flag_when : {"above", "below"}
        The detector's suspicious side.

    Returns
    -------
    tuple of float or None
        Lower and upper bound of the difference of the F1s; None where most resamples cannot tell.
    """
    values = np.asarray(scores, dtype=np.float64)
    loosest = values[np.nanargmin(suspicion(values, flag_when))]
    drawn = bootstrap_curves(
        labels, scores, rng=rng, weights=weights, design=design, groups=groups, flag_when=flag_when,
        thresholds=[cut, loosest],
    )  # fmt: skip
    precision, recall = np.nan_to_num(drawn.precision), drawn.recall
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    gains = (f1[:, 0] - f1[:, 1])[~np.isnan(recall[:, 1])]
    if len(gains) <= len(f1) / 2:
        return None, None
    low, high = np.quantile(gains, (0.025, 0.975))
    return float(low), float(high)
