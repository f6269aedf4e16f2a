"""The ridge logistic against scikit-learn, and properties a probability map must have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from calibrate.errors import BadInput
from calibrate.stats.fitting.ridge import expit, fit_probability_map, fit_ridge, hinge


def drawn(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.3
    labels[:2] = True, False
    return labels, rng.standard_normal(n) + 1.2 * labels, rng.uniform(0.2, 5.0, n)


def theirs(features: np.ndarray, labels: np.ndarray, weights: np.ndarray, c: float) -> np.ndarray:
    found = LogisticRegression(C=c, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    found.fit(features, labels, sample_weight=weights)
    return np.append(found.intercept_, found.coef_[0])


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.03, 0.3, 1.0, 30.0]))
def test_equals_scikit_learn(seed: int, c: float) -> None:
    labels, z, weights = drawn(seed)
    ours = fit_ridge(hinge(z), labels.astype(float), weights, c=c)
    assert_allclose(ours.coefficients, theirs(hinge(z), labels, weights, c), atol=2e-5)


def test_many_fits_at_once_are_the_single_fits() -> None:
    sets = [drawn(seed) for seed in range(20)]
    labels, z, weights = (np.stack([one[part] for one in sets]) for part in range(3))
    together = fit_ridge(hinge(z), labels.astype(float), weights, c=0.5)
    for row in range(20):
        alone = fit_ridge(hinge(z[row]), labels[row].astype(float), weights[row], c=0.5)
        assert_allclose(together.coefficients[row], alone.coefficients, atol=1e-8)
        assert_allclose(together.probability(hinge(z[0]))[row], alone.probability(hinge(z[0])), atol=1e-8)


def test_a_penalty_per_feature_equals_scikit_learn_on_rescaled_features() -> None:
    labels, z, weights = drawn(3)
    scale = np.array([0.5, 2.0])
    ours = fit_ridge(hinge(z), labels.astype(float), weights, c=scale**2)
    assert_allclose(ours.coefficients[1:], scale * theirs(hinge(z) * scale, labels, weights, 1.0)[1:], atol=2e-5)


def test_perfectly_separated_labels_have_a_finite_fit() -> None:
    z = np.linspace(-2, 2, 40)
    labels = (z > 0).astype(float)
    assert_allclose(
        fit_ridge(hinge(z), labels, c=1.0).coefficients, theirs(hinge(z), labels, np.ones(40), 1.0), atol=2e-5
    )


def test_one_class_has_a_minimum_when_the_intercept_is_held() -> None:
    found = fit_ridge(hinge(np.linspace(-2, 2, 40)), np.zeros(40), c=1.0, c_free=100.0)
    assert np.isfinite(found.coefficients).all()
    assert found.probability(hinge(np.array([0.0])))[0] < 0.05


def test_the_curvature_is_the_second_derivative_of_the_loss() -> None:
    labels, z, weights = drawn(5)
    x = np.column_stack([np.ones(len(z)), hinge(z)])

    def gradient(beta: np.ndarray) -> np.ndarray:
        return x.T @ (weights * (expit(x @ beta) - labels)) + np.array([0, 1 / 2, 1 / 2]) * beta

    found = fit_ridge(hinge(z), labels.astype(float), weights, c=2.0)
    numeric = [(gradient(found.coefficients + h) - gradient(found.coefficients - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
    assert_allclose(found.curvature, numeric, rtol=1e-6, atol=1e-6)


def test_a_map_is_the_same_whatever_the_order_the_halves_and_the_sign() -> None:
    labels, scores, weights = drawn(8)
    at = np.linspace(-3, 4, 30)
    whole = fit_probability_map(labels, scores, weights=weights).at(at)
    order = np.random.default_rng(1).permutation(len(labels))
    assert_allclose(fit_probability_map(labels[order], scores[order], weights=weights[order]).at(at), whole, atol=1e-9)
    flipped = fit_probability_map(labels, -scores, weights=weights, flag_when="below")
    assert_allclose(flipped.at(-at), whole, atol=1e-9)
    moved = fit_probability_map(labels, 100 * scores + 7, weights=weights)
    assert_allclose(moved.at(100 * at + 7), whole, atol=1e-8)
    assert_allclose(fit_probability_map(labels, scores, weights=1000 * weights).at(at), whole, atol=1e-9)


def test_every_trace_twice_at_half_weight_is_the_same_fit() -> None:
    labels, z, weights = drawn(9)
    twice = fit_ridge(hinge(np.tile(z, 2)), np.tile(labels, 2).astype(float), np.tile(weights / 2, 2))
    assert_allclose(twice.coefficients, fit_ridge(hinge(z), labels.astype(float), weights).coefficients, atol=1e-8)


def test_a_missing_score_changes_nothing_and_has_no_probability() -> None:
    labels, scores, _ = drawn(10)
    more = fit_probability_map(np.append(labels, True), np.append(scores, np.nan))
    assert more == fit_probability_map(labels, scores)
    assert np.isnan(more.at([np.nan]))[0]


@pytest.mark.parametrize(
    ("labels", "scores", "says"),
    [
        ([0, 0, 0], [1, 2, 3], "all 3 scored labels are clean"),
        ([1, 1], [1, 2], "all 2 scored labels are hallucinated"),
        ([1, 0, 1], [2, 2, 2], "all 3 scores are 2"),
        ([1, 0], [1, np.inf], "infinite"),
        ([1, 0], [1], "2 labels and 1 scores"),
    ],
)
def test_what_has_no_map_is_refused_in_a_sentence(labels: list[int], scores: list[float], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        fit_probability_map(labels, scores)
