"""Permutation tests of two windows of scores: the energy distance, and shares by Fisher's exact test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.stats.sweep.design import Bools, Floats, Ints

STOP_AT = 30  # permutations as far apart as the data, after which a test is over: nothing moved
ROOM = 4  # a test can show a p-value so many times below the level that Holm's first step asks for
MOST_PERMUTATIONS = 20_000
POINTS = 256  # at which two distributions are compared at most
BATCH = 1000  # permutations in memory at once

Counts = NDArray[Any]  # whole numbers, of whatever type


@dataclass(frozen=True)
class Pooled:
    """The scores of two windows together. `now` says which are of the later one; `blocks` number the groups of shared
    sources, None where every trace stands alone."""

    scores: Floats
    now: Bools
    blocks: Ints | None

    def only(self, rows: Bools) -> Pooled:
        blocks = None if self.blocks is None else np.unique(self.blocks[rows], return_inverse=True)[1]
        return Pooled(self.scores[rows], self.now[rows], blocks)


def permutations_needed(tests: int, alpha: float = 0.05) -> int:
    """How many permutations it takes to tell a p-value well below alpha / tests, 20,000 at most.

    Parameters
    ----------
    tests : int
        How many p-values are judged together.
    alpha : float
        The error over all, between 0 and 1.

    Returns
    -------
    int
        999 to 20,000.
    """
    return min(MOST_PERMUTATIONS, max(999, round(ROOM * tests / alpha)))


def squared_energy_distance(x: Floats, y: Floats) -> float:
    """The squared energy distance 2 E|X - Y| - E|X - X'| - E|Y - Y'| of two samples.

    In one dimension it is twice the integral of (F - G)^2, and so one sort.

    Parameters
    ----------
    x, y : array of float, shape (traces,)
        Scores of each sample, at least one.

    Returns
    -------
    float
        In the scores' unit.

    References
    ----------
    Székely and Rizzo, Journal of Statistical Planning and Inference 143 (2013).
    """
    values, steps = np.unique(np.concatenate([x, y]), return_inverse=True)
    share_x = np.cumsum(np.bincount(steps[: len(x)], minlength=len(values))) / len(x)
    share_y = np.cumsum(np.bincount(steps[len(x) :], minlength=len(values))) / len(y)
    return float(2 * np.diff(values) @ ((share_x - share_y) ** 2)[:-1])


def energy_coefficient(x: Floats, y: Floats) -> float:
    """The energy distance as a share of the most it could be: 0 for equal samples, 1 for two different constants.

    Parameters
    ----------
    x, y : array of float, shape (traces,)
        Scores of each sample, at least one.

    Returns
    -------
    float
        0 to 1.
    """
    apart = _mean_distance(x, y)
    return squared_energy_distance(x, y) / (2 * apart) if apart > 0 else 0.0


def scores_p_value(pool: Pooled, most: int, rng: np.random.Generator) -> float:
    """Test whether the scores of two windows differ.

    The energy distance is a sum of w (F - G)^2 over the scores, w the gap to the next. Of more than 256 distinct
    scores, the last of each of 256 equal parts of the pool is taken: as exact a test, of nearly the same statistic.

    Parameters
    ----------
    pool : Pooled
        Traces with a score.
    most : int
        Permutations, at most.
    rng : Generator
        Draws them.

    Returns
    -------
    float
        0 to 1.
    """
    values, places = np.unique(pool.scores, return_inverse=True)
    if len(values) > POINTS:
        cuts = np.unique(np.quantile(pool.scores, np.arange(1, POINTS + 1) / POINTS, method="inverted_cdf"))
        places, values = np.searchsorted(cuts, pool.scores), cuts
    if len(values) == 1:
        return 1.0
    n, upto = len(pool.scores), np.cumsum(np.bincount(places))[:-1]
    w = np.diff(values)

    def apart(counts: Counts) -> Floats:
        later = np.cumsum(counts, axis=1, dtype=np.float64)  # as the data are: equal must compare equal
        total = later[:, -1:]
        return np.asarray(((later[:, :-1] / total - (upto - later[:, :-1]) / (n - total)) ** 2) @ w)

    return _permutation_p(pool, places, apart, most, rng)


def share_p_value(pool: Pooled, hit: Bools, most: int, rng: np.random.Generator) -> float:
    """Test whether the share of hits of two windows differs.

    Fisher's two-sided exact test, which is the permutation test of all orders; with blocks, of drawn ones.

    Parameters
    ----------
    pool : Pooled
        All traces.
    hit : array of bool, shape (traces,)
        Which traces count.
    most : int
        Permutations, at most.
    rng : Generator
        Draws them.

    Returns
    -------
    float
        0 to 1.
    """
    if pool.blocks is not None:
        return scores_p_value(Pooled(hit.astype(np.float64), pool.now, pool.blocks), most, rng)
    from scipy.stats import fisher_exact

    counts = [[int((hit & side).sum()), int((~hit & side).sum())] for side in (pool.now, ~pool.now)]
    return float(fisher_exact(counts).pvalue)


def _permutation_p(
    pool: Pooled, places: Ints, apart: Callable[[Counts], Floats], most: int, rng: np.random.Generator
) -> float:
    """Besag and Clifford's (1991) sequential Monte Carlo p-value: over when STOP_AT permutations were as far apart as
    the data, else after `most`. P[p <= a] <= a for every a where nothing moved. `apart` takes how many traces of the
    window now lie in each place, shape (permutations, places)."""
    draw = _shuffle(pool, places, rng)
    observed = float(apart(np.bincount(places[pool.now], minlength=places.max() + 1)[None])[0]) * (1 - 1e-9)
    as_far = done = 0
    while done < most:
        times = min(most - done, max(100, done), BATCH)
        hits = apart(draw(times)) >= observed
        if as_far + hits.sum() >= STOP_AT:
            return STOP_AT / (done + 1 + int(np.argmax(np.cumsum(hits) == STOP_AT - as_far)))
        as_far += int(hits.sum())
        done += times
    return (as_far + 1) / (done + 1)


def _shuffle(pool: Pooled, places: Ints, rng: np.random.Generator) -> Callable[[int], Counts]:
    """Draws that many times at random which traces, or blocks, are the ones of the window now."""
    if pool.blocks is None:
        counts, n = np.bincount(places), int(pool.now.sum())
        return lambda times: rng.multivariate_hypergeometric(counts, n, size=times, method="marginals")
    units = int(pool.blocks.max()) + 1
    table = np.zeros((units, int(places.max()) + 1), dtype=np.float32)
    np.add.at(table, (pool.blocks, places), 1)
    later = np.zeros(units, dtype=np.float32)
    later[pool.blocks] = pool.now
    return lambda times: rng.permuted(np.broadcast_to(later, (times, units)), axis=1) @ table


def _mean_distance(x: Floats, y: Floats) -> float:
    """E|X - Y| = the integral of F (1 - G) + G (1 - F)."""
    values, steps = np.unique(np.concatenate([x, y]), return_inverse=True)
    f = np.cumsum(np.bincount(steps[: len(x)], minlength=len(values)))[:-1] / len(x)
    g = np.cumsum(np.bincount(steps[len(x) :], minlength=len(values)))[:-1] / len(y)
    return float(np.diff(values) @ (f * (1 - g) + g * (1 - f)))
