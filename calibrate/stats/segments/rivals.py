"""One threshold for all traffic, and one cut in probability for all segments: what either flags of the same labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.rules import pick_point
from calibrate.stats.intervals.binomial_intervals import z_value
from calibrate.stats.intervals.bootstrap import Order, draw_counts
from calibrate.stats.segments.rows import SegmentRows
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.types import Interval

SLACK = 1e-12
MOST_OF_AVERAGE = 0.8
"""The odds at a cut are below the odds of all that it flags; estimates of them are held to this share of those."""


@dataclass(frozen=True)
class Gain:
    """Recall by thresholds per segment and by one for all, each where precision is `precision`, and the difference with
    its paired 95% interval, without bounds where precision is reached nowhere. Out of fold."""

    precision: float
    common: float
    own: float
    difference: Interval

    @property
    def shown(self) -> bool:
        """Whether the labels show a gain."""
        return self.difference.low is not None and self.difference.low > 0


@dataclass(frozen=True)
class Rival:
    """Labels in the order in which a rule would flag them: by `values`, NaN for rows that it cannot flag."""

    rows: SegmentRows
    values: Floats
    order: Order
    curve: Curve

    @classmethod
    def of(cls, rows: SegmentRows, values: Floats) -> Rival:
        order, weights = Order.of(-values, rows.labels), rows.weights[None]
        positives = weights @ rows.labels[:, None].astype(np.float64)
        return cls(rows, values, order, order.curve(weights, positives, weights.sum(-1, keepdims=True)))

    def choose(self, policy: Policy) -> tuple[int, bool]:
        """The policy's point of the ranking, and whether it meets the policy."""
        picks = pick_point(self.curve, policy)
        return int(picks.index[0]), bool(picks.feasible[0])

    def value_at(self, point: int) -> float:
        """The value from which on rows are flagged."""
        return float(self.values[self.order.rows[self.order.last[point]]])

    def flags_at(self, point: int) -> Bools:
        """What is flagged, shape (labels,)."""
        flags = np.zeros(len(self.values), dtype=bool)
        flags[self.order.rows[: self.order.last[point] + 1]] = True
        return flags

    def last_at(self, precision: float) -> int | None:
        """The point of most recall at which precision is at least this; None where it is nowhere."""
        enough = np.flatnonzero(self.curve.precision[0] >= precision - SLACK)
        return int(enough[-1]) if len(enough) else None


def measure_gain(single: Rival, own: Rival, precision: float, *, rng: np.random.Generator, resamples: int) -> Gain:
    """Recall of both where each last has this precision, and how well their difference is known.

    The variance is that of the rows on which the two differ, a false alarm priced in recall at the rate at which recall
    is bought with precision at the cut (the multiplier of the constraint): to first order that is the difference at
    equal precision, without choosing either cut anew in every resample. The interval is Agresti and Min's for matched
    pairs, as in `ensembles.performance`.

    Parameters
    ----------
    single : Rival
        Ranked by score.
    own : Rival
        Ranked by log odds out of fold.
    precision : float
        At which they are compared, between 0 and 1.
    rng : Generator
        Draws the resamples.
    resamples : int
        How many.

    Returns
    -------
    Gain
        Recalls and their difference.

    References
    ----------
    Agresti and Min, Statistics in Medicine 24 (2005).
    """
    rows, first, second = single.rows, single.last_at(precision), own.last_at(precision)
    single_recall, own_recall = (
        0.0 if at is None else float(each.curve.recall[0, at]) for each, at in ((single, first), (own, second))
    )
    value = own_recall - single_recall
    if first is None or second is None:
        return Gain(precision, single_recall, own_recall, Interval(value))
    differ = own.flags_at(second).astype(np.float64) - single.flags_at(first)
    average = precision / max(1 - precision, SLACK)
    marginal = min(float(np.exp(own.value_at(second))), MOST_OF_AVERAGE * average)
    price = marginal / (precision - marginal * (1 - precision))
    worth = differ * np.where(rows.labels, 1 + price * (1 - precision), -price * precision)
    drawn = np.concatenate(list(draw_counts(rows.units, resamples, rng))) * rows.weights
    hallucinated = drawn @ rows.labels
    draws = (drawn @ worth)[hallucinated > 0] / hallucinated[hallucinated > 0]
    w = rows.weights[rows.labels]
    n = float(w.sum()) ** 2 / float(w @ w)
    centre, error = value * n / (n + 1), float(np.sqrt(np.var(draws) * n**2 + 0.5)) / (n + 1)
    reach = z_value(0.95) * error
    interval = Interval(value, max(-1.0, centre - reach), min(1.0, centre + reach))
    return Gain(precision, single_recall, own_recall, interval)
