"""Many resampled sweeps at once: their figures at given thresholds, their areas, and where a policy would put each.

Up to EXACT labels are drawn one by one. More are gathered in cells, whose Poisson counts are as good and take no longer
for a million labels than for ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.rules import best_point, pick_point
from calibrate.stats.fitting.smoothed_curve import features_of, smooth_curves
from calibrate.stats.intervals.bootstrap import BLOCK, RESAMPLES, Areas, Order, Units, draw_counts
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints, check_weights
from calibrate.types import FlagWhen

EXACT = 2000
BINS = 200  # of the scores of either class, where labels are gathered
QUANTILE_ROWS = 50_000  # scores that the bins' ends are read from


@dataclass(frozen=True)
class Replicates:
    """Figures of resampled sweeps: `precision` and `recall`, end to end, at each of `thresholds`, shape (resamples,
    thresholds); `auroc` and `average_precision` over scored rows; `chosen`, the threshold the policy picks.

    NaN where a resample cannot say: nothing flagged, a class without a row, no threshold that meets the policy.
    """

    thresholds: Floats
    precision: Floats
    recall: Floats
    auroc: Floats
    average_precision: Floats
    chosen: Floats


def bootstrap_curves(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    rng: np.random.Generator,
    weights: ArrayLike | None = None,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
    flag_when: FlagWhen = "above",
    thresholds: ArrayLike = (),
    policy: Policy | None = None,
    count: int = RESAMPLES,
) -> Replicates:
    """Resample labelled traces: the figures of a sweep, and what a policy would choose, in every resample.

    With groups every resample is drawn row by row, whatever it takes.

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
        The sources a trace shares with others, None for its own; default: no trace shares any.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    thresholds : array of float, shape (thresholds,)
        Where precision and recall are wanted, in the detector's units.
    policy : Policy, optional
        Chooses a threshold in every resample; any but `alerts` and `manual`.
    count : int
        How many resamples.

    Returns
    -------
    Replicates
        Figures of every resample.

    Raises
    ------
    BadInput
        For lengths that differ, and for a policy that labels do not move.
    """
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != values.shape or (groups is not None and len(groups) != len(y)):
        raise BadInput(f"{y.size} labels and {values.size} scores: give one score, and one group or None, per label")
    if policy is not None and policy.kind in ("alerts", "manual"):
        raise BadInput(f"the labels do not move the threshold of {policy}: bootstrap another policy")
    at = np.asarray(thresholds, dtype=np.float64)
    keys, at = -suspicion(values, flag_when), -suspicion(at, flag_when)
    w = check_weights(weights, design, len(y))
    strata = None if design is None else design.strata
    if groups is None and len(y) > EXACT:
        plan = _plan_by_cell(y, keys, w, strata, at, count, rng)
    else:
        alone = Units.of_codes(np.arange(len(y)), strata)
        units = alone if groups is None else Units.among(groups, strata)
        plan = _plan_by_row(y, keys, w, units, count, rng)
    choose = _make_chooser(policy, plan)
    parts = []
    for curve in plan.curves:
        areas = Areas.under(curve, reach=plan.reach)
        parts.append((*_read_at(curve, plan.ends, at), areas.auroc, areas.average_precision, choose(curve)))
    precision, recall, auroc, average, chosen = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Replicates(suspicion(-at, flag_when), precision, recall, auroc, average, suspicion(-chosen, flag_when))


@dataclass(frozen=True)
class _Plan:
    """Resampled curves, some resamples at a time, at the keys `ends`; `weight` is what lies between those. `reach` is
    where between them precision is read for its average."""

    ends: Floats
    weight: Floats
    curves: Iterator[Curve]
    scored: int
    reach: float


def _plan_by_row(y: Bools, keys: Floats, w: Floats | None, units: Units, count: int, rng: np.random.Generator) -> _Plan:
    order = Order.of(keys, y)
    each = np.ones(len(y)) if w is None else w

    def curves() -> Iterator[Curve]:
        for times in draw_counts(units, count, rng):
            weights = times * each
            yield order.curve(weights, weights @ y[:, None], weights.sum(axis=1, keepdims=True))

    weight = np.diff(np.cumsum(each[order.rows])[order.last], prepend=0.0)
    return _Plan(keys[order.rows][order.last], weight, curves(), len(order.rows), 1.0)


def _plan_by_cell(
    y: Bools, keys: Floats, w: Floats | None, strata: Ints | None, at: Floats, count: int, rng: np.random.Generator
) -> _Plan:
    """The same at the ends of bins that hold about equal shares of either class, the thresholds `at` among them.

    Cells are stratum x (bin or no score) x verdict. A cell whose weights sum to W, and their squares to Q, draws
    Q / W Poisson(W^2 / Q): the mean and the variance of its rows drawn one by one. Strata keep the weight they have.
    """
    ends = _choose_ends(y, keys, at)
    # Rows without a score sort behind the last end, to a bin of their own.
    cell = np.searchsorted(ends, keys) * 2 + y
    if strata is not None:
        cell += strata * (2 * len(ends) + 2)
    shape = (1 if strata is None else int(strata.max()) + 1, len(ends) + 1, 2)
    total = np.bincount(cell, weights=w, minlength=int(np.prod(shape))).astype(np.float64)
    squares = total if w is None else np.bincount(cell, weights=w * w, minlength=len(total))
    filled = np.flatnonzero(total)
    worth = squares[filled] / total[filled]

    def curves() -> Iterator[Curve]:
        step = max(1, BLOCK // len(total))
        for begun in range(0, count, step):
            cells = np.zeros((min(step, count - begun), len(total)))
            cells[:, filled] = rng.poisson(total[filled] / worth, size=(len(cells), len(filled))) * worth
            yield _stack_cells(cells.reshape(-1, *shape), total.reshape(shape))

    weight = total.reshape(shape)[:, :-1].sum(axis=(0, 2))
    return _Plan(ends, weight, curves(), len(y) - int(np.count_nonzero(np.isnan(keys))), 0.5)


def _choose_ends(y: Bools, keys: Floats, at: Floats) -> Floats:
    """Quantiles of either class's keys, from a part of very many, and the last key of all."""
    shares = np.linspace(0, 1, BINS + 1)[1:]
    ends = [at]
    for class_keys in (keys[y], keys[~y]):
        sampled = np.sort(class_keys[:: 1 + len(class_keys) // QUANTILE_ROWS])
        sampled = sampled[~np.isnan(sampled)]
        if len(sampled):
            ends.append(sampled[np.ceil(shares * len(sampled)).astype(np.int64) - 1])
    last = np.nanmax(keys, initial=-np.inf)
    return np.unique(np.append(np.concatenate(ends), last if np.isfinite(last) else []))


def _stack_cells(cells: Floats, total: Floats) -> Curve:
    """Curves of cells, shape (resamples, strata, bins, verdicts), whose strata are scaled to weigh as in `total`; the
    last bin has no score."""
    if len(total) > 1:
        size = cells.sum(axis=(2, 3), keepdims=True)
        cells = cells * (total.sum(axis=(1, 2))[:, None, None] / np.where(size > 0, size, 1.0))
    both = cells.sum(axis=1)
    flagged = np.cumsum(both[:, :-1], axis=1)
    whole = both.sum(axis=(1, 2))[:, None]
    return Curve(flagged[..., 1], flagged[..., 0], both[..., 1].sum(axis=1)[:, None], whole)


def _read_at(curve: Curve, ends: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Precision and recall at each of the keys `at`, observed or not."""
    place = np.searchsorted(ends, at, side="right") - 1
    nothing = np.broadcast_to(place < 0, (len(curve.tp), len(at)))
    if not len(ends):
        return np.full(nothing.shape, np.nan), np.where(curve.positives > 0, 0.0, np.nan) + np.zeros(nothing.shape)
    tp, fp = (np.where(nothing, 0.0, sums[:, place]) for sums in (curve.tp, curve.fp))
    flagged = Curve(tp, fp, curve.positives, curve.n)
    return flagged.precision, flagged.recall


def _make_chooser(policy: Policy | None, plan: _Plan) -> Callable[[Curve], Floats]:
    """The key that the policy picks on each resampled curve; NaN where it meets none, or a class has no row."""
    if policy is None or not len(plan.ends):
        return lambda curve: np.full(len(curve.tp), np.nan)
    features = features_of(-plan.ends, plan.weight) if policy.kind == "elbow" else None

    def chosen(curve: Curve) -> Floats:
        picks = (
            pick_point(curve, policy)
            if features is None
            else best_point(smooth_curves(curve, features, labels=plan.scored).f1)
        )
        both = (curve.tp[:, -1] > 0) & (curve.fp[:, -1] > 0)
        return np.where(picks.feasible & both, plan.ends[picks.index], np.nan)

    return chosen
