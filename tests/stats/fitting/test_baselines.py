"""A baseline's centre and spread: scipy's, unmoved by a minority, and refused where there is nothing to measure."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import median_abs_deviation, norm

from calibrate.errors import BadInput
from calibrate.stats.fitting.baselines import CONSISTENT, ENOUGH, MINIMUM, NoBaseline, fit_baseline
from calibrate.types import Baseline

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def fitted(values: object) -> Baseline:
    return fit_baseline(values, statistic="entropy/mean/top5", model="m", now=NOW)  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1.609), min_size=MINIMUM, max_size=60, unique=True))
def test_centre_and_spread_are_numpys_and_scipys(values: list[float]) -> None:
    spread = median_abs_deviation(values, scale="normal")
    if spread < 1e-6:
        return
    found = fitted(values)
    assert found.centre == pytest.approx(np.median(values))
    assert found.spread == pytest.approx(spread, rel=1e-5)
    assert (found.statistic, found.model, found.n, found.fitted_at) == ("entropy/mean/top5", "m", len(values), NOW)


def test_for_normal_data_the_spread_is_the_standard_deviation() -> None:
    assert pytest.approx(1 / norm.ppf(0.75), rel=1e-5) == CONSISTENT
    values = norm.ppf(np.linspace(0.0005, 0.9995, 1000), loc=0.7, scale=0.2)
    assert fitted(values).centre == pytest.approx(0.7)
    assert fitted(values).spread == pytest.approx(0.2, rel=0.01)


def test_wrong_labels_move_mean_and_deviation_but_not_these() -> None:
    rng = np.random.default_rng(1)
    clean = rng.normal(0.6, 0.1, 80)
    dirty = np.concatenate([clean, np.full(12, 1.6)])
    assert abs(fitted(dirty).centre - fitted(clean).centre) < 0.03
    assert fitted(dirty).spread / fitted(clean).spread < 1.25
    assert np.std(dirty) / np.std(clean) > 2.5


def test_the_minimum_is_what_its_comment_says() -> None:
    """The relative error of the spread over many normal samples: about a third at MINIMUM, a fifth at ENOUGH."""
    rng = np.random.default_rng(0)
    for n, error in ((MINIMUM, 1 / 3), (ENOUGH, 1 / 5)):
        spreads = median_abs_deviation(rng.normal(size=(4000, n)), axis=1, scale="normal")
        assert np.std(spreads) == pytest.approx(error, abs=0.05)


@pytest.mark.parametrize("n", [0, 1, MINIMUM - 1])
def test_too_few_values_are_no_baseline(n: int) -> None:
    with pytest.raises(NoBaseline, match=rf"{n} clean answers with it: at least {MINIMUM} are needed"):
        fitted(np.linspace(0, 1, n))


@pytest.mark.parametrize("values", [[0.5] * 30, [0.5] * 16 + list(np.linspace(0, 1, 14)), [0.1 + 0.2, 0.3] * 10])
def test_without_spread_there_is_no_baseline(values: list[float]) -> None:
    with pytest.raises(NoBaseline, match="no spread"):
        fitted(values)


@pytest.mark.parametrize("values", [[[0.1, 0.2]] * 10, [float("nan")] * 20, [*np.linspace(0, 1, 20), float("inf")]])
def test_what_is_no_list_of_numbers_is_refused(values: object) -> None:
    with pytest.raises(BadInput, match="flat list of finite numbers"):
        fitted(values)
