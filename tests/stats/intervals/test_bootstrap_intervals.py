"""Intervals from resampled values against the formulas they are from, and against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, norm, t

from calibrate.stats.intervals import bootstrap_intervals
from calibrate.stats.intervals.bootstrap import Order, Units, draw_counts
from calibrate.stats.intervals.bootstrap_intervals import Verdicts
from calibrate.types import Interval

NORMAL = norm.ppf(np.linspace(0.0005, 0.9995, 1000))


def bounds(found: Interval) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_labels_that_weigh_more_than_others_are_worth_fewer() -> None:
    labels, units = np.repeat([True, False], 50), np.arange(100) // 2
    same = Verdicts.worth(labels, np.full(100, 3.0), units)
    assert (same.hallucinated, same.clean) == pytest.approx((25, 25))
    heavy = np.where(np.arange(100) == 0, 49.0, 1.0)
    assert Verdicts.worth(labels, heavy, units).hallucinated == pytest.approx(98**2 / (50**2 + 24 * 2**2))


def test_the_ends_are_no_further_out_than_draws_can_tell() -> None:
    some = norm.ppf((np.arange(200) + 0.5) / 200)
    few, many = (
        bounds(bootstrap_intervals.percentile_interval(0.0, draws, Verdicts(3.2, 500))) for draws in (some, NORMAL)
    )
    assert few == pytest.approx((norm.ppf(5 / 200), norm.ppf(1 - 5 / 200)), rel=0.03)
    assert many == pytest.approx((norm.ppf(5 / 1000), norm.ppf(1 - 5 / 1000)), rel=0.03)


@pytest.mark.parametrize("area", [0.0, 0.3, 0.62, 0.95, 1.0])
def test_aurocs_bounds_are_as_far_as_hanley_and_mcneils_variance_there_allows(area: float) -> None:
    """Their variance by Q1 and Q2, with (n + m) / 2 - 1 in place of n - 1 and m - 1 (Newcombe's method 5)."""
    n, m = 15, 285
    for bound in bounds(bootstrap_intervals.auroc_interval(area, np.full(100, area), Verdicts(n, m))):
        if bound in (0.0, 1.0):
            continue
        q1, q2, half = bound / (2 - bound), 2 * bound**2 / (1 + bound), (n + m) / 2 - 1
        variance = (bound * (1 - bound) + half * (q1 - bound**2) + half * (q2 - bound**2)) / (n * m)
        assert abs(area - bound) == pytest.approx(norm.ppf(0.975) * np.sqrt(variance), rel=1e-6)


@pytest.mark.parametrize(("n", "m"), [(20, 60), (1, 2)])
def test_a_perfect_ranking_of_few_labels_is_not_certain(n: int, m: int) -> None:
    """Hanley and McNeil's variance is 0 at 1, and so a solution there says nothing: the other one is the bound."""
    draws, labels = np.ones(500), Verdicts(n, m)
    low, high = bounds(bootstrap_intervals.auroc_interval(1.0, draws, labels))
    q1, q2, half = low / (2 - low), 2 * low**2 / (1 + low), (n + m) / 2 - 1
    variance = (low * (1 - low) + half * (q1 - low**2) + half * (q2 - low**2)) / (n * m)
    assert (1 - low, high) == pytest.approx((norm.ppf(0.975) * np.sqrt(variance), 1), rel=1e-6)
    assert bounds(bootstrap_intervals.auroc_interval(0.0, 0 * draws, labels)) == pytest.approx((0, 1 - low), abs=1e-6)
    least, most = bounds(bootstrap_intervals.average_precision_interval(1.0, draws, labels))
    assert (least, most) == pytest.approx((beta.ppf(0.025, n + 0.5, 0.5), 1))
    assert bootstrap_intervals.percentile_interval(1.0, draws, labels) == Interval(1.0)


def test_what_the_resamples_show_beyond_that_makes_it_wider() -> None:
    few, many = (
        bounds(bootstrap_intervals.auroc_interval(0.8, 0.8 + spread * NORMAL, Verdicts(50, 200)))
        for spread in (0.01, 0.08)
    )
    assert few[1] - few[0] < 0.7 * (many[1] - many[0])
    assert 0 < many[0] < 0.8 < many[1] < 1


def test_other_figures_reach_as_far_as_students_t() -> None:
    for few in (10, 60):
        reach = t.ppf(0.975, few - 1) * np.sqrt(few / (few - 1))
        assert bounds(bootstrap_intervals.percentile_interval(0.0, NORMAL, Verdicts(few, 500))) == pytest.approx(
            (-reach, reach), rel=0.02
        )
        low, high = bounds(bootstrap_intervals.average_precision_interval(0.3, 0.3 + 0.02 * NORMAL, Verdicts(500, few)))
        sides = [abs(np.log(side / (1 - side)) - np.log(0.3 / 0.7)) for side in (low, high)]
        assert sides == pytest.approx([reach * 0.02 / 0.21] * 2, rel=0.02)


def test_what_cannot_be_said_is_not() -> None:
    gone = np.where(np.arange(100) < 60, np.nan, 0.5)
    for one in (
        bootstrap_intervals.auroc_interval,
        bootstrap_intervals.average_precision_interval,
        bootstrap_intervals.percentile_interval,
    ):
        assert one(None, NORMAL, Verdicts(20, 20)) == Interval(None)
        assert one(0.5, gone, Verdicts(20, 20)) == Interval(0.5)


def test_groups_count_once_where_they_are_told_apart() -> None:
    labels = np.array([True, True, True, False, False])
    assert Verdicts.of(labels) == Verdicts(3, 2)
    assert Verdicts.of(labels, np.array([0, 0, 1, 1, 2])) == Verdicts(2, 2)
    assert Verdicts.of(np.zeros(2, dtype=bool), np.arange(2)).few == 0


@pytest.mark.parametrize(("positives", "n", "truth"), [(15, 300, 0.95), (30, 100, 0.7)])
def test_aurocs_interval_holds_the_truth_as_often_as_it_says(positives: int, n: int, truth: float) -> None:
    """Where percentiles hold .81 of the time with 15 hallucinated labels."""
    rng, held = np.random.default_rng(11), []
    labels = np.arange(n) < positives
    for _ in range(250):
        order = Order.of(-(rng.standard_normal(n) + norm.ppf(truth) * np.sqrt(2) * labels), labels)
        times = np.concatenate(list(draw_counts(Units.among([None] * n), 300, rng))).astype(float)
        value = float(order.areas(np.ones((1, n))).auroc[0])
        low, high = bounds(
            bootstrap_intervals.auroc_interval(value, order.areas(times).auroc, Verdicts(positives, n - positives))
        )
        held.append(low <= truth <= high)
    assert 0.93 - 0.03 <= np.mean(held) <= 0.985 + 0.014
