"""Whether labelled traces that are said to be random look like the traffic they are said to be drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ks_2samp

LEVEL = 0.001
"""A random draw is called unlike its traffic no more often than this, however many detectors look."""
FEWEST = 8
"""Labels below which nothing is said."""


@dataclass(frozen=True, slots=True)
class Unlike:
    """Where two sets of scores differ most: the share of the labels and of the traffic with a score of `score` or less,
    and the probability `p_value` of a difference so large under a random draw."""

    score: float
    of_labels: float
    of_traffic: float
    p_value: float


def compare_with_traffic(labelled: ArrayLike, traffic: ArrayLike, *, detectors: int = 1) -> Unlike | None:
    """Test whether labelled traces were drawn at random from their traffic, by one detector's scores.

    The two-sample test of Kolmogorov and Smirnov, which sees any choice by the score. Ties, and labelled traces that
    are among the traffic's, make it careful.

    Parameters
    ----------
    labelled : array of float, shape (m,)
        Scores of the labelled traces, in the detector's units; NaN for none.
    traffic : array of float, shape (n,)
        Scores of traces drawn at random from the traffic; NaN for none.
    detectors : int, optional
        How many detectors are looked at: the level is shared among them (Bonferroni).

    Returns
    -------
    Unlike or None
        None where nothing speaks against a random draw, or the labels are too few to say.

    References
    ----------
    Hodges (1958), The significance probability of the Smirnov two-sample test, Arkiv för Matematik 3.
    """
    mine, theirs = (np.asarray(scores, dtype=np.float64) for scores in (labelled, traffic))
    mine, theirs = mine[~np.isnan(mine)], theirs[~np.isnan(theirs)]
    if len(mine) < FEWEST or len(theirs) < FEWEST:
        return None
    result = ks_2samp(mine, theirs)
    if result.pvalue >= LEVEL / detectors:
        return None
    score = float(result.statistic_location)
    return Unlike(score, float(np.mean(mine <= score)), float(np.mean(theirs <= score)), float(result.pvalue))
