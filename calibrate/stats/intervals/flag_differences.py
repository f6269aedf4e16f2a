"""Two ways of flagging the same labelled traces: what the second does better or worse, and how sure one may be of it.

Every figure is a difference of ratios of weighted sums over the same rows, so one linearised (Taylor) residual a row
gives its variance (Särndal, Swensson and Wretman 1992, section 5.5), with rows gathered by the sources they share. What
both flag alike cancels: that is what pairing gains. Two rows that only one of the two flags are added to the squares,
as Bonett and Price do for paired proportions (Statistics in Medicine 2012, 31:1003): four labels lost and none won are
then no proof. No finite population correction: a release is for the traffic to come, of which nothing was drawn.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.binomial_intervals import z_value
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.sweep.design import Bools, Design, Floats, check_weights
from calibrate.types import Interval

PSEUDO = 2.0  # rows that only one of the two flags, added to what was seen


@dataclass(frozen=True)
class Figures:
    """What one way of flagging does on the labels, as shares of the traffic they stand for; `precision` is None where
    it flags nothing, `recall` where nothing is hallucinated. `flagged` is a plain count of labels."""

    precision: float | None
    recall: float | None
    flag_rate: float
    flagged: int


@dataclass(frozen=True)
class Paired:
    """The second way of flagging against the first on the same `n` labels, `positives` of them hallucinated.

    The intervals are second minus first, 95%, from -1 to 1. `flag_rate` is the share of the traffic that is flagged,
    `caught` the share that is flagged and hallucinated. A figure that either way does not have has no difference.
    """

    n: int
    positives: int
    first: Figures
    second: Figures
    precision: Interval
    recall: Interval
    flag_rate: Interval
    caught: Interval

    @property
    def worse(self) -> tuple[str, ...]:
        """Which of precision and recall fell by more than chance: their whole interval is below 0."""
        fell = (("precision", self.precision), ("recall", self.recall))
        return tuple(name for name, figure in fell if figure.high is not None and figure.high < 0)


def compare_flags(
    labels: Bools,
    first: Bools,
    second: Bools,
    *,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Paired:
    """Compare two ways of flagging the same labelled traces.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    first, second : array of bool, shape (labels,)
        True where each way flags.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The sources that a trace shares with others; default: none shares any.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Paired
        Figures of both ways, and second minus first with intervals.

    Raises
    ------
    BadInput
        For lengths that differ.

    References
    ----------
    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), section 5.5. Bonett and Price, Statistics in
    Medicine 31 (2012).
    """
    y = np.asarray(labels, dtype=bool)
    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if y.ndim != 1 or a.shape != y.shape or b.shape != y.shape or (groups is not None and len(groups) != len(y)):
        raise BadInput(f"{y.size} labels, {a.size} and {b.size} flags: give one of each per label")
    weights = check_weights(None, design, len(y))
    w = np.ones(len(y)) if weights is None else weights
    strata = None if design is None else design.strata
    units = Units.among([None] * len(y) if groups is None else list(groups), strata)
    everything = np.ones(len(y), dtype=bool)
    z = z_value(confidence)
    differences = {
        "precision": _measure_difference(w, units, (y, a), (y, b), z=z),
        "recall": _measure_difference(w, units, (a, y), (b, y), may=y, z=z),
        "flag_rate": _measure_difference(w, units, (a, everything), (b, everything), may=everything, z=z),
        "caught": _measure_difference(w, units, (a & y, everything), (b & y, everything), may=y, z=z),
    }
    return Paired(len(y), int(y.sum()), _measure_figures(w, y, a), _measure_figures(w, y, b), **differences)


def _measure_figures(w: Floats, y: Bools, flags: Bools) -> Figures:
    hit, flagged, bad = (float(w[rows].sum()) for rows in (flags & y, flags, y))
    return Figures(
        precision=hit / flagged if flagged else None,
        recall=hit / bad if bad else None,
        flag_rate=flagged / float(w.sum()) if len(w) else 0.0,
        flagged=int(flags.sum()),
    )


def _measure_difference(
    w: Floats,
    units: Units,
    first: tuple[Bools, Bools],
    second: tuple[Bools, Bools],
    *,
    may: Bools | None = None,
    z: float,
) -> Interval:
    """The second ratio minus the first, each the weight of `part` within `whole`. Where both are of the same whole,
    `may` are its rows that can be in a part."""
    values, residuals, extra = [], [], []
    for part, whole in (first, second):
        weight = float(w[whole].sum())
        if not weight:
            return Interval(None)
        p = float(w[part & whole].sum()) / weight
        values.append(p)
        residuals.append(w * whole * (part - p) / weight)
        # What a row adds that only one of the two flags: where it is of both wholes, all its weight; where it is of one
        # whole alone, what it is off by, as likely in the part as not.
        apart = ((1 - p) ** 2 + p**2) / 2 if may is None else 1.0
        squares = w[whole if may is None else may] ** 2
        extra.append(apart * float(np.mean(squares)) / weight**2 if len(squares) else 0.0)
    value, each = values[1] - values[0], residuals[1] - residuals[0]
    if not each.any():  # nothing that either flags is told apart from what the other flags
        return Interval(value, value, value)
    deviation = float(np.sqrt(_variance(each, units) + PSEUDO * sum(extra) / len(extra)))
    return Interval(value, max(-1.0, value - z * deviation), min(1.0, value + z * deviation))


def _variance(each: Floats, units: Units) -> float:
    """The variance of a sum over units drawn independently within their strata."""
    total = np.bincount(units.of, weights=each, minlength=int(units.sizes.sum()))
    variance, start = 0.0, 0
    for size in units.sizes:
        sums = total[start : start + size]
        start += size
        # One unit has no spread of its own; its distance from 0 errs on the safe side.
        variance += float(np.sum((sums - sums.mean()) ** 2) * size / (size - 1) if size > 1 else np.sum(sums**2))
    return variance
