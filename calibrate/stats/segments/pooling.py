"""One curve of P(hallucinated | score) a segment, each shrunken towards a common one as far as the labels ask for.

The logistic of `fitting.smoothed_curve` with coefficients of its own in each segment: beta + u_g, u_g normal around 0.
How far the segments spread is read from the labels by empirical Bayes: the spread with the highest restricted marginal
likelihood, approximated by Laplace's method at the fit, with a half-normal prior that keeps few segments from claiming
a large one. Where segments are alike the spread is next to 0, and all have the common curve; where a segment has many
labels its curve is its own.

References: Efron and Morris, JASA 70 (1975); Breslow and Clayton, JASA 88 (1993), for the approximation; Gelman,
Bayesian Analysis 1 (2006), for the prior of a spread; Gelman and Hill, Data Analysis Using Regression (2007), ch. 14.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.stats.fitting.ridge import LEAP, expit, with_one
from calibrate.stats.sweep.design import Floats

C = 1.0  # prior variance of the common slopes, as in smoothed_curve
ROUNDS, STEPS = 6, 40
TOLERANCE = 1e-9
LEVELS = np.array([0.01, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0])
"""Spreads of the segments' log odds that are tried."""
SLOPES = np.array([0.01, 0.1, 0.2, 0.35, 0.6, 1.0])
"""Spreads of their slopes that are tried."""
PRIOR = np.array([0.5, 0.15])
"""Scales of the half-normal priors of the spreads; wider ones lose recall among segments that are alike."""


@dataclass(frozen=True)
class PooledCurves:
    """Coefficients of the logistic on [1, z, max(z, 0)^2 / 2]; leading axes, if any, are fits.

    `common` has shape (..., 3), `each` (..., segments, 3); `spread` (..., 2) holds the standard deviations of the
    segments' log odds and of their slopes; `shrinkage` (..., segments) is how much of a segment's own log odds its
    curve keeps, 0 (the common curve) to 1 (its own).
    """

    common: Floats
    each: Floats
    spread: Floats
    shrinkage: Floats


def pool_curves(features: Floats, labels: Floats, weights: Floats, *, spread: Floats | None = None) -> PooledCurves:
    """Fit the common curve and the segments' curves together.

    Parameters
    ----------
    features : array of float, shape (..., segments, rows, 2)
        Of the scores (`ridge.hinge`). Segments with fewer rows are padded.
    labels : array of float, shape (..., segments, rows)
        1 for hallucinated.
    weights : array of float, shape (..., segments, rows)
        What each label counts, in labels; 0 for padding and for labels that are held out.
    spread : array of float, shape (..., 2), optional
        Use these standard deviations; default: estimated.

    Returns
    -------
    PooledCurves
        Curves of every fit.
    """
    x = with_one(features)
    total, hits = weights.sum((-2, -1)), (weights * labels).sum((-2, -1))
    share = np.clip(hits / np.maximum(total, TOLERANCE), 1e-4, 1 - 1e-4)
    beta = np.zeros((*share.shape, 3))
    beta[..., 0] = np.log(share / (1 - share))
    own = np.zeros((*weights.shape[:-1], 3))
    if spread is None:
        variances = np.full((*share.shape, 2), 0.25)
        for _ in range(ROUNDS):
            for _ in range(3):
                beta, own, _ = _step(x, labels, weights, beta, own, variances)
            variances = _best_variances(x, labels, weights, beta, own)
    else:
        variances = np.broadcast_to(np.maximum(np.asarray(spread, dtype=np.float64), 1e-4) ** 2, (*share.shape, 2))
    for _ in range(STEPS):
        beta, own, moved = _step(x, labels, weights, beta, own, variances)
        if moved < TOLERANCE:
            break
    _, information = _derivatives(x, labels, weights, beta, own)
    informed = variances[..., None, 0] * information[..., 0, 0]
    return PooledCurves(beta, beta[..., None, :] + own, np.sqrt(variances), informed / (1 + informed))


def _derivatives(x: Floats, labels: Floats, weights: Floats, beta: Floats, own: Floats) -> tuple[Floats, Floats]:
    """Score, shape (..., segments, 3), and information, (..., segments, 3, 3), of each segment's labels."""
    p = expit((x @ (beta[..., None, :] + own)[..., None])[..., 0])
    score = (np.swapaxes(x, -1, -2) @ (weights * (labels - p))[..., None])[..., 0]
    information = np.swapaxes(x, -1, -2) @ (x * (weights * p * (1 - p))[..., None])
    return score, information


def _step(
    x: Floats, labels: Floats, weights: Floats, beta: Floats, own: Floats, variances: Floats
) -> tuple[Floats, Floats, float]:
    """One step of Newton's method; the segments' coefficients are solved for first (Schur complement)."""
    score, information = _derivatives(x, labels, weights, beta, own)
    prior = 1 / variances[..., None, [0, 1, 1]]
    ridge = np.array([0.0, 1 / C, 1 / C])
    inverse = np.linalg.inv(information + prior[..., None] * np.eye(3))
    pull = score - prior * own
    solved = (inverse @ pull[..., None])[..., 0]
    right = score.sum(-2) - ridge * beta - (information @ solved[..., None])[..., 0].sum(-2)
    left = (information - information @ inverse @ information).sum(-3) + np.diag(ridge + 1e-12)
    by = np.linalg.solve(left, right[..., None])[..., 0]
    own_by = solved - (inverse @ (information @ by[..., None, :, None]))[..., 0]
    reach = np.maximum(np.abs(by).max(-1), np.abs(own_by).max((-2, -1)))
    scale = np.minimum(1.0, LEAP / np.maximum(reach, TOLERANCE))
    return (
        beta + by * scale[..., None],
        own + own_by * scale[..., None, None],
        float(reach.max(initial=0.0)),
    )


def _best_variances(x: Floats, labels: Floats, weights: Floats, beta: Floats, own: Floats) -> Floats:
    """The variances, shape (..., 2), of highest restricted marginal likelihood in the grid of LEVELS and SLOPES."""
    score, information = _derivatives(x, labels, weights, beta, own)
    linear = (information @ own[..., None])[..., 0] + score
    ridge = np.array([0.0, 1 / C, 1 / C])
    grid = np.stack(np.meshgrid(LEVELS, SLOPES, indexing="ij"), axis=-1).reshape(-1, 2)
    best = np.full(score.shape[:-2], -np.inf)
    variances = np.zeros((*best.shape, 2))
    for spread in grid:
        variance = (spread**2)[[0, 1, 1]]
        precision = information + np.diag(1 / variance)
        inverse = np.linalg.inv(precision)
        solved = (inverse @ linear[..., None])[..., 0]
        left = (information - information @ inverse @ information).sum(-3) + np.diag(ridge + 1e-12)
        right = (linear - (information @ solved[..., None])[..., 0]).sum(-2) - ridge * beta
        _, sizes = np.linalg.slogdet(precision)
        _, size = np.linalg.slogdet(left)
        value = 0.5 * (
            (linear * solved).sum((-2, -1))
            - (sizes + np.log(variance).sum()).sum(-1)
            + (right * np.linalg.solve(left, right[..., None])[..., 0]).sum(-1)
            - size
            - ((spread / PRIOR) ** 2).sum()
        )
        better = value > best
        best = np.where(better, value, best)
        variances = np.where(better[..., None], spread**2, variances)
    return variances
