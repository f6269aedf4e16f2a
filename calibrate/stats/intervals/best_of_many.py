"""The best of several rankings, picked on the very labels that compare them; and several compared with one.

Take 15 detectors and a baseline, all equally good. In a quarter of samples the best-looking detector beats the baseline
by more than a 95% interval, by luck. So the intervals here are wider: they allow for the number of comparisons
(Bonferroni), and the leader is compared with each rival as in multiple comparisons with the best (Hsu 1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator

from calibrate.stats.intervals.bootstrap_intervals import SURE
from calibrate.stats.intervals.ranking_differences import MOST, Comparison, compare_rankings
from calibrate.stats.sweep.design import Bools, Floats, Ints
from calibrate.types import Interval

FEWER = 200  # groups left out in turn for a rival whose interval nobody reads, only its verdict


class Verdict(StrEnum):
    """What a difference shows of two rankings."""

    BETTER = "better"
    WORSE = "worse"
    ALONE = "alone"  # beyond its own 95% interval, but not beyond what the number of comparisons explains
    SAME = "same"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Contest:
    """A leader compared with its rivals and with baselines. Every difference is the leader's area minus the other's."""

    rivals: Mapping[str, Comparison]
    baselines: Mapping[str, Comparison]

    @property
    def may_be_best(self) -> tuple[str, ...]:
        """The rivals that the leader is not shown to beat. In at least 95% of samples the truly best detector is one of
        them, or the leader itself."""
        return tuple(
            name for name, result in self.rivals.items() if judge(result.auroc, result.auroc_together) != Verdict.BETTER
        )


def judge(alone: Interval, together: Interval) -> Verdict:
    """Judge a difference by its own interval and by the wider one that allows for all comparisons.

    Parameters
    ----------
    alone, together : Interval
        Of the same difference.

    Returns
    -------
    Verdict
        Of the second ranking over the first.
    """
    if together.low is None or together.high is None:
        return Verdict.UNKNOWN
    if together.low > 0:
        return Verdict.BETTER
    if together.high < 0:
        return Verdict.WORSE
    beyond = (alone.low is not None and alone.low > 0) or (alone.high is not None and alone.high < 0)
    return Verdict.ALONE if beyond else Verdict.SAME


def simultaneous(many: int, *, sides: int = 2) -> float:
    """Find the confidence of each interval that makes all of them hold together with 95%.

    Parameters
    ----------
    many : int
        How many intervals; 0 counts as 1.
    sides : {1, 2}
        1 where only one end must hold, as for the claim that a leader is better; else 2.

    Returns
    -------
    float
        The two-sided confidence of each.
    """
    return 1 - 2 / sides * (1 - SURE) / max(many, 1)


def compare_leader(
    labels: Bools,
    scores: Mapping[str, Floats],
    leader: str,
    rivals: Sequence[str],
    baselines: Sequence[str],
    *,
    rng: Generator,
    clusters: Ints,
    weights: Floats,
    strata: Ints | None,
) -> Contest:
    """Compare the ranking that looks best with each of the others.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : mapping of str to array of float, shape (labels,)
        Higher is more suspicious; NaN where there is no score, and a pair is compared where both have one.
    leader : str
        The one with the highest AUROC of itself and the rivals.
    rivals, baselines : sequence of str
        Rivals might have led, and come next best first; baselines could not lead.
    rng : Generator
        As `compare_rankings` takes it.
    clusters : array of int, shape (labels,)
        The group of every trace.
    weights : array of float, shape (labels,)
        How many traces each label stands for.
    strata : array of int, shape (labels,), optional
        Which labels were drawn together.

    Returns
    -------
    Contest
        All comparisons. The lower ends for all rivals hold together. The lower end for a baseline holds whichever
        detector was picked as leader.

    References
    ----------
    Hsu, Annals of Statistics 9 (1981): simultaneous confidence intervals for all distances from the best.
    """

    def against(other: str, many: int, most: int = MOST) -> Comparison:
        both = np.isfinite(scores[leader]) & np.isfinite(scores[other])
        return compare_rankings(
            labels[both],
            scores[other][both],
            scores[leader][both],
            rng=rng,
            clusters=clusters[both],
            weights=weights[both],
            strata=None if strata is None else strata[both],
            confidence=simultaneous(many, sides=1 if many > 1 else 2),
            most=most,
        )

    return Contest(
        {name: against(name, len(rivals), FEWER if place else MOST) for place, name in enumerate(rivals)},
        {name: against(name, len(rivals) + 1) for name in baselines},
    )
