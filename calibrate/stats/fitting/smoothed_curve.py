"""A precision/recall curve without the steps of few labels: a ridge logistic fit of the labels on the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.fitting.ridge import expit, fit_ridge, hinge, with_one
from calibrate.stats.sweep.curves import Curve
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Sweep

# Gathering labels in cells of 1/4000 of them does not move three coefficients; fitting a million rows takes seconds.
CELLS = 4_000
C = 1.0  # of the ridge, as in scikit-learn


@dataclass(frozen=True)
class SmoothCurve:
    """Fitted figures at every point of a sweep: P(hallucinated | score), and what it makes of the curve, 0 to 1."""

    probability: Floats
    precision: Floats
    recall: Floats
    f1: Floats


def smooth_sweep(sweep: Sweep) -> SmoothCurve:
    """Precision, recall and F1 from the fitted probabilities of everything flagged at each point.

    The model is a logistic on [z, max(z, 0)^2 / 2], z the standardised score, positive where it is suspicious. Needs
    both classes among the scored labels. Recall is end to end: hallucinations without a score stay in its denominator.

    Parameters
    ----------
    sweep : Sweep
        Both classes scored.

    Returns
    -------
    SmoothCurve
        Fitted figures at every point.
    """
    hallucinated = np.diff(sweep.tp, prepend=0.0)
    weight = hallucinated + np.diff(sweep.fp, prepend=0.0)
    suspicious = suspicion(sweep.thresholds, sweep.flag_when)
    return smooth_curves(Curve.of(sweep), features_of(suspicious, weight), labels=sweep.scored)


def smooth_curves(curve: Curve, features: Floats, *, labels: int) -> SmoothCurve:
    """Smooth one curve, or many resampled ones. The penalty is felt per label, whatever the weights.

    Parameters
    ----------
    curve : Curve
        One curve, or many of shape (resamples, points).
    features : array of float, shape (points, 2)
        Of the points (`features_of`).
    labels : int
        How many have a score.

    Returns
    -------
    SmoothCurve
        Fitted figures at every point of every curve.
    """
    hallucinated = np.diff(curve.tp, prepend=0.0)
    weight = hallucinated + np.diff(curve.fp, prepend=0.0)
    scale = labels / weight.sum(axis=-1, keepdims=True)
    x, positives, total = (
        _gather_cells(features, hallucinated, weight) if weight.ndim == 1 else (features, hallucinated, weight)
    )
    rate = np.divide(positives, total, out=np.zeros_like(total), where=total > 0)
    coefficients = fit_ridge(x, rate, total * scale, c=C).coefficients
    probability = expit(coefficients @ with_one(features).T)

    expected = np.cumsum(weight * probability, axis=-1)
    flagged = np.cumsum(weight, axis=-1)
    unscored = curve.positives - curve.tp[..., -1:]
    whole = expected[..., -1:] + np.maximum(unscored, 0.0)
    with np.errstate(invalid="ignore"):
        return SmoothCurve(
            probability=probability,
            precision=expected / flagged,
            recall=expected / whole,
            f1=2 * expected / (flagged + whole),
        )


def features_of(suspicious: Floats, weight: Floats) -> Floats:
    """What the logistic sees of a score: the score at weighted mean 0 and spread 1, and a hinge.

    The hinge lets the top of the scores rise faster or slower than the body. All 0 where scores do not differ.

    Parameters
    ----------
    suspicious : array of float, shape (scores,)
        Higher is more suspicious.
    weight : array of float, shape (scores,)
        What each stands for.

    Returns
    -------
    array of float, shape (scores, 2)
        Features of the logistic.
    """
    mean = np.average(suspicious, weights=weight)
    spread = np.sqrt(np.average((suspicious - mean) ** 2, weights=weight))
    return hinge((suspicious - mean) / spread if spread > 0 else np.zeros(len(suspicious)))


def _gather_cells(features: Floats, positives: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """The rows, in score order, as at most CELLS cells of equal weight with their mean features."""
    if len(weights) <= CELLS:
        return features, positives, weights
    # A row belongs where its middle lies, so that the last one does not open a cell of its own.
    middle = np.cumsum(weights) - weights / 2
    cell = (middle / weights.sum() * CELLS).astype(np.intp)
    starts = np.append(0, np.flatnonzero(np.diff(cell)) + 1)
    total = np.add.reduceat(weights, starts)
    means = np.add.reduceat(features * weights[:, None], starts) / total[:, None]
    return means, np.add.reduceat(positives, starts), total
