"""The interval of a flag rate where strata are ranked by the score: Wilson's of each stratum, put together (MOVER).

Nearly all strata are flagged whole or not at all then, and what is uncertain is where between them a threshold lies.
An effective size does not see that: it takes a label in the sure strata for one in the others. Distances of each
stratum's bounds from its share, weighted and squared, add up instead (Zou and Donner, Statistics in Medicine 27, 2008;
Yan and Su, Statistics in Biopharmaceutical Research 2, 2010).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrate.stats.sweep.design import Bools, Floats, StratumCounts

Wilson = Callable[[Floats, Floats], tuple[Floats, Floats]]


def flag_rate(strata: StratumCounts, wilson: Wilson) -> tuple[Floats, Floats]:
    """The lower and upper bound at each point; `wilson` gives those of shares on numbers of labels.

    Strata count that are flagged in part. Where exactly one is, those above it are known to be flagged and those below
    not to be: the threshold is in it. Else the heaviest flagged whole may hold a trace that is not, and the lightest
    without a flag one that is.
    """
    there = strata.rows > 0
    flagged, rows = (strata.tp + strata.fp)[there], strata.rows[there][:, None]
    weight = (strata.weight[there] * strata.rows[there])[:, None]
    share = flagged / rows
    low, high = wilson(share, np.broadcast_to(rows.astype(np.float64), share.shape))
    left = (weight / weight.sum()) ** 2
    below, above = left * (share - low) ** 2, left * (high - share) ** 2
    mixed, whole, none = (flagged > 0) & (flagged < rows), flagged == rows, flagged == 0
    elsewhere = mixed.sum(axis=0) != 1
    value = (weight * share).sum(axis=0) / weight.sum()
    down = (below * (mixed | elsewhere & _first(whole, -weight))).sum(axis=0)
    up = (above * (mixed | elsewhere & _first(none, weight))).sum(axis=0)
    return np.maximum(value - np.sqrt(down), 0.0), np.minimum(value + np.sqrt(up), 1.0)


def _first(among: Bools, order: Floats) -> Bools:
    """The one stratum at each point that comes first in `order`, if there is any."""
    at = np.argmin(np.where(among, order, np.inf), axis=0)
    first: Bools = among & (np.arange(len(order))[:, None] == at)
    return first
