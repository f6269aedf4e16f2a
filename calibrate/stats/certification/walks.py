"""Which cuts stage B should test, from strict to loose, and on how many labels: what stage A expects of each walk.

Nothing here needs to be right for a certificate to hold: a plan uses first-stage labels and unlabelled scores only, so
exact tests on labels drawn afterwards hold whatever it chose. A poor plan costs recall, or ends without a certificate.

Arrays may have a leading axis of replications (written R), so that a simulation runs the very code that is shipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.certification.ladder import Ladder
from calibrate.stats.intervals.exact_tests import critical
from calibrate.stats.sweep.design import Floats, Ints

AT_LEAST = 20  # flagged labels at the least at the cut where a walk starts


@dataclass(frozen=True)
class Walk:
    """A plan for the second stage, as positions on the ladder: test from `start`, strict to loose, as far as `deepest`.

    `labels` are drawn from what `deepest` flags; `chance` is the predicted probability of a certificate. Shapes (R,).
    """

    start: Ints
    deepest: Ints
    labels: Ints
    chance: Floats


def best_walk(
    ladder: Ladder,
    probability: Floats,
    *,
    labels: int,
    fresh: int,
    target: float,
    level: float,
    rng: np.random.Generator,
) -> Walk:
    """The start and depth whose certified cut is expected to keep most of the recall that `target` allows.

    Every pair is played through on every draw of `probability` with `labels` labels, of which no more can be drawn than
    `fresh` traffic flags. A cut whose drawn precision is below the target counts for nothing.

    Parameters
    ----------
    ladder : Ladder
        The cuts that a plan may use.
    probability : array of float, shape (R, draws, cuts)
        P(hallucinated) in every ring (`draw_rings`).
    labels : int
        Labels that may be spent.
    fresh : int
        Traces of new traffic.
    target : float
        The precision to meet, between 0 and 1.
    level : float
        The error that this attempt may make, between 0 and 1.
    rng : Generator
        Source of the random draws.

    Returns
    -------
    Walk
        Start, depth, labels and chance of a certificate, arrays of shape (R,).
    """
    steps = np.unique(np.append(np.arange(len(ladder.shares) - 1, -1, -2), 0))
    shares = ladder.shares[steps]
    caught = np.cumsum(probability * ladder.rings, axis=-1)[..., steps]
    good = caught >= target * shares
    most = np.where(good, caught, 0.0).max(-1, keepdims=True)
    worth = np.where(good, caught, 0.0) / np.where(most > 0, most, 1.0)
    each = np.clip(np.diff(caught, axis=-1, prepend=0.0) / np.diff(shares, prepend=0.0), 0.0, 1.0)
    noise = rng.standard_normal(each.shape)
    needed = critical(labels, target, level)
    rows, none = np.arange(len(caught)), np.zeros(len(caught), dtype=np.int64)
    best = Walk(start=none, deepest=none, labels=none, chance=np.zeros(len(caught)))
    value = np.full(len(caught), -1.0)
    for deepest, share in enumerate(shares):
        m = min(labels, int(share * fresh))
        if m < AT_LEAST:
            continue
        reached, passed = _play(each, noise, worth, shares, deepest, m, needed)
        start = reached.argmax(-1)
        better = reached[rows, start] > value
        value = np.where(better, reached[rows, start], value)
        best = Walk(
            np.where(better, steps[start], best.start),
            np.where(better, steps[deepest], best.deepest),
            np.where(better, m, best.labels),
            np.where(better, passed[rows, start], best.chance),
        )
    return best


def chance_within_reach(ladder: Ladder, curves: Floats, target: float) -> Floats:
    """The probability that some cut flagging at least AT_LEAST of the pool has the target's precision.

    Parameters
    ----------
    ladder : Ladder
        The cuts that a plan may use.
    curves : array of float, shape (R, draws, cuts)
        P(hallucinated) in every ring.
    target : float
        The precision to meet, between 0 and 1.

    Returns
    -------
    array of float, shape (R,)
        Probabilities, 0 to 1.
    """
    share = np.cumsum(ladder.rings)
    enough = share * ladder.total >= AT_LEAST
    precision = np.cumsum(curves * ladder.rings, axis=-1) / share
    return np.asarray((precision >= target)[..., enough].any(-1).mean(-1), dtype=np.float64)


def _play(
    each: Floats, noise: Floats, worth: Floats, shares: Floats, deepest: int, m: int, needed: Ints
) -> tuple[Floats, Floats]:
    """Expected worth of the cut a walk ends at, and its chance to pass at all, for every start: two of (R, starts)."""
    flagged = m * shares[: deepest + 1] / shares[deepest]
    ring = np.diff(flagged, prepend=0.0)
    p = each[..., : deepest + 1]
    hits = np.cumsum(ring * p + np.sqrt(ring * p * (1 - p)) * noise[..., : deepest + 1], axis=-1)
    counted = np.round(flagged).astype(np.int64)
    passes = (hits >= needed[counted] - 0.5) & (counted >= AT_LEAST)
    reached = np.empty((len(each), deepest + 1))
    end = np.zeros(each.shape[:2])
    for cut in range(deepest, -1, -1):
        # From here the walk goes on to where the next cut would have ended, if that one passes too.
        ahead = passes[..., cut + 1] if cut < deepest else np.zeros(end.shape, dtype=bool)
        end = np.where(passes[..., cut], np.where(ahead, end, worth[..., cut]), 0.0)
        reached[:, cut] = end.mean(-1)
    return reached, passes.mean(1)
