"""How steady the elbow of a precision/recall curve is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.stats.choosing.bootstrap_curves import bootstrap_curves
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.sweep.design import Design
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
    """How steady an elbow is: its `spread`, or None where too few labels are of one kind to tell."""

    spread: Spread | None


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
