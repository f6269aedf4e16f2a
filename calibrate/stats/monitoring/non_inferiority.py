"""Whether a released figure still holds: a test of non-inferiority from intervals of the figure then and now.

The difference, now minus then, gets one-sided bounds from the bounds of both figures (MOVER, Zou and Donner), so each
keeps the interval that fits how its labels were drawn. With a margin d, the figure holds where the lower bound is above
-d, and fell where the upper bound is below -d. Several figures hold together only where each one does, which needs no
correction (an intersection-union test, Berger); that any fell is tested at FELL / figures each (Bonferroni).

References
----------
Zou and Donner, Statistics in Medicine 27 (2008). Berger, Technometrics 24 (1982). Wellek, Testing Statistical
Hypotheses of Equivalence and Noninferiority, 2nd ed. (2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrate.stats.sweep.design import Floats
from calibrate.types import Interval

ALPHA = 0.03
"""The error of each bound. Whoever labels what a first test asked for, and tests again, looks twice: at 3% each both
looks together are wrong at most 5% of the time (Pocock's level of two looks, at equal steps, is 2.9%)."""
FELL = 0.02
"""The error of all bounds together that "fell" is said by. Smaller: upper bounds of recall are a little short where few
labels of a stratified draw lie in the heavy strata, and a pipeline that stops for nothing is soon switched off."""
POWER = 0.8
MOST = 20_000
"""More labels than this are not asked for."""
DRAWS = 2000
_NORMAL = NormalDist()
Z = _NORMAL.inv_cdf(1 - ALPHA)


@dataclass(frozen=True)
class Figure:
    """A figure with one-sided bounds, each at the confidence 1 - alpha. Shares, 0 to 1."""

    value: float
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """About its standard error."""
        return (self.high - self.low) / (2 * Z)


@dataclass(frozen=True)
class Change:
    """A figure now against the one promised, with the margin that it may drop by.

    `low` and `high` are one-sided bounds of the difference, now minus then, each at the confidence 1 - alpha; `highest`
    is the upper one that holds for every figure of the family at once. `now` is None while no label says anything.
    """

    then: Figure
    now: Figure | None
    margin: float
    low: float
    high: float
    highest: float

    @property
    def value(self) -> float | None:
        return None if self.now is None else self.now.value - self.then.value

    @property
    def holds(self) -> bool:
        return self.low > -self.margin

    @property
    def fell(self) -> bool:
        return self.highest < -self.margin


def exactly(value: float) -> Figure:
    """Take a number by decree, like a target, as a figure: nothing about it is uncertain.

    Parameters
    ----------
    value : float
        A share, 0 to 1.

    Returns
    -------
    Figure
        Both bounds are the number.
    """
    return Figure(value, value, value)


def bounded(interval: Interval) -> Figure | None:
    """Take the ends of a two-sided interval of confidence 1 - 2 alpha as bounds at alpha.

    Parameters
    ----------
    interval : Interval
        A share with its two-sided bounds.

    Returns
    -------
    Figure or None
        None where the interval is not known.
    """
    if interval.value is None or interval.low is None or interval.high is None:
        return None
    return Figure(interval.value, interval.low, interval.high)


def one_sided(interval: Interval, *, confidence: float = 0.95, alpha: float = ALPHA) -> Figure | None:
    """Bounds at `alpha` on either side, from the two-sided interval that a release holds.

    Each bound is that of as many labels of a random sample as would put the bound of Jeffreys' interval where the
    released one is.

    Parameters
    ----------
    interval : Interval
        A share with its two-sided bounds.
    confidence : float
        Of the interval, between 0 and 1.
    alpha : float
        The error of each bound, between 0 and 1.

    Returns
    -------
    Figure or None
        None where the interval is not known.
    """
    if interval.value is None or interval.low is None or interval.high is None:
        return None
    value, outer = interval.value, (1 - confidence) / 2
    low = _move(value, interval.low, outer, alpha)
    high = 1 - _move(1 - value, 1 - interval.high, outer, alpha)
    return Figure(value, low, high)


def _move(value: float, low: float, outer: float, alpha: float) -> float:
    """The lower bound at error `alpha` of a share whose lower bound at error `outer` is `low`."""
    from scipy.special import betaincinv

    if low >= value or value <= 0:
        return low
    fewest, most = -6.0, 20.0  # logarithms of the labels
    for _ in range(60):
        middle = (fewest + most) / 2
        n = np.exp(middle)
        if float(betaincinv(n * value + 0.5, n * (1 - value) + 0.5, outer)) < low:
            fewest = middle
        else:
            most = middle
    n = np.exp((fewest + most) / 2)
    return float(np.clip(betaincinv(n * value + 0.5, n * (1 - value) + 0.5, alpha), 0.0, value))


def compare(then: tuple[Figure, Figure], now: tuple[Figure, Figure] | None, margin: float) -> Change:
    """Bound the difference between a figure now and the one promised.

    Parameters
    ----------
    then, now : tuple of Figure
        The figure with bounds at ALPHA, and with bounds at FELL / figures of the family. `now` is None where no label
        says anything: the difference is unknown.
    margin : float
        By how much it may drop, 0 to 1.

    Returns
    -------
    Change
        The difference and its bounds, -1 to 1.
    """
    if now is None:
        return Change(then[0], None, margin, -1.0, 1.0, 1.0)
    (low, high), (_, highest) = (_bound(*pair) for pair in zip(then, now, strict=True))
    return Change(then[0], now[0], margin, low, high, highest)


def _bound(then: Figure, now: Figure) -> tuple[float, float]:
    """One-sided bounds of now minus then, by MOVER."""
    value = now.value - then.value
    low = value - np.hypot(now.value - now.low, then.high - then.value)
    high = value + np.hypot(now.high - now.value, then.value - then.low)
    return max(-1.0, float(low)), min(1.0, float(high))


@dataclass(frozen=True)
class Forecast:
    """How many more labels are likely to tell, in a test of some figures.

    `more` is None where no number up to MOST is; `promise` is then whether it is for the promise, which is itself not
    known well enough, and not for a figure that lies too near its margin.
    """

    more: int | None
    promise: bool = False


def forecast(changes: Sequence[Change], labels: int, *, rng: np.random.Generator) -> Forecast:
    """Find the fewest further labels after which the test is decided with a chance of POWER.

    The truth is drawn from what the labels say of it by now, as normal; labels to come are drawn like those that are
    there. The figures are taken as independent.

    Parameters
    ----------
    changes : sequence of Change
        Every figure of the test, each with a value.
    labels : int
        Labels behind them, 1 or more.
    rng : numpy.random.Generator
        For the draws.

    Returns
    -------
    Forecast
        Labels beyond those that are there.
    """
    noise = rng.standard_normal((DRAWS, len(changes)))
    more = _fewest(changes, labels, noise, 1.0)
    return Forecast(more, promise=more is None and _fewest(changes, labels, noise, 0.0) is not None)


def _fewest(changes: Sequence[Change], labels: int, noise: Floats, then: float) -> int | None:
    """The fewest labels that are likely to decide. `then`: how much of the promise's own uncertainty counts, 0 to 1."""
    few, many = 0, MOST
    if _chance(changes, labels, many, noise, then) < POWER:
        return None
    while many - few > max(1, many // 50):
        middle = (few + many) // 2
        enough = _chance(changes, labels, middle, noise, then) >= POWER
        few, many = (few, middle) if enough else (middle, many)
    return many


def _chance(changes: Sequence[Change], labels: int, more: int, noise: Floats, then: float) -> float:
    """The chance that `more` labels decide the test."""
    holds, fell = np.ones(len(noise), dtype=bool), np.zeros(len(noise), dtype=bool)
    left, gained = labels / (labels + more), more / (labels + more)
    wider = _NORMAL.inv_cdf(1 - FELL / len(changes)) / Z
    for place, change in enumerate(changes):
        assert change.now is not None
        assert change.value is not None
        value = change.value + noise[:, place] * change.now.deviation * np.sqrt(gained)
        below = np.hypot(
            (change.now.value - change.now.low) * np.sqrt(left), then * (change.then.high - change.then.value)
        )
        above = np.hypot(
            (change.now.high - change.now.value) * np.sqrt(left), then * (change.then.value - change.then.low)
        )
        holds &= value - below > -change.margin
        fell |= value + above * wider < -change.margin
    return float((holds | fell).mean())


def planned(promises: Sequence[tuple[Figure, Figure]], margins: Sequence[float], labels: Sequence[int]) -> int | None:
    """How many labels a sample takes that shows with a chance of POWER that all figures hold, if nothing changed.

    Parameters
    ----------
    promises : sequence of tuple of Figure
        Of each figure what was measured at the release, and what was promised: the same, or a target.
    margins : sequence of float
        By how much each may drop, 0 to 1.
    labels : sequence of int
        Labels behind what was measured of each. The sample to come is taken to be drawn like them.

    Returns
    -------
    int or None
        None where no number up to MOST does.
    """
    reach = Z + _NORMAL.inv_cdf(POWER ** (1 / max(len(promises), 1)))
    most = 0.0
    for (measured, promised), margin, behind in zip(promises, margins, labels, strict=True):
        left = (margin / reach) ** 2 - promised.deviation**2
        if left <= 0:
            return None
        most = max(most, behind * measured.deviation**2 / left)
    return max(1, int(np.ceil(most))) if most <= MOST else None
