"""How much of the traffic is hallucinated, without labels: advisory, never a ground for a threshold.

The expectation-maximisation of Saerens, Latinne and Decaestecker (2002): a probability map that was right where the
share was `prior` is made right for another share, whose mean is the next share, until they agree. It rests on scores of
clean and of hallucinated answers being distributed as before, which a new model may well not keep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput

STEPS = 1000
CLOSE = 1e-7
LEAST = 1e-12


@dataclass(frozen=True)
class Prevalence:
    """The share of hallucinated traces, 0 to 1, that `n` scores look like. `settled`: whether the steps converged."""

    value: float
    n: int
    settled: bool


def estimate_prevalence(probabilities: ArrayLike, prior: float) -> Prevalence:
    """Estimate the share hallucinated in traffic from mapped probabilities.

    Parameters
    ----------
    probabilities : array of float, shape (traces,)
        Mapped probabilities, 0 to 1, NaN for a trace without a score.
    prior : float
        The share hallucinated in the traffic that the map is right for, between 0 and 1.

    Returns
    -------
    Prevalence
        The share that the scores look like.

    Raises
    ------
    BadInput
        For a prior or a probability out of range, and without any.

    References
    ----------
    Saerens, Latinne and Decaestecker, Neural Computation 14 (2002).
    """
    p = np.asarray(probabilities, dtype=np.float64)
    p = p[~np.isnan(p)]
    if not 0 < prior < 1:
        raise BadInput(f"a prior share of {prior:g} leaves nothing to estimate: it must lie between 0 and 1")
    if not len(p) or p.min() < 0 or p.max() > 1:
        raise BadInput("a prevalence is estimated from probabilities between 0 and 1: there are none, or others too")
    p = np.clip(p, LEAST, 1 - LEAST)
    odds = p / (1 - p) * (1 - prior) / prior  # the likelihood ratio of each score
    share = prior
    for _ in range(STEPS):
        ahead = share * odds
        after = float(np.mean(ahead / (ahead + 1 - share)))
        if abs(after - share) < CLOSE:
            return Prevalence(after, len(p), settled=True)
        share = after
    return Prevalence(share, len(p), settled=False)
