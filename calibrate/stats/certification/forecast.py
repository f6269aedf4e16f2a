"""What is likely to come of a planned walk: it is played as stage B will play it, on draws that did not choose it.

The draws by which a plan was chosen flatter it, as a chosen threshold's own labels do; others do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.certification.ladder import Ladder
from calibrate.stats.certification.walks import Walk, best_walk
from calibrate.stats.intervals.exact_tests import critical
from calibrate.stats.sweep.design import Floats, Ints

POWER = 0.8  # chance of success that "about N more labels would do" promises
SIZES = tuple(round(25 * 80 ** (i / 15)) for i in range(16))  # the N that are tried, 25 to 2,000
UNSURE = 0.1
"""The share of unsure answers whose cost is said before anybody labels."""


@dataclass(frozen=True)
class Forecast:
    """Shapes (R,). `chance` of a certificate, 0 to 1; `recall` that its cut is then likely to have among scored
    traffic, 0 without a chance; `chance_unsure`: where a tenth of the labels are unsure."""

    chance: Floats
    recall: Floats
    chance_unsure: Floats


def forecast(
    ladder: Ladder,
    curves: Floats,
    walk: Walk,
    *,
    target: float,
    level: float,
    rng: np.random.Generator,
    sources: float = 1.0,
) -> Forecast:
    """Play each walk once on every draw.

    Parameters
    ----------
    ladder : Ladder
        The cuts that a plan may use.
    curves : array of float, shape (R, draws, cuts)
        P(hallucinated) in every ring, drawn apart from those that chose the walk.
    walk : Walk
        Plans.
    target : float
        The precision to meet, between 0 and 1.
    level : float
        The error that this attempt may make, between 0 and 1.
    rng : Generator
        Source of the random draws.
    sources : float
        Labels that are the first of their sources, as a share of all; above 0 and up to 1.

    Returns
    -------
    Forecast
        Chances and recall of every plan.
    """
    figures = np.zeros((3, len(curves)))
    needed = critical(int(walk.labels.max(initial=0)), target, level)
    for r in np.flatnonzero(walk.labels > 0):
        cuts = slice(int(walk.start[r]), int(walk.deepest[r]) + 1)
        caught = np.cumsum(curves[r] * ladder.rings, axis=-1)
        worth = caught[:, cuts] / np.maximum(caught[:, -1:], 1e-12)
        shares = ladder.shares[cuts]
        rings = np.diff(shares, prepend=0.0)
        each = np.clip(np.diff(caught[:, cuts], axis=-1, prepend=0.0) / rings, 0.0, 1.0)
        labels = max(1, round(int(walk.labels[r]) * sources))
        drawn = rng.multinomial(labels, rings / rings.sum(), size=len(each))
        flagged = drawn.cumsum(-1)
        last = _last_passed(rng.binomial(drawn, each), flagged, needed)
        certified = last >= 0
        figures[0, r] = certified.mean()
        if certified.any():
            figures[1, r] = worth[certified, last[certified]].mean()
        figures[2, r] = (_last_passed(rng.binomial(drawn, each * (1 - UNSURE)), flagged, needed) >= 0).mean()
    return Forecast(*figures)


def plan_and_tell(
    ladder: Ladder,
    curves: Floats,
    *,
    labels: int,
    fresh: int,
    target: float,
    level: float,
    rng: np.random.Generator,
    sources: float = 1.0,
) -> tuple[Walk, Forecast]:
    """Choose the walk on the first half of the draws, and tell what is likely to come of it by the other half.

    Parameters
    ----------
    ladder : Ladder
        The cuts that a plan may use.
    curves : array of float, shape (R, draws, cuts)
        P(hallucinated) in every ring, draws in random order.
    labels : int
        Labels that may be spent.
    fresh : int
        Traces that may be drawn from.
    target : float
        The precision to meet, between 0 and 1.
    level : float
        The error that this attempt may make, between 0 and 1.
    rng : Generator
        Source of the random draws.
    sources : float
        Labels that are the first of their sources, as a share of all; above 0 and up to 1.

    Returns
    -------
    tuple of Walk and Forecast
        The plan, 0 labels where there is none, and its forecast.
    """
    chosen_on, told_by = np.array_split(curves, 2, axis=1)
    walk = best_walk(ladder, chosen_on, labels=labels, fresh=fresh, target=target, level=level, rng=rng)
    return walk, forecast(ladder, told_by, walk, target=target, level=level, rng=rng, sources=sources)


def labels_needed(
    ladder: Ladder,
    curves: Floats,
    *,
    fresh: int,
    target: float,
    level: float,
    rng: np.random.Generator,
    sources: float = 1.0,
) -> Walk:
    """The plan with the fewest labels, of SIZES, whose predicted chance is POWER; 0 labels where none has it.

    Parameters
    ----------
    ladder : Ladder
        The cuts that a plan may use.
    curves : array of float, shape (R, draws, cuts)
        P(hallucinated) in every ring.
    fresh : int
        Traces of new traffic.
    target : float
        The precision to meet, between 0 and 1.
    level : float
        The error that this attempt may make, between 0 and 1.
    rng : Generator
        Source of the random draws.
    sources : float
        Labels that are the first of their sources, as a share of all; above 0 and up to 1.

    Returns
    -------
    Walk
        As `best_walk`; 0 labels where none of the sizes has the chance.
    """
    none = np.zeros(len(curves), dtype=np.int64)
    walks = Walk(start=none.copy(), deepest=none.copy(), labels=none.copy(), chance=np.zeros(len(curves)))
    for n in SIZES:
        still = np.flatnonzero(walks.labels == 0)
        if not len(still):
            break
        walk, prospect = plan_and_tell(
            ladder, curves[still], labels=n, fresh=fresh, target=target, level=level, rng=rng, sources=sources
        )
        enough = prospect.chance >= POWER
        rows = still[enough]
        walks.start[rows], walks.deepest[rows] = walk.start[enough], walk.deepest[enough]
        walks.labels[rows], walks.chance[rows] = walk.labels[enough], prospect.chance[enough]
    return walks


def _last_passed(hits: Ints, flagged: Ints, needed: Ints) -> Ints:
    """The last cut passed before the first that fails, -1 for none."""
    passed = np.logical_and.accumulate(hits.cumsum(-1) >= needed[flagged], axis=-1)
    return np.asarray(passed.sum(-1) - 1)
