"""Ridge logistic regression by Newton's method, many fits at once: the map from a score to P(hallucinated).

Written out because a simulation fits thousands of them: the arrays may have any leading axes, one fit per entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.sweep.design import Floats, check_weights
from calibrate.types import FlagWhen

STEPS = 100
TOLERANCE = 1e-9
LEAP = 4.0
"""The furthest a coefficient moves in one step: far out the logistic is flat and Newton's method leaps."""


@dataclass(frozen=True)
class Ridge:
    """Fitted coefficients, shape (..., 1 + features), the intercept first, and the curvature of the loss at them."""

    coefficients: Floats
    curvature: Floats

    def probability(self, features: Floats) -> Floats:
        """P(hallucinated) at each row of `features`, shape (rows, features); one row of answers per fit."""
        return expit(self.coefficients @ np.swapaxes(with_one(features), -1, -2))


@dataclass(frozen=True)
class FittedMap:
    """From a detector's score to P(hallucinated): a ridge logistic on [z, max(z, 0)^2 / 2].

    z = (score - centre) / spread, turned so that it is positive where it is suspicious. `n` labels were used,
    `positives` of them hallucinated.
    """

    centre: float
    spread: float
    flag_when: FlagWhen
    coefficients: tuple[float, float, float]
    n: int
    positives: int

    def at(self, scores: ArrayLike) -> Floats:
        """P(hallucinated), 0 to 1, for scores in the detector's units; NaN for a missing score."""
        z = suspicion((np.asarray(scores, dtype=np.float64) - self.centre) / self.spread, self.flag_when)
        return expit(with_one(hinge(z)) @ np.array(self.coefficients))


def hinge(z: Floats) -> Floats:
    """[z, max(z, 0)^2 / 2] on a new last axis: the top of the scores may rise faster or slower than the body.

    Parameters
    ----------
    z : array of float, shape (...)
        Standardised scores, positive where suspicious.

    Returns
    -------
    array of float, shape (..., 2)
        Features of the logistic.

    Examples
    --------
    >>> hinge(np.array([-1.0, 2.0])).tolist()
    [[-1.0, 0.0], [2.0, 2.0]]
    """
    return np.stack([z, np.maximum(z, 0.0) ** 2 / 2], axis=-1)


def fit_probability_map(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    flag_when: FlagWhen = "above",
    c: float = 1.0,
) -> FittedMap:
    """Fit the map on labelled traces; a trace without a score is left out.

    Weights are scaled to one label each on average, so that the penalty means the same for every design.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    weights : array of float, shape (labels,), optional
        How many traces of the traffic each label stands for; default: all alike.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    c : float
        Prior variance of a coefficient, as scikit-learn's C.

    Returns
    -------
    FittedMap
        From score to P(hallucinated).

    Raises
    ------
    BadInput
        Without both classes, for infinite scores, and where all scores are equal.
    """
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.shape != values.shape or y.ndim != 1:
        raise BadInput(f"{y.size} labels and {values.size} scores: give one score per label, NaN for none")
    w = check_weights(weights, None, len(y))
    scored = ~np.isnan(values)
    y, values = y[scored], values[scored]
    w = np.ones(len(y)) if w is None else w[scored]
    if not np.isfinite(values).all():
        raise BadInput("a score is infinite: a detector that cannot score must abstain")
    if not y.any() or y.all():
        kind = "hallucinated" if len(y) and y.all() else "clean"
        raise BadInput(f"all {len(y)} scored labels are {kind}: a probability map needs both kinds")
    w = w / w.mean()
    centre = float(np.average(values, weights=w))
    spread = float(np.sqrt(np.average((values - centre) ** 2, weights=w)))
    if spread <= 1e-12 * max(1.0, abs(centre)):
        raise BadInput(f"all {len(y)} scores are {centre:.4g}: nothing tells one probability from another")
    z = suspicion((values - centre) / spread, flag_when)
    coefficients = fit_ridge(hinge(z), y.astype(np.float64), w, c=c).coefficients
    return FittedMap(
        centre,
        spread,
        flag_when,
        (float(coefficients[0]), float(coefficients[1]), float(coefficients[2])),
        len(y),
        int(np.count_nonzero(y)),
    )


def fit_ridge(
    features: Floats, labels: Floats, weights: Floats | None = None, *, c: ArrayLike = 1.0, c_free: float = 0.0
) -> Ridge:
    """Minimise the sum of weight x log-loss + the sum of coefficient^2 / (2 c), as LogisticRegression(C=c) does.

    The intercept is free; `c_free` above 0 holds it as well, which data of one class need to have a minimum.

    Parameters
    ----------
    features : array of float, shape (..., rows, features)
        One fit per entry of the leading axes.
    labels : array of float, shape (..., rows)
        The share hallucinated, 0 to 1.
    weights : array of float, shape (..., rows), optional
        What each row counts; default: 1.
    c : float or array of float, shape (features,)
        Prior variance of each coefficient.
    c_free : float
        Prior variance of the intercept; 0 leaves it free.

    Returns
    -------
    Ridge
        Coefficients and curvature of every fit.
    """
    x = with_one(features)
    w = np.broadcast_to(np.ones(1) if weights is None else weights, labels.shape)
    penalty = np.empty(x.shape[-1])
    penalty[0] = 1 / c_free if c_free else 0.0
    penalty[1:] = 1 / np.asarray(c, dtype=np.float64)
    share = np.clip((w * labels).sum(-1) / w.sum(-1), 1e-4, 1 - 1e-4)
    beta = np.zeros((*labels.shape[:-1], x.shape[-1]))
    beta[..., 0] = np.log(share / (1 - share))
    loss = _loss(x, beta, labels, w, penalty)
    for _ in range(STEPS):
        p = expit(_times(x, beta))
        gradient = _times(np.swapaxes(x, -1, -2), w * (p - labels)) + penalty * beta
        step = np.linalg.solve(_curvature(x, w * p * (1 - p), penalty), gradient[..., None])[..., 0]
        reach = np.abs(step).max(-1, keepdims=True)
        step = step * np.minimum(1.0, LEAP / np.maximum(reach, TOLERANCE))
        beta, loss, step = _descend(x, beta, step, loss, labels, w, penalty)
        if np.abs(step).max(initial=0.0) < TOLERANCE:
            break
    p = expit(_times(x, beta))
    return Ridge(beta, _curvature(x, w * p * (1 - p), penalty))


def expit(eta: Floats) -> Floats:
    """The probability of which `eta` is the log odds.

    Parameters
    ----------
    eta : array of float
        Log odds.

    Returns
    -------
    array of float
        Probabilities, 0 to 1.
    """
    return np.asarray(0.5 * (1 + np.tanh(eta / 2)))


def with_one(features: Floats) -> Floats:
    """A first column of ones, for the intercept.

    Parameters
    ----------
    features : array of float, shape (..., features)
        Without the intercept.

    Returns
    -------
    array of float, shape (..., 1 + features)
        With it.
    """
    return np.concatenate([np.ones((*features.shape[:-1], 1)), features], axis=-1)


def _descend(
    x: Floats, beta: Floats, step: Floats, loss: Floats, labels: Floats, w: Floats, penalty: Floats
) -> tuple[Floats, Floats, Floats]:
    """One step down for every fit, halved where it would go up."""
    for _ in range(30):
        after = _loss(x, beta - step, labels, w, penalty)
        worse = after > loss + 1e-9 * np.abs(loss)
        if not np.any(worse):
            break
        step = np.where(worse[..., None], step / 2, step)
    return beta - step, np.minimum(after, loss), step


def _curvature(x: Floats, w: Floats, penalty: Floats) -> Floats:
    return np.asarray(np.swapaxes(x * w[..., None], -1, -2) @ x + np.diag(penalty + 1e-12))


def _loss(x: Floats, beta: Floats, labels: Floats, w: Floats, penalty: Floats) -> Floats:
    eta = _times(x, beta)
    return np.asarray((w * (np.logaddexp(0.0, eta) - labels * eta)).sum(-1) + (penalty * beta**2).sum(-1) / 2)


def _times(x: Floats, vector: Floats) -> Floats:
    return np.asarray((x @ vector[..., None])[..., 0])
