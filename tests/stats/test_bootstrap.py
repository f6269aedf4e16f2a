"""The bootstrap against scikit-learn, and against intervals that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calibrate.stats.bootstrap import auroc, auroc_interval, resamples


def test_auroc_of_every_resample_is_scikit_learns() -> None:
    rng = np.random.default_rng(3)
    labels = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + labels, 1)  # with ties
    weights = resamples([None] * 200, rng=rng, count=50)
    for flag_when, signed in (("above", scores), ("below", -scores)):
        ours = auroc(labels, scores, weights, flag_when=flag_when)
        theirs = [roc_auc_score(labels, signed, sample_weight=row) for row in weights]
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_groups_are_drawn_whole() -> None:
    weights = resamples(["a", "b", "a", None, "b", None], rng=np.random.default_rng(1), count=400)
    assert weights.shape == (400, 6)
    assert np.array_equal(weights[:, 0], weights[:, 2])
    assert np.array_equal(weights[:, 1], weights[:, 4])
    assert not np.array_equal(weights[:, 3], weights[:, 5])
    drawn = weights[:, [0, 1, 3, 5]].sum(axis=1)
    assert (drawn == 4).all()
    assert weights.mean() == pytest.approx(1, abs=0.05)


def test_one_class_gives_no_value() -> None:
    given = {"groups": [None] * 3, "flag_when": "above", "rng": np.random.default_rng(0)}
    assert auroc_interval(np.ones(3, dtype=bool), np.arange(3.0), **given).value is None  # type: ignore[arg-type]
    assert math.isnan(auroc(np.ones(3, dtype=bool), np.arange(3.0), np.ones((1, 3)))[0])


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Normal scores one standard deviation apart: the true AUROC is Φ(1/√2) = .7602."""
    rng = np.random.default_rng(11)
    truth, hits = 0.7602, 0
    for _ in range(200):
        labels = np.arange(150) < 60
        scores = rng.normal(size=150) + labels
        found = auroc_interval(labels, scores, groups=[None] * 150, flag_when="above", rng=rng)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert 178 <= hits <= 200  # 95% of 200, four standard errors of .0154 either side


def test_copies_of_a_trace_add_no_certainty() -> None:
    rng = np.random.default_rng(5)
    labels = np.arange(80) < 40
    scores = rng.normal(size=80) + labels
    once = auroc_interval(labels, scores, groups=list(range(80)), flag_when="above", rng=rng)
    many = auroc_interval(
        np.repeat(labels, 6), np.repeat(scores, 6), groups=list(np.repeat(range(80), 6)), flag_when="above", rng=rng
    )
    wide = [found.high - found.low for found in (once, many)]  # type: ignore[operator]
    assert wide[1] == pytest.approx(wide[0], rel=0.15)
