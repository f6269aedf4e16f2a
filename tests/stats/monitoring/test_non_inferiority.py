"""The test of non-inferiority against scipy's distributions and intervals, and formulas written out by hand."""

from __future__ import annotations

from math import hypot

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, norm

from calibrate.stats.intervals.binomial_intervals import jeffreys
from calibrate.stats.monitoring.non_inferiority import (
    ALPHA,
    MOST,
    POWER,
    Change,
    Figure,
    bounded,
    compare,
    exactly,
    forecast,
    one_sided,
    planned,
)
from calibrate.types import Interval


@given(st.integers(0, 400), st.integers(1, 400), st.sampled_from([0.01, 0.03, 0.05]))
@settings(max_examples=60, deadline=None)
def test_a_stored_interval_gives_the_bounds_of_the_same_labels(hits: int, n: int, alpha: float) -> None:
    hits = min(hits, n)
    stored = jeffreys(np.array([hits / n]), np.array([float(n)]))
    figure = one_sided(Interval(hits / n, float(stored.low[0]), float(stored.high[0])), alpha=alpha)
    assert figure is not None
    posterior = beta(hits + 0.5, n - hits + 0.5)
    if 0 < hits < n:
        assert figure.low == pytest.approx(min(posterior.ppf(alpha), hits / n), abs=1e-6)
        assert figure.high == pytest.approx(max(posterior.ppf(1 - alpha), hits / n), abs=1e-6)
    assert (figure.low == 0) == (hits == 0)
    assert (figure.high == 1) == (hits == n)


def test_an_unknown_interval_gives_no_bounds() -> None:
    assert one_sided(Interval(None)) is None
    assert bounded(Interval(0.4)) is None


def test_the_difference_of_two_wilson_intervals_is_newcombes() -> None:
    """His example: 56 of 70 and 48 of 80 differ by 0.2, 95% 0.0524 to 0.3339 (Statistics in Medicine 17, 1998)."""
    figures = []
    for hits, n in ((56, 70), (48, 80)):
        wilson = binomtest(hits, n).proportion_ci(0.95, method="wilson")
        figures.append(Figure(hits / n, wilson.low, wilson.high))
    now, then = figures
    change = compare((then, then), (now, now), 0.05)
    assert (change.value, change.low, change.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_a_target_brings_no_uncertainty_of_its_own() -> None:
    now = Figure(0.72, 0.66, 0.77)
    change = compare((exactly(0.7), exactly(0.7)), (now, now), 0.05)
    assert (change.value, change.low, change.high) == pytest.approx((0.02, -0.04, 0.07))
    assert change.holds
    assert not change.fell


def test_fell_takes_the_bound_of_the_whole_family() -> None:
    then, now = exactly(0.8), Figure(0.6, 0.5, 0.74)
    alone = compare((then, then), (now, now), 0.05)
    among = compare((then, then), (now, Figure(0.6, 0.45, 0.76)), 0.05)
    assert (alone.fell, among.fell) == (True, False)
    assert compare((then, then), None, 0.05) == Change(then, None, 0.05, -1.0, 1.0, 1.0)


def change_of(value: float, spread: float, *, promise: float = 0.0, margin: float = 0.05) -> Change:
    """A change whose figures are normal, with these standard errors."""
    reach = norm.isf(ALPHA)
    then = Figure(0.5, 0.5 - reach * promise, 0.5 + reach * promise)
    now = Figure(0.5 + value, 0.5 + value - reach * spread, 0.5 + value + reach * spread)
    return compare((then, then), (now, now), margin)


@pytest.mark.parametrize("value", [0.0, 0.02, -0.03])
def test_the_labels_asked_for_decide_with_the_chance_promised(value: float) -> None:
    """Against a simulation of its own: labels to come are normal, and so is what is known by now."""
    n, spread = 200, 0.06
    change = change_of(value, spread)
    assert not change.holds
    answer = forecast([change], n, rng=np.random.default_rng(1))
    assert answer.more is not None
    rng = np.random.default_rng(2)
    truth = value + spread * rng.standard_normal(20_000)
    later = spread * np.sqrt(n / answer.more) * rng.standard_normal(20_000)
    seen = (n * value + answer.more * (truth + later)) / (n + answer.more)
    half = norm.isf(ALPHA) * spread * np.sqrt(n / (n + answer.more))
    decided = (seen - half > -0.05) | (seen + half < -0.05)
    assert decided.mean() == pytest.approx(POWER, abs=0.03)


def test_no_number_is_asked_for_where_none_helps() -> None:
    rng = np.random.default_rng(3)
    vague = forecast([change_of(0.0, 0.05, promise=0.1)], 200, rng=rng)
    assert (vague.more, vague.promise) == (None, True)
    near = forecast([change_of(-0.05, 0.004)], 200, rng=rng)
    assert near.more is None or near.more > 2000


def test_the_plan_has_the_power_of_the_textbook() -> None:
    """One proportion against a number: n = p (1 - p) ((z_alpha + z_beta) / d)^2."""
    measured = one_sided(Interval(0.6, *beta(300.5, 200.5).interval(0.95)))
    assert measured is not None
    n = planned([(measured, exactly(0.6))], [0.05], [500])
    assert n == pytest.approx(0.24 * ((norm.isf(ALPHA) + norm.ppf(POWER)) / 0.05) ** 2, rel=0.03)
    both = planned([(measured, measured)], [0.2], [500])
    assert both is not None
    spread = hypot((0.24 / 500) ** 0.5, (0.24 / both) ** 0.5)
    assert (norm.isf(ALPHA) + norm.ppf(POWER)) * spread == pytest.approx(0.2, rel=0.03)
    assert planned([(measured, measured)], [0.05], [500]) is None
    assert planned([(measured, exactly(0.6))], [0.001], [500]) is None
    assert n < MOST
