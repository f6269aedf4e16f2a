"""Whether a detector's scores moved between two windows of traffic, without labels.

Three two-sample tests a detector: of its scores, by the energy distance (Székely and Rizzo 2013), with
the p-value of a permutation test; of the share it flags at the live threshold, and of the
share it could score, by Fisher's exact test. Traces that share their sources are permuted as one block, those of a
block that reaches into both windows as two, which can only hide a change. Over all tests Holm's correction (1979)
holds the chance that any of them is wrong in a quiet week at `alpha`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import FlagWhen

ALPHA = 0.05
POWER = 0.8
ENOUGH = 20  # scores on each side, without which nothing is tested
GROUPS = 10  # of shared sources that each side's traces come from: whole groups are exchanged, and few have few places
STOP_AT = 30  # permutations as far apart as the data, after which a test is over: nothing moved
ROOM = 4  # a test can show a p-value so many times below the level that Holm's first step asks for
MOST_PERMUTATIONS = 20_000
POINTS = 256  # at which two distributions are compared at most
BATCH = 1000  # permutations in memory at once

Counts = NDArray[Any]  # whole numbers, of whatever type


@dataclass(frozen=True)
class Window:
    """The scores of a window's traces in the detector's units, NaN for one it could not score. `blocks`: a number for
    each trace's group of shared sources, None where all stand alone."""

    scores: Floats
    blocks: Ints | None = None


@dataclass(frozen=True)
class Side:
    """A window in figures: of `traces`, `scored` have a score and `flagged` reach the threshold. Of the scores the
    median and the 10% and 90% points, in the detector's units; None without scores. `groups` of shared sources, a
    trace that stands alone being one."""

    traces: int
    scored: int
    flagged: int
    median: float | None
    low: float | None
    high: float | None
    groups: int

    @property
    def flag_rate(self) -> float | None:
        """The share of the traces that is flagged, 0 to 1; what has no score is not."""
        return self.flagged / self.traces if self.traces else None

    @property
    def coverage(self) -> float | None:
        """The share of the traces that could be scored, 0 to 1."""
        return self.scored / self.traces if self.traces else None


@dataclass(frozen=True)
class Shift:
    """How a window differs from the one before it; p-values are those of each test alone, None where there was too
    little to test.

    `size` is the energy coefficient: 0 for equal distributions, 1 for two different constants. `visible` is the
    smallest shift of all scores, in the detector's units, that the test would have shown in four weeks of five; None
    where that cannot be said.
    """

    before: Side
    now: Side
    size: float | None
    p_scores: float | None
    p_flags: float | None
    p_coverage: float | None
    visible: float | None

    @property
    def difference(self) -> float | None:
        """Of the medians, now less before: below 0 where scores are lower now."""
        if self.before.median is None or self.now.median is None:
            return None
        return self.now.median - self.before.median

    @property
    def p_values(self) -> tuple[float | None, float | None, float | None]:
        return self.p_scores, self.p_flags, self.p_coverage


@dataclass(frozen=True)
class Moved:
    """What moved beyond chance, all tests of the report taken together."""

    scores: bool = False
    flags: bool = False
    coverage: bool = False

    @property
    def any(self) -> bool:
        return self.scores or self.flags or self.coverage


def compare_windows(
    before: Window,
    now: Window,
    *,
    threshold: float,
    flag_when: FlagWhen,
    rng: np.random.Generator,
    tests: int = 1,
    alpha: float = ALPHA,
) -> Shift:
    """One detector's scores in two windows.

    `tests`: of how many the p-values will be judged together (three a detector); it sets how small a p-value can get.

    Parameters
    ----------
    before, now : Window
        The scores of two windows of traffic.
    threshold : float
        The live threshold, in the detector's units.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    rng : Generator
        Draws the permutations.
    tests : int
        How many p-values will be judged together, three a detector.
    alpha : float
        The error over all of them, between 0 and 1.

    Returns
    -------
    Shift
        Sizes and p-values of what moved.

    Raises
    ------
    BadInput
        For infinite scores.

    References
    ----------
    Székely and Rizzo, Journal of Statistical Planning and Inference 143 (2013).
    """
    if np.isinf(before.scores).any() or np.isinf(now.scores).any():
        raise BadInput("a score of the window is infinite: a detector that cannot score must abstain; run it again")
    most = permutations_needed(tests, alpha)
    pooled = _pooled(before, now)
    scored = ~np.isnan(pooled.scores)
    flagged = flags(pooled.scores, threshold, flag_when)
    sides = [
        _side(pooled.scores[side], flagged[side], groups=_units(pooled, side)) for side in (~pooled.now, pooled.now)
    ]
    scored_pool = pooled.only(scored)
    apart = min(side.groups for side in sides) >= GROUPS
    enough = apart and min(side.scored for side in sides) >= ENOUGH
    traces = apart and min(side.traces for side in sides) >= ENOUGH
    return Shift(
        before=sides[0],
        now=sides[1],
        size=energy_coefficient(scored_pool.scores[~scored_pool.now], scored_pool.scores[scored_pool.now])
        if enough
        else None,
        p_scores=_p_scores(scored_pool, most, rng) if enough else None,
        p_flags=_p_share(pooled, flagged, most, rng) if traces else None,
        p_coverage=_p_share(pooled, scored, most, rng) if traces else None,
        visible=_visible(scored_pool, alpha / tests) if enough else None,
    )


def judge_shifts(shifts: Sequence[Shift], *, alpha: float = ALPHA) -> list[Moved]:
    """What moved, each shift's tests judged with those of all the others: in a quiet week nothing is said to have moved
    with a probability of at least 1 - alpha.

    Parameters
    ----------
    shifts : sequence of Shift
        One a detector.
    alpha : float
        The error over all tests, between 0 and 1.

    Returns
    -------
    list of Moved
        One per shift.
    """
    tests = [(i, j, p) for i, shift in enumerate(shifts) for j, p in enumerate(shift.p_values) if p is not None]
    moved = [[False, False, False] for _ in shifts]
    for (i, j, _), rejected in zip(tests, holm([p for _, _, p in tests], alpha), strict=True):
        moved[i][j] = bool(rejected)
    return [Moved(*parts) for parts in moved]


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> Bools:
    """Which hypotheses fall, so that any true one falls with a probability of at most alpha (Holm 1979): the smallest p
    against alpha / m, the next against alpha / (m - 1), up to the first that stands.

    Parameters
    ----------
    p_values : sequence of float
        0 to 1.
    alpha : float
        The error over all, between 0 and 1.

    Returns
    -------
    array of bool, shape (tests,)
        Whether each hypothesis falls.

    References
    ----------
    Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    passes = p[order] <= alpha / np.arange(len(p), 0, -1)
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.cumsum(~passes) == 0
    return rejected


def permutations_needed(tests: int, alpha: float = ALPHA) -> int:
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
    """The squared energy distance 2 E|X - Y| - E|X - X'| - E|Y - Y'| of two samples, in the scores' units, 0 or more;
    in one dimension twice the integral of (F - G)^2, and so one sort.

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
    """The energy distance as a share of the most it could be, 2 E|X - Y|: 0 for equal samples, 1 for two different
    constants (Rizzo and Székely 2016).

    Parameters
    ----------
    x, y : array of float, shape (traces,)
        Scores of each sample, at least one.

    Returns
    -------
    float
        0 to 1.
    """
    apart = _mean_apart(x, y)
    return squared_energy_distance(x, y) / (2 * apart) if apart > 0 else 0.0


@dataclass(frozen=True)
class _Pooled:
    scores: Floats
    now: Bools
    blocks: Ints | None

    def only(self, rows: Bools) -> _Pooled:
        blocks = None if self.blocks is None else np.unique(self.blocks[rows], return_inverse=True)[1]
        return _Pooled(self.scores[rows], self.now[rows], blocks)


def _pooled(before: Window, now: Window) -> _Pooled:
    scores = np.concatenate([before.scores, now.scores]).astype(np.float64)
    later = np.repeat([False, True], [len(before.scores), len(now.scores)])
    if before.blocks is None and now.blocks is None:
        return _Pooled(scores, later, None)
    each = [np.arange(len(w.scores)) if w.blocks is None else w.blocks for w in (before, now)]
    apart = np.concatenate([2 * each[0], 2 * each[1] + 1])
    return _Pooled(scores, later, np.unique(apart, return_inverse=True)[1])


def _p_scores(pool: _Pooled, most: int, rng: np.random.Generator) -> float:
    """The energy distance is a sum of w (F - G)^2 over the scores, w the gap to the next. Of more than 256 distinct
    scores, the last of each of 256 equal parts of the pool is taken: as exact a test, of nearly the same statistic."""
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


def _p_share(pool: _Pooled, hit: Bools, most: int, rng: np.random.Generator) -> float:
    """Fisher's two-sided exact test, which is the permutation test of all orders; with blocks, of drawn ones."""
    if pool.blocks is not None:
        return _p_scores(_Pooled(hit.astype(np.float64), pool.now, pool.blocks), most, rng)
    from scipy.stats import fisher_exact

    counts = [[int((hit & side).sum()), int((~hit & side).sum())] for side in (pool.now, ~pool.now)]
    return float(fisher_exact(counts).pvalue)


def _permutation_p(
    pool: _Pooled, places: Ints, apart: Callable[[Counts], Floats], most: int, rng: np.random.Generator
) -> float:
    """Besag and Clifford's (1991) sequential Monte Carlo p-value: over when STOP_AT permutations were as far apart as
    the data, else after `most`. P[p <= a] <= a for every a where nothing moved. `apart` takes how many traces of the
    window now lie in each place, shape (permutations, places)."""
    draw = _shuffled(pool, places, rng)
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


def _shuffled(pool: _Pooled, places: Ints, rng: np.random.Generator) -> Callable[[int], Counts]:
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


def _visible(pool: _Pooled, level: float) -> float | None:
    """The shift that a comparison of means shows with a power of 80% at the level, on as many blocks: what the energy
    test shows of scores near normal, to some percent (calibrate.simulate.drifting)."""
    spread = float(pool.scores[~pool.now].std())
    if not spread:
        return None
    sizes = [_units(pool, side) for side in (~pool.now, pool.now)]
    normal = NormalDist()
    away = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)
    return away * spread * float(np.sqrt(sum(1 / size for size in sizes)))


def _units(pool: _Pooled, side: Bools) -> int:
    return int(side.sum()) if pool.blocks is None else len(np.unique(pool.blocks[side]))


def _side(scores: Floats, flagged: Bools, *, groups: int) -> Side:
    values = scores[~np.isnan(scores)]
    points = [float(q) for q in np.quantile(values, [0.5, 0.1, 0.9])] if len(values) else [None] * 3
    median, low, high = points
    return Side(len(scores), len(values), int(flagged.sum()), median, low, high, groups)


def _mean_apart(x: Floats, y: Floats) -> float:
    """E|X - Y| = the integral of F (1 - G) + G (1 - F)."""
    values, steps = np.unique(np.concatenate([x, y]), return_inverse=True)
    f = np.cumsum(np.bincount(steps[: len(x)], minlength=len(values)))[:-1] / len(x)
    g = np.cumsum(np.bincount(steps[len(x) :], minlength=len(values)))[:-1] / len(y)
    return float(np.diff(values) @ (f * (1 - g) + g * (1 - f)))
