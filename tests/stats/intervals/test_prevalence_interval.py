"""The share hallucinated and its interval: a share's own at random, and the design's where strata differ."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.stats.intervals.prevalence_interval import prevalence_interval
from calibrate.stats.sweep.design import Design
from calibrate.types import Interval
from tests.stats.wilson import mended


def test_at_random_it_is_wilsons() -> None:
    figure = prevalence_interval(np.arange(80) < 18)
    assert (figure.low, figure.high) == pytest.approx(mended(18, 80), abs=1e-9)
    assert figure.value == 18 / 80


def test_without_labels_nothing_is_said() -> None:
    assert prevalence_interval([]) == Interval(None)


def test_labels_that_share_sources_say_less() -> None:
    labels, groups = np.repeat(np.arange(20) < 5, 4), np.repeat(np.arange(20), 4)
    alone, shared = prevalence_interval(labels), prevalence_interval(labels, groups=list(groups))
    assert alone.value == shared.value
    assert shared.high - shared.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]


@pytest.mark.parametrize("prevalence", [0.02, 0.2])
def test_it_holds_the_truth_of_a_draw_by_strata(prevalence: float) -> None:
    """Strata of 8 to 50% of the traffic, the suspicious one drawn seven times as often."""
    rng = np.random.default_rng(4)
    sizes, rates = np.array([800, 4_200, 5_000]), prevalence * np.array([5.0, 1.0, 0.4])
    strata = np.repeat(np.arange(3), sizes)
    held, values = 0, []
    for _ in range(200):
        truth = rng.random(len(strata)) < rates[strata]
        rows = np.concatenate([rng.choice(np.flatnonzero(strata == h), 80, replace=False) for h in range(3)])
        figure = prevalence_interval(truth[rows], design=Design(strata[rows], sizes))
        held += figure.low <= truth.mean() <= figure.high  # type: ignore[operator]
        values.append(figure.value - truth.mean())  # type: ignore[operator]
    assert held >= 184  # 92%; three standard errors below 95% are 90.4
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(200)
