"""A precision/recall curve without the steps of few labels: a ridge logistic fit of the labels on the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.design import Floats
from calibrate.stats.sweep import Sweep

# Newton's method on a strictly convex loss of three parameters; in practice it takes 6 to 10 steps.
STEPS = 100
TOLERANCE = 1e-10
# Three coefficients do not feel a cell of 1/4000 of the labels; fitting a million rows one by one takes seconds.
CELLS = 4_000


@dataclass(frozen=True)
class SmoothCurve:
    """Fitted figures at every point of a sweep: P(hallucinated | score), and what it makes of the curve, 0 to 1."""

    probability: Floats
    precision: Floats
    recall: Floats
    f1: Floats


def smoothed(sweep: Sweep, *, c: float = 1.0) -> SmoothCurve:
    """Precision, recall and F1 from the fitted probabilities of everything flagged at each point.

    The model is a logistic on [z, max(z, 0)^2 / 2], z the standardised score, positive where it is suspicious; the
    hinge lets the top of the scores rise faster or slower than the body. Needs both classes among the scored labels.
    Recall is end to end: hallucinations without a score stay in its denominator.
    """
    hallucinated = np.diff(sweep.tp, prepend=0.0)
    weight = hallucinated + np.diff(sweep.fp, prepend=0.0)
    suspicious = sweep.thresholds if sweep.flag_when == "above" else -sweep.thresholds
    z = _standardise(suspicious, weight)
    # The penalty is felt per label, so weights are scaled to one label each on average.
    scale = sweep.scored / weight.sum()
    features = np.column_stack([z, np.maximum(z, 0.0) ** 2 / 2])
    coefficients = ridge_logistic(*_cells(features, hallucinated * scale, weight * scale), c=c)
    probability = expit(coefficients[0] + features @ coefficients[1:])

    expected = np.cumsum(weight * probability)
    flagged = np.cumsum(weight)
    total = expected[-1] + sweep.weighted_positives - sweep.weighted_scored_positives
    return SmoothCurve(
        probability=probability,
        precision=expected / flagged,
        recall=expected / total,
        f1=2 * expected / (flagged + total),
    )


def ridge_logistic(features: Floats, positives: Floats, weights: Floats, *, c: float = 1.0) -> Floats:
    """Intercept and coefficients for `positives` out of `weights` per row: scikit-learn's LogisticRegression(C=c).

    The penalty is |coefficients|^2 / (2 c); the intercept is free. Written out because importing scikit-learn alone
    takes longer than many such fits, and a page fits one on every redraw.
    """
    x = np.column_stack([np.ones(len(features)), features])
    penalty = np.full(x.shape[1], 1 / c)
    penalty[0] = 0.0
    beta = np.zeros(x.shape[1])
    beta[0] = np.log(positives.sum() / (weights.sum() - positives.sum()))
    loss = _loss(x @ beta, beta, positives, weights, penalty)
    for _ in range(STEPS):
        p = expit(x @ beta)
        gradient = x.T @ (weights * p - positives) + penalty * beta
        curvature = (x * (weights * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        # Halve a step that overshoots: far out the logistic is flat and Newton leaps.
        for _ in range(30):
            after = _loss(x @ (beta - step), beta - step, positives, weights, penalty)
            if after <= loss:
                break
            step = step / 2
        beta, loss = beta - step, min(after, loss)
        if np.max(np.abs(step)) < TOLERANCE:
            break
    return beta


def _cells(features: Floats, positives: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
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


def _loss(eta: Floats, beta: Floats, positives: Floats, weights: Floats, penalty: Floats) -> float:
    return float(np.sum(weights * np.logaddexp(0.0, eta) - positives * eta) + np.sum(penalty * beta**2) / 2)


def expit(eta: Floats) -> Floats:
    """The probability of which `eta` is the log odds."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -eta)))


def _standardise(values: Floats, weights: Floats) -> Floats:
    """Weighted mean 0 and standard deviation 1; all 0 where the values do not differ."""
    mean = np.average(values, weights=weights)
    spread = np.sqrt(np.average((values - mean) ** 2, weights=weights))
    return np.asarray((values - mean) / spread) if spread > 0 else np.zeros(len(values))
