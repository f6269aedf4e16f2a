"""What unsure and disputed labels could change: figures if they were settled the one way or the other.

No figure counts such labels, and they are not like the rest: people disagree most about answers that are hallucinated.
So leaving them out bends every figure, in a direction that these labels cannot tell. What they can tell is how far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.stats.sweep.design import Bools, Floats


@dataclass(frozen=True)
class Reach:
    """The smallest and the largest value of a share, 0 to 1, over every way to settle the undecided labels."""

    low: float
    high: float


@dataclass(frozen=True)
class Settled:
    """How far each figure could go; None where no way to settle defines it.

    Prevalence and precision are smallest if all undecided labels are clean, and largest if all are hallucinated. Recall
    is smallest if just those are hallucinated that are not flagged, and largest if just those are that are.
    """

    undecided: int
    flagged: int
    prevalence: Reach | None
    precision: Reach | None
    recall: Reach | None


def settle(
    labels: ArrayLike,
    undecided: ArrayLike,
    *,
    flagged: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Settled:
    """Bound prevalence, precision and recall over every way to settle the undecided labels.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated; an undecided label may have either value.
    undecided : array of bool, shape (labels,)
        True for labels that are unsure or disputed.
    flagged : array of bool, shape (labels,), optional
        True where the threshold flags the trace; default: nothing is flagged.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: as many each.

    Returns
    -------
    Settled
        The bounds, and how many labels are undecided, flagged ones among them.

    Raises
    ------
    BadInput
        For lengths that differ.

    Examples
    --------
    >>> settle([True, False, False, False], [False, False, True, True]).prevalence
    Reach(low=0.25, high=0.75)
    """
    y, open_ = np.asarray(labels, dtype=bool), np.asarray(undecided, dtype=bool)
    flags = np.zeros(len(y), dtype=bool) if flagged is None else np.asarray(flagged, dtype=bool)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(y) == len(open_) == len(flags) == len(w):
        raise BadInput(f"{len(y)} labels, {len(open_)} marks, {len(flags)} flags and {len(w)} weights: give one each")
    caught, missed = _total(w, ~open_ & y & flags), _total(w, ~open_ & y & ~flags)
    open_flagged, open_passed = _total(w, open_ & flags), _total(w, open_ & ~flags)
    return Settled(
        undecided=int(np.count_nonzero(open_)),
        flagged=int(np.count_nonzero(open_ & flags)),
        prevalence=_reach(caught + missed, open_flagged + open_passed, float(w.sum())),
        precision=_reach(caught, open_flagged, _total(w, flags)),
        recall=_recall(caught, missed, open_flagged, open_passed),
    )


def settle_recall(
    labels: ArrayLike,
    undecided: ArrayLike,
    suspicion: ArrayLike,
    at: ArrayLike,
    *,
    weights: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Bound the recall at many thresholds over every way to settle the undecided labels.

    Parameters
    ----------
    labels, undecided, weights
        As for `settle`.
    suspicion : array of float, shape (labels,)
        The scores, turned so that more is more suspicious; NaN is never flagged.
    at : array of float, shape (thresholds,)
        The thresholds, turned likewise: a label is flagged where its score is at least as high.

    Returns
    -------
    tuple of array of float, shape (thresholds,)
        The smallest and the largest recall; NaN where nothing is hallucinated and nothing undecided.
    """
    y, open_ = np.asarray(labels, dtype=bool), np.asarray(undecided, dtype=bool)
    scores = np.asarray(suspicion, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    sure, unsure = y & ~open_, open_
    caught, caught_open = (_reached(scores[of], w[of], np.asarray(at, dtype=np.float64)) for of in (sure, unsure))
    all_sure, all_open = _total(w, sure), _total(w, unsure)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = caught / (all_sure + all_open - caught_open)
        high = (caught + caught_open) / (all_sure + caught_open)
    if all_sure + all_open > 0:  # were no label hallucinated, all of none would be found, or none of all
        low, high = np.where(np.isnan(low), 1.0, low), np.where(np.isnan(high), 0.0, high)
    return low, high


def _reached(scores: Floats, weights: Floats, at: Floats) -> Floats:
    """The weight of the scores that reach each threshold."""
    order = np.argsort(scores)
    above = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    scored = np.count_nonzero(~np.isnan(scores))
    above = above[: scored + 1] - above[scored]
    return np.asarray(above[np.searchsorted(scores[order][:scored], at, side="left")])


def _total(weights: Floats, where: Bools) -> float:
    return float(weights[where].sum())


def _reach(part: float, undecided: float, whole: float) -> Reach | None:
    return Reach(part / whole, min(1.0, (part + undecided) / whole)) if whole else None


def _recall(caught: float, missed: float, open_flagged: float, open_passed: float) -> Reach | None:
    """Of all hallucinations the share that is caught: the `open` labels may be any of either, or clean."""
    if not caught + missed + open_flagged + open_passed:
        return None
    worst, best = caught + missed + open_passed, caught + missed + open_flagged
    return Reach(caught / worst if worst else 1.0, (caught + open_flagged) / best if best else 0.0)
