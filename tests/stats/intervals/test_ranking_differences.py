"""Comparing two rankings: scikit-learn without each trace in turn, DeLong's closed form, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.stats import norm, t
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate.errors import BadInput
from calibrate.stats.intervals.bootstrap import Units, draw_counts
from calibrate.stats.intervals.ranking_differences import compare_rankings
from calibrate.stats.sweep.sweep import RANKABLE, Missing

Arrays = tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]


def data(n: int = 200, seed: int = 5, *, ties: bool = True) -> Arrays:
    """A weak and a better score that share much of their noise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    noise = rng.normal(size=n)
    weak = 0.6 * y + noise
    better = 1.2 * y + 0.8 * noise + 0.3 * rng.normal(size=n)
    return (y, weak.round(1), better.round(1)) if ties else (y, weak, better)


@pytest.mark.parametrize("flag_when", ["above", "below"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_interval_is_scikit_learns_without_each_group_in_turn(flag_when: str, grouped: bool) -> None:
    y, weak, better = data()
    sign = 1 if flag_when == "above" else -1
    group = np.arange(200) // 4 if grouped else np.arange(200)
    weights = np.where(np.arange(200) < 48, 3.0, 1.0)
    found = compare_rankings(
        y, sign * weak, sign * better, rng=np.random.default_rng(1), flag_when=flag_when,  # type: ignore[arg-type]
        clusters=group, weights=weights,
    )  # fmt: skip

    each = [np.bincount(group[rows], weights[rows], minlength=200) for rows in (y, ~y)]
    few = min(w.sum() ** 2 / (w**2).sum() for w in each)
    for figure, score, name in (
        (found.auroc, roc_auc_score, "auroc"),
        (found.average_precision, average_precision_score, "average_precision"),
    ):
        first, second = (score(y, scores, sample_weight=weights) for scores in (weak, better))
        without = [
            score(y, better, sample_weight=weights * (group != left))
            - score(y, weak, sample_weight=weights * (group != left))
            for left in np.unique(group)
        ]
        variance = np.sum((np.array(without) - (second - first)) ** 2) * (len(without) - 1) / len(without)
        reach = t.ppf(0.975, few - 1) * np.sqrt(variance)
        assert (figure.low, figure.high) == pytest.approx((second - first - reach, second - first + reach), abs=1e-12)
        assert getattr(found.first, name) == pytest.approx(first, abs=1e-12)
        assert getattr(found.second, name) == pytest.approx(second, abs=1e-12)
        assert figure.value == pytest.approx(second - first)
    assert (found.n, found.positives, found.clusters) == (200, int(y.sum()), len(set(group)))


def test_whole_clusters_are_drawn_as_many_as_there_are() -> None:
    group = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    (rows,) = draw_counts(Units.of_codes(group), 300, np.random.default_rng(0))
    times = rows[:, np.unique(group, return_index=True)[1]]
    assert_allclose(rows, times[:, group])
    assert_allclose(times.sum(axis=1), 10)
    assert times.mean(axis=0) == pytest.approx(np.ones(10), abs=0.3)


def test_of_very_many_traces_some_are_left_out_at_a_time() -> None:
    y, weak, better = data(900)
    strata = (weak < 1).astype(np.int64)
    widths = []
    for most in (1000, 200):
        rng = np.random.default_rng(6)
        figure = compare_rankings(y, weak, better, rng=rng, strata=strata, most=most).auroc
        widths.append(figure.high - figure.low)  # type: ignore[operator]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert widths[1] != widths[0]


def test_the_interval_is_about_delongs() -> None:
    """DeLong et al. (1988): the variance of the difference of two correlated AUROCs in closed form."""
    y, weak, better = data(600, seed=11, ties=False)

    def parts(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        above = (scores[y][:, None] > scores[~y][None, :]).astype(float)
        return above.mean(axis=1), above.mean(axis=0)

    (v10, v01), (w10, w01) = parts(weak), parts(better)
    variance = np.var(w10 - v10, ddof=1) / y.sum() + np.var(w01 - v01, ddof=1) / (~y).sum()
    half = norm.ppf(0.975) * np.sqrt(variance)
    difference = roc_auc_score(y, better) - roc_auc_score(y, weak)
    found = compare_rankings(y, weak, better, rng=np.random.default_rng(2)).auroc
    assert found.low == pytest.approx(difference - half, abs=0.05 * half)
    assert found.high == pytest.approx(difference + half, abs=0.05 * half)


def test_pairing_tells_apart_what_two_separate_intervals_would_not() -> None:
    y, weak, _ = data(300, ties=False)
    same = compare_rankings(y, weak, 2 * weak + 1, rng=np.random.default_rng(0))
    assert (same.auroc.value, same.auroc.low, same.auroc.high) == (0, 0, 0)
    assert (same.average_precision.low, same.average_precision.high) == (0, 0)


def test_traces_that_err_together_are_worth_less() -> None:
    y, weak, better = data(60, ties=False)
    four = [np.repeat(one, 4) for one in (y, weak, better)]
    alone = compare_rankings(y, weak, better, rng=np.random.default_rng(3)).auroc
    together = compare_rankings(*four, rng=np.random.default_rng(3), clusters=np.repeat(np.arange(60), 4)).auroc
    apart = compare_rankings(*four, rng=np.random.default_rng(3)).auroc
    assert (together.value, together.low, together.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert apart.high - apart.low < 0.7 * (together.high - together.low)  # type: ignore[operator]


def test_swapping_the_two_turns_the_sign() -> None:
    y, weak, better = data()
    one = compare_rankings(y, weak, better, rng=np.random.default_rng(4)).average_precision
    other = compare_rankings(y, better, weak, rng=np.random.default_rng(4)).average_precision
    turned = (-other.value, -other.high, -other.low)  # type: ignore[operator]
    assert (one.value, one.low, one.high) == pytest.approx(turned)


def test_too_little_says_so() -> None:
    none = np.zeros(0)
    assert compare_rankings(none, none, none, rng=np.random.default_rng(0)).missing == Missing.NO_LABELS
    clean = compare_rankings([0, 0, 0], [1, 2, 3], [3, 2, 1], rng=np.random.default_rng(0))
    assert clean.first is None
    assert (clean.n, clean.missing) == (3, Missing.ALL_CLEAN)
    for hallucinated, enough in ((RANKABLE - 1, False), (RANKABLE, True)):
        y = np.arange(20) < hallucinated
        rare = compare_rankings(y, np.arange(20.0), np.arange(20.0)[::-1], rng=np.random.default_rng(0))
        assert rare.missing == (None if enough else Missing.FEW_TO_RANK)
        assert rare.auroc.value == (1 if enough else None)
    groups = np.where(y, 0, np.arange(20))
    alone = compare_rankings(y, np.arange(20.0), np.arange(20.0)[::-1], clusters=groups, rng=np.random.default_rng(0))
    assert alone.auroc.value == 1
    assert alone.auroc.low is None  # without its one group nothing hallucinated is left


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1, 0], [0.1, 0.2], [0.1]), "2 labels and 1 scores"),
        (([1, 0], [0.1, np.nan], [0.1, 0.2]), "missing or infinite"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: tuple[list[float], ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        compare_rankings(*arguments, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="clusters for"):
        compare_rankings([1, 0], [1, 2], [1, 2], clusters=[1], rng=np.random.default_rng(0))
