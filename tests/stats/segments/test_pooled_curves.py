"""Curves per segment: against scikit-learn, and at the ends of pooling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from calibrate.stats.fitting.ridge import expit, hinge
from calibrate.stats.segments.pooling import pool_curves


def labels_of(odds: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(z.shape) < expit(odds[:, None] + 1.2 * z)).astype(float)


def test_identical_segments_have_the_pooled_curve() -> None:
    rng = np.random.default_rng(1)
    z = np.tile(rng.normal(size=150), (4, 1))
    y = np.tile(labels_of(np.array([-1.0]), z[:1], rng), (4, 1))
    pooled = pool_curves(hinge(z), y, np.ones_like(y))
    whole = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(hinge(z).reshape(-1, 2), y.ravel())
    assert pooled.common == pytest.approx(np.append(whole.intercept_, whole.coef_), abs=1e-4)
    assert pooled.each == pytest.approx(np.tile(pooled.common, (4, 1)), abs=1e-3)
    assert pooled.shrinkage.max() < 0.01


def test_many_labels_have_their_own_curve() -> None:
    rng = np.random.default_rng(2)
    odds = np.array([-2.5, -1.0, 0.5])
    z = rng.normal(size=(3, 40_000))
    y = labels_of(odds, z, rng)
    pooled = pool_curves(hinge(z), y, np.ones_like(y))
    for segment in range(3):
        own = LogisticRegression(C=1e6, tol=1e-10, max_iter=1000).fit(hinge(z[segment]), y[segment])
        assert pooled.each[segment, 0] == pytest.approx(own.intercept_[0], abs=0.03)
        assert pooled.each[segment, 1] == pytest.approx(own.coef_[0, 0], abs=0.06)
    assert pooled.shrinkage.min() > 0.95


def test_few_labels_lie_between() -> None:
    rng = np.random.default_rng(3)
    odds = np.array([-2.5, -1.0, 0.5])
    z = rng.normal(size=(3, 60))
    y = labels_of(odds, z, rng)
    pooled = pool_curves(hinge(z), y, np.ones_like(y))
    own = [LogisticRegression(C=1e6).fit(hinge(z[0])[:, :1], y[0]).intercept_[0]]
    assert own[0] < pooled.each[0, 0] < pooled.common[0]
    assert np.all((pooled.shrinkage > 0.3) & (pooled.shrinkage < 0.98))


def test_a_spread_that_is_given_is_a_ridge() -> None:
    """With the spreads fixed the fit is penalised maximum likelihood; scipy minimises the same loss."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(2, 50))
    y, w = labels_of(np.array([-1.5, 0.0]), z, rng), rng.uniform(0.5, 1.5, size=(2, 50))
    x = np.concatenate([np.ones((2, 50, 1)), hinge(z)], axis=-1)
    variance = np.array([0.6, 0.3, 0.3]) ** 2

    def loss(flat: np.ndarray) -> float:
        common, own = flat[:3], flat[3:].reshape(2, 3)
        eta = (x @ (common + own)[..., None])[..., 0]
        fit = (w * (np.logaddexp(0, eta) - y * eta)).sum()
        return float(fit + (common[1:] ** 2).sum() / 2 + (own**2 / variance).sum() / 2)

    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-7}).x
    pooled = pool_curves(hinge(z), y, w, spread=np.array([0.6, 0.3]))
    assert pooled.common == pytest.approx(best[:3], abs=1e-4)
    assert pooled.each == pytest.approx(best[:3] + best[3:].reshape(2, 3), abs=1e-4)


def test_many_fits_at_once_are_each_alone() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(size=(4, 3, 40))
    y = labels_of(np.array([-1.0, 0.0, 1.0]), z[0], rng)[None].repeat(4, axis=0)
    w = (rng.random((4, 3, 40)) < 0.8).astype(float)
    together = pool_curves(hinge(z), y, w)
    for fit in range(4):
        alone = pool_curves(hinge(z[fit]), y[fit], w[fit])
        assert together.each[fit] == pytest.approx(alone.each, abs=1e-6)
