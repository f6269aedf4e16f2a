"""The bootstrap against scikit-learn, and against intervals that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calibrate.stats.intervals.bootstrap import Units, draw_counts, weighted_auroc


def test_auroc_of_every_resample_is_scikit_learns() -> None:
    rng = np.random.default_rng(3)
    labels = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + labels, 1)  # with ties
    weights = np.concatenate(list(draw_counts(Units.among([None] * 200), 50, rng))).astype(float)
    ours = weighted_auroc(labels, scores, weights)
    theirs = [roc_auc_score(labels, scores, sample_weight=row) for row in weights]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_groups_are_drawn_whole() -> None:
    units = Units.among(["a", "b", "a", None, "b", None])
    weights = np.concatenate(list(draw_counts(units, 400, np.random.default_rng(1))))
    assert weights.shape == (400, 6)
    assert np.array_equal(weights[:, 0], weights[:, 2])
    assert np.array_equal(weights[:, 1], weights[:, 4])
    assert not np.array_equal(weights[:, 3], weights[:, 5])
    assert (weights[:, [0, 1, 3, 5]].sum(axis=1) == 4).all()
    assert weights.mean() == pytest.approx(1, abs=0.05)


def test_one_class_gives_no_value() -> None:
    assert math.isnan(weighted_auroc(np.ones(3, dtype=bool), np.arange(3.0), np.ones((1, 3)))[0])
