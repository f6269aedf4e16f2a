"""What few, the usual number and many test labels are likely to buy, side by side."""

from __future__ import annotations

import numpy as np

from calibrate.stats.certification.certificates import Evidence, Offer
from calibrate.stats.certification.forecast import plan_and_tell
from calibrate.stats.certification.stage_a import draw_curves
from calibrate.stats.intervals.exact_tests import ALPHA, level

BUDGETS = (100, 250, 450)
"""Test labels that are offered side by side: of few, of the usual number, and of many."""


def offer_budgets(
    evidence: Evidence,
    target: float,
    *,
    fresh: int,
    rng: np.random.Generator,
    attempt: int = 1,
    alpha: float = ALPHA,
    sources: float = 1.0,
) -> tuple[Offer, ...]:
    """Say what few, the usual number and many test labels are likely to buy.

    Parameters
    ----------
    evidence : Evidence
        All labels so far, as the fit sees them.
    target : float
        The precision to meet, between 0 and 1.
    fresh : int
        Traces that stage B may draw from.
    rng : Generator
        Source of the random draws.
    attempt : int
        Which attempt at this certificate it is, from 1.
    alpha : float
        The error over all attempts.
    sources : float
        Test labels that are the first of their sources, as a share of all.

    Returns
    -------
    tuple of Offer
        Few labels first; fewer than three where the traffic does not give so many, none where it gives too few.
    """
    curves = draw_curves(evidence, rng)
    offers: dict[int, Offer] = {}
    for budget in BUDGETS:
        walk, prospect = plan_and_tell(
            evidence.ladder,
            curves,
            labels=budget,
            fresh=fresh,
            target=target,
            level=level(attempt, alpha),
            rng=rng,
            sources=sources,
        )
        figures = (float(each[0]) for each in (prospect.chance, prospect.recall, prospect.chance_unsure))
        if walk.labels[0]:
            offers.setdefault(int(walk.labels[0]), Offer(int(walk.labels[0]), *figures))
    return tuple(offers[labels] for labels in sorted(offers))
