"""How many labels a design needs before a precision is known as closely as somebody wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.binomial_intervals import wilson
from calibrate.stats.sampling.designs import allocate


@dataclass(frozen=True)
class Stratum:
    """What a threshold is expected to do in a stratum: the share of its `population` that it flags, 0 to 1, and the
    share of that which is hallucinated; None where that is not known, and taken to be the same in all."""

    population: int
    flagged: float
    precision: float | None = None


def halfwidth(strata: Mapping[str, Stratum], n: int, *, precision: float, confidence: float = 0.95) -> float:
    """Half the width of the interval that `n` labels, allocated as a draw allocates them, are expected to give.

    Wilson at min(P (1 - P) / V, expected flagged labels), the interval of `sweep_intervals`, with V the design variance
    of a ratio, V = sum N_h^2 s_h^2 / n_h / (sum N_h f_h)^2, and residuals f (y - P).

    Parameters
    ----------
    strata : mapping of str to Stratum
        What is expected of each.
    n : int
        Labels.
    precision : float
        The precision expected, between 0 and 1.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    float
        Half of the interval's width, 0 to 0.5.
    """
    taken = allocate({name: stratum.population for name, stratum in strata.items()}, n)
    spread = flagged = labels = 0.0
    for name, stratum in strata.items():
        share, own = stratum.flagged, precision if stratum.precision is None else stratum.precision
        squares = share * (own * (1 - precision) ** 2 + (1 - own) * precision**2)
        residual = squares - (share * (own - precision)) ** 2
        size, drawn = stratum.population, taken[name]
        if drawn:
            spread += size**2 * residual / drawn  # of traffic to come: none of it is drawn
        flagged += size * share
        labels += drawn * share
    if not labels:
        return 0.5
    effective = min(labels, precision * (1 - precision) * flagged**2 / spread) if spread else labels
    interval = wilson(np.array([precision]), np.array([effective]), confidence=confidence)
    return float(interval.high[0] - interval.low[0]) / 2


def labels_needed(strata: Mapping[str, Stratum], wish: float, *, precision: float) -> int | None:
    """The fewest labels whose 95% interval around a precision is expected to be as narrow as wished.

    Parameters
    ----------
    strata : mapping of str to Stratum
        What is expected of each.
    wish : float
        The half-width wished for, above 0.
    precision : float
        The precision expected, between 0 and 1.

    Returns
    -------
    int or None
        Labels; None where all of the traffic would not do.
    """
    if not 0 < wish < 0.5:
        raise BadInput(f"{wish:g} is no half width of an interval: give a number between 0 and 0.5, like 0.1")
    if not 0 < precision < 1:
        raise BadInput(f"a precision of {precision:g} cannot be planned for: give a number between 0 and 1, like 0.7")
    low, high = 0, sum(stratum.population for stratum in strata.values())
    if not high or halfwidth(strata, high, precision=precision) > wish:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = halfwidth(strata, middle, precision=precision) <= wish
        low, high = (low, middle) if enough else (middle, high)
    return high
