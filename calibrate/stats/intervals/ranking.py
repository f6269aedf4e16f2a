"""How well a ranking is known: AUROC and average precision with their 95% intervals, by the design of the labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.choosing.bootstrap_curves import bootstrap_curves
from calibrate.stats.intervals import bootstrap_intervals
from calibrate.stats.intervals.bootstrap import RESAMPLES, Areas, Order, Units
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import Interval

MOST = 10_000  # labels: above that a bootstrap of what was seen has to do


@dataclass(frozen=True)
class Ranked:
    """Both areas of a sweep, 0 to 1, with 95% intervals, and what they were in the resamples."""

    auroc: Interval
    average_precision: Interval
    draws: Areas


def rank_with_intervals(
    curve: Sweep,
    labels: Bools,
    scores: Floats,
    *,
    rng: np.random.Generator,
    weights: Floats | None = None,
    strata: Ints | None = None,
    groups: Sequence[Hashable] | None = None,
    count: int = RESAMPLES,
) -> Ranked:
    """AUROC and average precision of a sweep, with intervals by the design of its labels.

    Parameters
    ----------
    curve : Sweep
        The sweep of these labels and scores.
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    rng : Generator
        Source of the random draws.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: all alike.
    strata : array of int, shape (labels,), optional
        A code per label: which labels were drawn together.
    groups : sequence of hashable, optional
        The sources that a trace shares with others; default: none shares any.
    count : int
        How many resamples.

    Returns
    -------
    Ranked
        AUROC and average precision with intervals, and their draws; unknown where the labels are too few to rank.
    """
    scored = np.isfinite(scores)
    y, keys = labels[scored], -suspicion(scores, curve.flag_when)[scored]
    scored_groups = [None if groups is None else groups[i] for i in np.flatnonzero(scored).tolist()]
    alone = all(group is None for group in scored_groups)
    codes, w = None if strata is None else strata[scored], None if weights is None else weights[scored]
    units = Units.of_codes(np.arange(len(y)), codes) if alone else Units.among(scored_groups, codes)
    each, whole = bootstrap_intervals.Verdicts.of(y), bootstrap_intervals.Verdicts.of(y, units.of)
    unseen = Unseen.of(y, w, units, codes) if len(y) <= MOST else None
    if unseen is None:
        resampled = bootstrap_curves(
            y,
            -keys,
            rng=rng,
            weights=w,
            design=None if codes is None else Design(codes, np.bincount(codes)),
            groups=None if alone else scored_groups,
            count=count,
        )
        draws = Areas(resampled.auroc, resampled.average_precision)
        auroc = bootstrap_intervals.auroc_interval(curve.auroc, draws.auroc, each)
        average = bootstrap_intervals.average_precision_interval(
            curve.average_precision, draws.average_precision, whole
        )
        return _make_ranked(curve, auroc, average, draws)
    order = Order.of(keys[unseen.rows], unseen.labels)
    parts = [order.areas(block) for block in unseen.drawn(count, rng)]
    draws = Areas(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("auroc", "average_precision")))
    return _make_ranked(
        curve,
        bootstrap_intervals.percentile_interval(curve.auroc, draws.auroc, whole),
        bootstrap_intervals.percentile_interval(curve.average_precision, draws.average_precision, whole),
        draws,
    )


def _make_ranked(curve: Sweep, auroc: Interval, average_precision: Interval, draws: Areas) -> Ranked:
    nothing = Interval(None)
    return Ranked(auroc, average_precision, draws) if curve.can_rank else Ranked(nothing, nothing, draws)
