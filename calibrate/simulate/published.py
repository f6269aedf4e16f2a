"""The method that ours is measured against: five candidate cuts from a weighted fit, walked from the strictest.

60% of the labels by the octave design, a weighted ridge logistic on [z, max(z, 0)^2 / 2], the deepest cuts whose
smoothed precision is .92, .88, .84, .80 and .77; the other 40% drawn from what the deepest flags; exact binomial tests
at 5%, strict to loose, from the first cut with 20 labels.
"""

from __future__ import annotations

import numpy as np

from calibrate.simulate.scenarios import TARGET, Ints, Traffic
from calibrate.simulate.trials import draw, fresh_flagged, walked
from calibrate.stats.certification.ladder import NODES, build_ladder
from calibrate.stats.certification.walks import Walk
from calibrate.stats.fitting.ridge import fit_ridge
from calibrate.stats.intervals.exact_tests import ALPHA

LEVELS = (0.92, 0.88, 0.84, 0.80, 0.77)
SHARE_A = 0.6
LEAST = 20


def published(traffic: Traffic, *, labels: int, replications: int, rng: np.random.Generator) -> Ints:
    """How many traces the certified cut of each replication flags, 0 without one."""
    rungs = build_ladder(traffic.scores)
    first = draw(traffic, round(labels * SHARE_A), design="octave", replications=replications, rng=rng)
    scores = traffic.scores[first.rows]
    scored = ~np.isnan(scores)
    weights = np.where(scored, first.weights, 0.0)
    features = rungs.describe(np.where(scored, scores, rungs.thresholds[-1]))[..., :2]
    weights = weights / weights.sum(-1, keepdims=True) * scored.sum(-1, keepdims=True)
    fitted = fit_ridge(features, first.verdicts.astype(np.float64), weights, c_free=1e4)
    ring = fitted.probability(rungs.features[..., :2].reshape(-1, 2)).reshape(replications, -1, NODES).mean(-1)
    smoothed = np.cumsum(ring * rungs.rings, axis=-1) / rungs.shares
    cuts = len(rungs.shares)
    tested = np.zeros((replications, cuts), dtype=bool)
    for level in LEVELS:
        good = smoothed >= level
        deepest = cuts - 1 - np.argmax(good[:, ::-1], axis=-1)
        reached = good.any(-1)
        tested[reached, deepest[reached]] = True
    end = np.where(tested.any(-1), cuts - 1 - np.argmax(tested[:, ::-1], axis=-1), 0)
    budget = labels - round(labels * SHARE_A)
    m = np.minimum(budget, (rungs.shares[end] * traffic.fresh).astype(np.int64)) * tested.any(-1)
    plan = Walk(start=np.zeros_like(end), deepest=end, labels=m, chance=np.zeros(replications))
    second = fresh_flagged(traffic, rungs, plan, rng)
    return walked(traffic, rungs, tested, second, target=TARGET, level=ALPHA, least=LEAST)
