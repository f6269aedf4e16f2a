"""How well a ranking is known: AUROC and average precision with their 95% intervals, by the design of the labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.stats import resampled
from calibrate.stats.bootstrap import RESAMPLES, Areas, Order, Units
from calibrate.stats.design import Bools, Floats, Ints
from calibrate.stats.replicates import EXACT, bootstrap
from calibrate.stats.sweep import Sweep
from calibrate.stats.unseen import Unseen
from calibrate.types import Interval

FEW = 5  # labels of either verdict: below that an area says nothing


@dataclass(frozen=True)
class Ranked:
    """Both areas of a sweep, 0 to 1, with 95% intervals, and what they were in the resamples."""

    auroc: Interval
    average_precision: Interval
    draws: Areas


def ranked(
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
    """The areas of `curve`, the sweep of these `labels` and `scores` (NaN: no score). `strata` is a code per row and
    `weights` what one stands for; `groups` name the sources that traces share, None for a trace alone."""
    alone = groups is None or all(group is None for group in groups)
    units = Units.of_codes(np.arange(len(labels)), strata) if alone or groups is None else Units.among(groups, strata)
    there = np.isfinite(scores)
    each, whole = resampled.Verdicts.of(labels[there]), resampled.Verdicts.of(labels[there], units.of[there])
    unseen = Unseen.of(labels, weights, units, strata) if len(labels) <= EXACT else None
    if unseen is None:
        found = bootstrap(
            labels,
            scores,
            rng=rng,
            weights=weights,
            groups=None if alone else groups,
            flag_when=curve.flag_when,
            count=count,
        )
        draws = Areas(found.auroc, found.average_precision)
        auroc = resampled.auroc(curve.auroc, draws.auroc, each)
        average = resampled.average_precision(curve.average_precision, draws.average_precision, whole)
        return Ranked(auroc, average, draws)
    keys = -scores if curve.flag_when == "above" else scores
    order = Order.of(keys[unseen.rows], unseen.labels)
    parts = [order.areas(some) for some in unseen.drawn(count, rng)]
    draws = Areas(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("auroc", "average_precision")))
    return Ranked(
        resampled.figure(curve.auroc, draws.auroc, whole),
        resampled.figure(curve.average_precision, draws.average_precision, whole),
        draws,
    )
