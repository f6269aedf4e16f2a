"""Whether a detector's scores moved between two windows of traffic, without labels.

Three two-sample tests a detector: of its scores, by a permutation test of the energy distance (Székely and Rizzo 2013);
of the share it flags at the live threshold, and of the share it could score, by Fisher's exact test. Traces that share
their sources are permuted as one block, those of a block that reaches into both windows as two, which can only hide a
change. Over all tests Holm's correction (1979) holds the chance that any of them is wrong in a quiet week at `alpha`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.stats.monitoring.permutation import (
    Pooled,
    energy_coefficient,
    permutations_needed,
    scores_p_value,
    share_p_value,
)
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import FlagWhen

ALPHA = 0.05
POWER = 0.8
ENOUGH = 20  # scores on each side, without which nothing is tested
GROUPS = 10  # of shared sources that each side's traces come from: whole groups are exchanged, and few have few places


@dataclass(frozen=True)
class Window:
    """The scores of a window's traces in the detector's units, NaN for one it could not score. `blocks`: a number for
    each trace's group of shared sources, None where all stand alone. `thresholds`: the live threshold of each trace,
    None where one is for all."""

    scores: Floats
    blocks: Ints | None = None
    thresholds: Floats | None = None


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
    """Compare one detector's scores in two windows. `tests` sets how small a p-value can get.

    Parameters
    ----------
    before, now : Window
        The scores of two windows of traffic.
    threshold : float
        The live threshold, in the detector's units, of a window without thresholds of its own.
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
    pooled = _pool_windows(before, now)
    scored = ~np.isnan(pooled.scores)
    thresholds = [
        np.full(len(window.scores), threshold) if window.thresholds is None else window.thresholds
        for window in (before, now)
    ]
    flagged = flags(pooled.scores, np.concatenate(thresholds), flag_when)
    sides = [
        _summarise_side(pooled.scores[side], flagged[side], groups=_number_units(pooled, side))
        for side in (~pooled.now, pooled.now)
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
        p_scores=scores_p_value(scored_pool, most, rng) if enough else None,
        p_flags=share_p_value(pooled, flagged, most, rng) if traces else None,
        p_coverage=share_p_value(pooled, scored, most, rng) if traces else None,
        visible=_visible_shift(scored_pool, alpha / tests) if enough else None,
    )


def judge_shifts(shifts: Sequence[Shift], *, alpha: float = ALPHA) -> list[Moved]:
    """Judge what moved, each shift's tests with those of all the others.

    In a quiet week nothing is called moved with a probability of at least 1 - alpha.

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
    """Which hypotheses fall, so that any true one falls with a probability of at most alpha.

    The smallest p against alpha / m, the next against alpha / (m - 1), up to the first that stands.

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


def _pool_windows(before: Window, now: Window) -> Pooled:
    scores = np.concatenate([before.scores, now.scores]).astype(np.float64)
    later = np.repeat([False, True], [len(before.scores), len(now.scores)])
    if before.blocks is None and now.blocks is None:
        return Pooled(scores, later, None)
    each = [np.arange(len(w.scores)) if w.blocks is None else w.blocks for w in (before, now)]
    apart = np.concatenate([2 * each[0], 2 * each[1] + 1])
    return Pooled(scores, later, np.unique(apart, return_inverse=True)[1])


def _visible_shift(pool: Pooled, level: float) -> float | None:
    """The shift that a comparison of means shows with a power of 80% at the level, on as many blocks: what the energy
    test shows of scores near normal, to some percent (calibrate.simulate.drifting)."""
    spread = float(pool.scores[~pool.now].std())
    if not spread:
        return None
    sizes = [_number_units(pool, side) for side in (~pool.now, pool.now)]
    normal = NormalDist()
    away = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)
    return away * spread * float(np.sqrt(sum(1 / size for size in sizes)))


def _number_units(pool: Pooled, side: Bools) -> int:
    return int(side.sum()) if pool.blocks is None else len(np.unique(pool.blocks[side]))


def _summarise_side(scores: Floats, flagged: Bools, *, groups: int) -> Side:
    values = scores[~np.isnan(scores)]
    points = [float(q) for q in np.quantile(values, [0.5, 0.1, 0.9])] if len(values) else [None] * 3
    median, low, high = points
    return Side(len(scores), len(values), int(flagged.sum()), median, low, high, groups)
