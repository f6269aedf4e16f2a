"""The bounded strength against scipy's exact intervals, the formula written out, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import beta, binomtest
from scipy.stats import t as student

from calibrate.errors import BadInput
from calibrate.stats.choosing.bounded import START, Bounded, NotBounded, bounded, lower_bounds
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import Missing, sweep
from calibrate.types import UnmetReason


def drawn(seed: int, n: int = 200, shift: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.4
    labels[:2] = True, False
    return labels, np.round(rng.standard_normal(n) + shift * labels, 1)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.05, 0.2]))
def test_without_weights_it_is_the_exact_one_sided_bound(seed: int, alpha: float) -> None:
    curve = sweep(*drawn(seed))
    for ours, k, fp in zip(lower_bounds(curve, alpha=alpha), curve.tp_count, curve.fp_count, strict=True):
        theirs = binomtest(int(k), int(k + fp), alternative="greater").proportion_ci(1 - alpha, method="exact")
        assert ours == pytest.approx(theirs.low, abs=1e-9)


def test_weights_that_are_all_alike_change_nothing() -> None:
    labels, scores = drawn(1)
    plain = lower_bounds(sweep(labels, scores))
    assert_allclose(lower_bounds(sweep(labels, scores, weights=np.full(len(labels), 7.0))), plain, atol=1e-9)


def test_with_a_design_it_is_korn_and_graubard_written_out() -> None:
    rng = np.random.default_rng(3)
    strata = np.repeat([0, 1, 2], [30, 40, 50])
    population = np.array([60, 400, 5000])
    labels = rng.random(120) < np.array([0.8, 0.5, 0.2])[strata]
    scores = rng.standard_normal(120) - strata + labels
    design = Design(strata, population)
    curve = sweep(labels, scores, design=design)
    bounds = lower_bounds(curve, alpha=0.05)
    for point in (30, 60, 90):
        flagged = scores >= curve.thresholds[point]
        weights = (population / np.array([30, 40, 50]))[strata]
        whole = (weights * flagged).sum()
        p = (weights * flagged * labels).sum() / whole
        residual = flagged * (labels - p) / whole
        v = sum(population[h] ** 2 * residual[strata == h].var(ddof=1) / n for h, n in enumerate((30, 40, 50)))
        n = flagged.sum()
        freedom = n - len(np.unique(strata[flagged]))
        ratio = (student.ppf(0.95, n - 1) / student.ppf(0.95, freedom)) ** 2
        effective = min(n, p * (1 - p) / v) * ratio
        assert bounds[point] == pytest.approx(beta.ppf(0.05, effective * p, effective * (1 - p) + 1), rel=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.6, 0.7, 0.8]))
def test_the_walk_stops_at_the_first_cut_that_fails(seed: int, target: float) -> None:
    labels, scores = drawn(seed)
    expected = None
    for threshold in np.unique(scores)[::-1]:
        flagged = scores >= threshold
        if flagged.sum() < START:
            continue
        test = binomtest(int(labels[flagged].sum()), int(flagged.sum()), alternative="greater")
        if test.proportion_ci(0.95, method="exact").low < target:
            break
        expected = threshold
    found = bounded(sweep(labels, scores), target)
    if expected is None:
        assert isinstance(found, NotBounded)
        assert not hasattr(found, "threshold")
    else:
        assert isinstance(found, Bounded)
        assert found.threshold == expected
        assert found.labels == (scores >= expected).sum()
        assert found.bound >= target
        assert_allclose(found.bounds[found.thresholds == expected], found.bound)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_higher_target_never_gives_a_looser_threshold(seed: int) -> None:
    curve = sweep(*drawn(seed, shift=3.0))
    cuts = [bounded(curve, target) for target in (0.5, 0.6, 0.7, 0.8, 0.9)]
    thresholds = [cut.threshold if isinstance(cut, Bounded) else np.inf for cut in cuts]
    assert thresholds == sorted(thresholds)


def test_order_and_direction_do_not_matter() -> None:
    labels, scores = drawn(5, shift=3.0)
    found = bounded(sweep(labels, scores), 0.6)
    assert isinstance(found, Bounded)
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = bounded(sweep(labels[order], scores[order]), 0.6)
    flipped = bounded(sweep(labels, -scores, flag_when="below"), 0.6)
    assert isinstance(shuffled, Bounded)
    assert isinstance(flipped, Bounded)
    assert found.threshold == shuffled.threshold == -flipped.threshold
    assert found.bound == pytest.approx(flipped.bound)


@pytest.mark.parametrize(
    ("labels", "scores", "missing", "reason", "flagged"),
    [
        ([1, 0, 1], [3, 2, 1], None, UnmetReason.FEW_FLAGGED, 3),
        ([0] * 40, list(range(40)), Missing.ALL_CLEAN, UnmetReason.FEW_FLAGGED, 40),
        ([1, 0] * 30, list(range(60)), None, UnmetReason.BOUND, 20),
    ],
)
def test_what_is_not_bounded_says_why(
    labels: list[int], scores: list[float], missing: Missing | None, reason: UnmetReason, flagged: int
) -> None:
    found = bounded(sweep(labels, scores), 0.7)
    assert isinstance(found, NotBounded)
    assert (found.missing, found.unmet.reason, found.labels) == (missing, reason, flagged)
    if reason == UnmetReason.BOUND:
        assert (found.precision, found.unmet.best) == (0.5, found.bounds[0])


def test_a_target_of_one_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        bounded(sweep(*drawn(1)), 1.0)
