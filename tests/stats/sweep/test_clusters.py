"""Answers that share sources: running sums against sums by hand, and intervals that hold where rows are no evidence
for themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from calibrate.errors import BadInput
from calibrate.stats.intervals.sweep_intervals import band, figures
from calibrate.stats.intervals.variance import (
    false_positive_ratio,
    flag_rate_ratio,
    precision_ratio,
    recall_ratio,
    variance,
)
from calibrate.stats.sweep.sweep import sweep


@settings(max_examples=60)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_the_variance_is_the_squared_residuals_of_whole_clusters(n: int, seed: int, below: bool) -> None:
    rng = np.random.default_rng(seed)
    y, scores = rng.random(n) < 0.4, np.round(rng.normal(size=n), 1)
    scores[rng.random(n) < 0.15] = np.nan
    weights, groups = rng.uniform(1, 5, n), rng.integers(0, 1 + n // 2, n)
    curve = sweep(y, scores, weights=weights, groups=groups.tolist(), flag_when="below" if below else "above")
    if curve.clusters is None:
        assert len(set(groups)) == n
        return
    for i, threshold in enumerate(curve.thresholds):
        f = scores <= threshold if below else scores >= threshold
        parts = {
            precision_ratio: (f & y, f),
            recall_ratio: (f & y, y),
            false_positive_ratio: (f & ~y, ~y),
            flag_rate_ratio: (f, np.ones(n, dtype=bool)),
        }
        for figure, (part, whole) in parts.items():
            total = (weights * whole).sum()
            if not total:
                continue
            share = (weights * part).sum() / total
            residuals = weights * whole * (part - share)
            sums = np.bincount(groups, weights=residuals)
            # Kish's number of clusters of equal weight, for the degree of freedom that the share itself takes.
            even = max(total**2 / (np.bincount(groups, weights=weights * whole) ** 2).sum(), 2.0)
            expected = (sums**2).sum() / total**2 * even / (even - 1)
            assert_allclose(variance(curve, figure(curve))[i], expected, rtol=1e-9, atol=1e-15)


def test_groups_of_one_change_nothing() -> None:
    rng = np.random.default_rng(1)
    y, scores = rng.random(50) < 0.3, rng.normal(size=50)
    alone, none = sweep(y, scores, groups=[None] * 50), sweep(y, scores)
    named = sweep(y, scores, groups=[f"g{i}" for i in range(50)])
    for other in (alone, named):
        assert other.clusters is None
        assert_allclose(band(other).precision_low, band(none).precision_low)


def test_every_trace_eight_times_is_as_well_known_as_once() -> None:
    """The same answers copied: rows are eight times as many, evidence is not."""
    rng = np.random.default_rng(2)
    y, scores = rng.random(120) < 0.3, rng.normal(size=120)
    once = figures(sweep(y, scores), 0.3)
    copied = sweep(np.tile(y, 8), np.tile(scores, 8), groups=list(range(120)) * 8)
    many = figures(copied, 0.3)
    fooled = figures(sweep(np.tile(y, 8), np.tile(scores, 8)), 0.3)
    for name in ("precision", "recall", "fpr", "flag_rate"):
        one, other, naive = (getattr(found, name) for found in (once, many, fooled))
        width = one.high - one.low
        assert other.high - other.low == pytest.approx(width, rel=0.1)
        assert naive.high - naive.low < 0.5 * width


@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_intervals_cover_where_answers_share_their_sources(threshold: float) -> None:
    """Groups of six whose scores and verdicts lean the same way; the truth is that of the population of groups."""
    rng = np.random.default_rng(3)

    def groups(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        lean = rng.normal(size=(count, 1))
        y = rng.random((count, 6)) < 1 / (1 + np.exp(1.5 - 1.5 * lean))
        scores = 1.2 * y + 0.8 * lean + rng.normal(size=(count, 6))
        return y.ravel(), scores.ravel(), np.repeat(np.arange(count), 6)

    y, scores, _ = groups(200_000)
    flagged = scores >= threshold
    truth = {"precision": y[flagged].mean(), "recall": flagged[y].mean(), "flag_rate": flagged.mean()}
    inside, naive, runs = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0), 400
    for _ in range(runs):
        y, scores, group = groups(70)
        clustered = figures(sweep(y, scores, groups=group.tolist()), threshold)
        alone = figures(sweep(y, scores), threshold)
        for name, value in truth.items():
            for found, hits in ((clustered, inside), (alone, naive)):
                reach = getattr(found, name)
                hits[name] += reach.low <= value <= reach.high
    for name in truth:
        assert 0.915 <= inside[name] / runs <= 0.985, (name, inside[name] / runs)  # Monte Carlo error 1.1 points
    assert naive["flag_rate"] / runs < 0.85


def test_a_group_for_every_label() -> None:
    with pytest.raises(BadInput, match="3 groups for 2 labels"):
        sweep([True, False], [1.0, 0.0], groups=["a", "a", "b"])
