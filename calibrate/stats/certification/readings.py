"""What the first labels leave possible: P(hallucinated) along the ranking, drawn from two readings of the labels.

One reading trusts the score: a ridge logistic on it, with a bend in every octave of the ranking. It expects the
strictest scores to be the surest. The other trusts levels: log odds that move from octave to octave, and stay as they
are within the last. On a plateau the first sees a rise that is not there and promises certificates that do not come;
where scores have a tail, the second does not see it. Draws come from both, in proportion to how well each explains the
labels; before any label, both are as likely.

References
----------
Hoeting, Madigan, Raftery and Volinsky, Bayesian model averaging: a tutorial, Statistical Science 14 (1999); MacKay,
Information Theory, Inference, and Learning Algorithms (2003), chapter 27: Laplace's approximation to the evidence.
"""

from __future__ import annotations

import numpy as np

from calibrate.stats.certification.ladder import KNOTS, NODES, Ladder
from calibrate.stats.fitting.ridge import Ridge, expit, fit_ridge, with_one
from calibrate.stats.sweep.design import Floats

C_SCORE, C_KNOT, C_FREE = 4.0, 1.0, 1e4
"""Prior variances of the score's two coefficients, of each knot's deviation from them, and of the intercept."""

C_LEVEL = 2.0
"""Prior variance of the change in log odds from one octave to the next, where levels are read."""

WIDEN = 1.25
"""The posterior's spread is taken this much wider: a normal approximation at 100 labels is overconfident."""

CHUNK = 64  # replications held at once


def draw_rings(
    ladder: Ladder, features: Floats, labels: Floats, weights: Floats, *, draws: int, rng: np.random.Generator
) -> Floats:
    """Draw what the first labels leave possible: P(hallucinated) in every ring of the ladder.

    Parameters
    ----------
    ladder : Ladder
        The cuts that a plan may use.
    features : array of float, shape (R, labels, features)
        What the fit sees of each label (`Ladder.describe`).
    labels : array of float, shape (R, labels)
        1 for hallucinated.
    weights : array of float, shape (R, labels)
        What each label counts.
    draws : int
        Draws of the posterior.
    rng : Generator
        Source of the random draws.

    Returns
    -------
    array of float, shape (R, draws, cuts)
        P(hallucinated) between each cut and the stricter one, 0 to 1. Draws are in random order.
    """
    score, score_evidence = _fit(features, labels, weights, np.append([C_SCORE, C_SCORE], np.full(len(KNOTS), C_KNOT)))
    level, level_evidence = _fit(_steps(features), labels, weights, np.full(len(KNOTS) - 1, C_LEVEL))
    share = 1 / (1 + np.exp(np.clip(level_evidence - score_evidence, -50.0, 50.0)))
    by_score = _draw_curves(score, ladder.features, draws, rng)
    by_level = _draw_curves(level, _steps(ladder.features), draws, rng)
    return np.where((rng.random((len(share), draws)) < share[:, None])[..., None], by_score, by_level)


def _fit(features: Floats, labels: Floats, weights: Floats, variances: Floats) -> tuple[Ridge, Floats]:
    """The fit, and the logarithm of how well it explains the labels, shape (R,)."""
    fitted = fit_ridge(features, labels, weights, c=variances, c_free=C_FREE)
    eta = np.einsum("rlf,rf->rl", with_one(features), fitted.coefficients)
    penalty = 1 / np.append(C_FREE, variances)
    likelihood = (weights * (labels * eta - np.logaddexp(0.0, eta))).sum(-1)
    prior = (np.log(penalty).sum() - (penalty * fitted.coefficients**2).sum(-1)) / 2
    return fitted, likelihood + prior - np.linalg.slogdet(fitted.curvature)[1] / 2


def _steps(features: Floats) -> Floats:
    """How far into each octave a score lies, 0 to 1, from the hats that `Ladder.describe` gives it."""
    halvings = features[..., -len(KNOTS) :] @ KNOTS
    return np.asarray(np.clip(halvings[..., None] - KNOTS[:-1], 0.0, 1.0))


def _draw_curves(fitted: Ridge, nodes: Floats, draws: int, rng: np.random.Generator) -> Floats:
    root = np.linalg.cholesky(np.linalg.inv(fitted.curvature))
    noise = rng.standard_normal((len(root), draws, root.shape[-1]))
    coefficients = fitted.coefficients[:, None, :] + WIDEN * noise @ np.swapaxes(root, -1, -2)
    at = with_one(nodes).reshape(-1, root.shape[-1])
    probability = np.empty((len(root), draws, len(nodes)))
    for begin in range(0, len(root), CHUNK):
        part = slice(begin, begin + CHUNK)
        each = expit(coefficients[part] @ at.T)
        probability[part] = each.reshape(*each.shape[:2], -1, NODES).mean(-1)
    return probability
