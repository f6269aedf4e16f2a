"""How often a measured precision is truly short of its target: the price of judging a threshold on its own labels."""

from __future__ import annotations

import numpy as np

from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.rules import pick_point
from calibrate.stats.fitting.smoothed_curve import smooth_sweep
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.sweep import Sweep

POINTS = 20_000  # fewer would let the rule miss by less than it does
DRAWS = 2_000_000  # over all points: with many labels fewer draws are enough


def chance_below(sweep: Sweep, policy: Policy, *, rng: np.random.Generator, count: int = 500) -> float | None:
    """The chance, 0 to 1, that a `precision` policy on labels like these takes a threshold truly below its target.

    The verdicts are drawn up to `count` times anew from the smoothed curve at the scores at hand; the policy chooses
    each time, and the smoothed curve, there the truth, says whether it missed. So the chance is that of the rule in
    traffic like this one, not of the one threshold it chose. In simulation (prevalence 5-20%, AUROC .75-.95, 300 and
    1,000 labels) such thresholds were below .7 in 29-52% of cases and this figure was within 7 points of that on
    average; resampling the labels themselves was up to 19 points too low. None for another policy, or where the target
    would never be met.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    policy : Policy
        The rule that chooses a point.
    rng : Generator
        Source of the random draws.
    count : int
        How often the verdicts are drawn anew, at most.

    Returns
    -------
    float or None
        A probability, 0 to 1; None for another policy, or where the target would never be met.
    """
    if policy.kind != "precision" or sweep.missing:
        return None
    points = sweep.thin(POINTS)
    truth = smooth_sweep(points)
    labels = np.diff(points.tp_count + points.fp_count, prepend=0)
    each = np.diff(points.tp + points.fp, prepend=0.0) / labels
    count = min(count, max(DRAWS // len(points), 50))
    hits = rng.binomial(labels, np.clip(truth.probability, 0.0, 1.0), size=(count, len(points)))
    tp, fp = np.cumsum(hits * each, axis=1), np.cumsum((labels - hits) * each, axis=1)
    picks = pick_point(Curve(tp, fp, tp[:, -1:], tp[:, -1:] + fp[:, -1:]), policy)
    chosen = picks.index[picks.feasible]
    return float(np.mean(truth.precision[chosen] < policy.number)) if len(chosen) else None
