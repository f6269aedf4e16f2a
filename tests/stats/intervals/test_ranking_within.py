"""The area within strata: scikit-learn's per stratum, pooled by pairs, and what recognises a model alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from calibrate.stats.fitting.category_rates import rate_categories
from calibrate.stats.intervals.ranking_within import Recognizes, Within, rank_within


def measure(labels, scores, within, *, weights=None, clusters=None, strata=None, count=300) -> Within:  # type: ignore[no-untyped-def]
    return rank_within(
        labels,
        scores,
        within,
        flag_when="above",
        rng=np.random.default_rng(0),
        clusters=np.arange(len(labels)) if clusters is None else clusters,
        weights=np.ones(len(labels)) if weights is None else weights,
        strata=strata,
        count=count,
    )


def pooled(labels: np.ndarray, scores: np.ndarray, within: np.ndarray, weights: np.ndarray) -> float:
    """scikit-learn's area of each stratum, weighted by its pairs."""
    areas, pairs = [], []
    for code in np.unique(within[within >= 0]):
        here = (within == code) & np.isfinite(scores)
        y = labels[here]
        if 0 < y.sum() < len(y):
            areas.append(roc_auc_score(y, scores[here], sample_weight=weights[here]))
            pairs.append(weights[here][y].sum() * weights[here][~y].sum())
    return float(np.average(areas, weights=pairs))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_area_is_scikit_learns_per_stratum_pooled_by_pairs(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    within = rng.integers(-1, 4, 300)
    labels = rng.random(300) < 0.2 + 0.15 * within.clip(0)
    scores = np.round(rng.normal(labels + within, 1.0), 1)  # ties
    scores[::11] = np.nan
    strata = (np.arange(300) % 2).astype(np.int64)
    weights = np.where(strata == 1, 9.0, 1.0) if weighted else np.ones(300)
    result = measure(labels, scores, within, weights=weights, strata=strata if weighted else None)
    assert result.auroc.value == pytest.approx(pooled(labels, scores, within, weights), abs=1e-12)
    usable = np.isfinite(scores) & (within >= 0)
    assert (result.n, result.scored, result.strata) == (usable.sum(), np.isfinite(scores).sum(), 4)
    overall = roc_auc_score(labels[usable], scores[usable], sample_weight=weights[usable])
    assert result.overall.value == pytest.approx(overall, abs=1e-12)
    assert result.fall.value == pytest.approx(overall - result.auroc.value, abs=1e-12)
    assert result.auroc.low < result.auroc.value < result.auroc.high


def test_unweighted_it_is_the_sum_of_mann_whitneys_statistics() -> None:
    rng = np.random.default_rng(4)
    within, scores = np.repeat([0, 1], 40), rng.normal(size=80)
    labels = rng.random(80) < 0.4
    tests = [
        mannwhitneyu(scores[labels & (within == code)], scores[~labels & (within == code)]).statistic for code in (0, 1)
    ]
    pairs = [(labels & (within == code)).sum() * (~labels & (within == code)).sum() for code in (0, 1)]
    assert measure(labels, scores, within).auroc.value == pytest.approx(sum(tests) / sum(pairs))


def test_what_recognizes_only_the_model_is_at_chance_within_and_said_so() -> None:
    rng = np.random.default_rng(5)
    results = []
    for _ in range(60):
        within = rng.integers(0, 4, 400)
        labels = rng.random(400) < np.array([0.05, 0.2, 0.5, 0.8])[within]
        results.append(measure(labels, within + rng.normal(0, 0.3, 400), within, count=200))
    areas = [result.auroc.value for result in results]
    assert np.mean(areas) == pytest.approx(0.5, abs=0.01)
    assert np.mean([result.overall.value for result in results]) > 0.75
    assert np.mean([result.auroc.low <= 0.5 <= result.auroc.high for result in results]) >= 0.9
    assert np.mean([result.recognizes == Recognizes.STRATUM for result in results]) >= 0.9


def test_what_recognizes_the_error_is_never_called_a_recognizer_of_models() -> None:
    rng = np.random.default_rng(6)
    within = rng.integers(0, 3, 300)
    labels = rng.random(300) < 0.3
    assert measure(labels, rng.normal(labels, 1.0), within).recognizes == Recognizes.ERROR
    few = rng.permutation(300)[:24]
    assert measure(labels[few], rng.normal(size=24), within[few]).recognizes != Recognizes.STRATUM


def test_groups_that_err_together_widen_the_interval() -> None:
    rng = np.random.default_rng(7)
    within, once = rng.integers(0, 2, 60), rng.random(60) < 0.4
    scores = rng.normal(once, 1.5)
    alone = measure(*(np.repeat(each, 4) for each in (once, scores, within)))
    grouped = measure(*(np.repeat(each, 4) for each in (once, scores, within)), clusters=np.repeat(np.arange(60), 4))
    assert grouped.auroc.high - grouped.auroc.low > 1.5 * (alone.auroc.high - alone.auroc.low)


@pytest.mark.parametrize("within", [np.zeros(40, dtype=int), np.full(40, -1), np.arange(40)])
def test_one_stratum_or_none_has_no_area(within: np.ndarray) -> None:
    labels = np.arange(40) % 2 == 0
    result = measure(labels, np.arange(40.0), within)
    assert result.auroc.value is None
    assert result.recognizes == Recognizes.UNCLEAR


def rates(labels: np.ndarray, codes: np.ndarray, units: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    return rate_categories(
        labels,
        codes,
        weights=np.ones(len(labels)),
        units=np.arange(len(labels)) if units is None else units,
        rng=np.random.default_rng(seed),
    )


def test_a_model_with_one_label_tells_nothing_of_it() -> None:
    """Every label has a model of its own: what is known of a model comes from that label alone, and does not leak."""
    rng = np.random.default_rng(8)
    labels = rng.random(200) < 0.3
    assert np.all(rates(labels, np.arange(200)) == 0)
    codes, units = np.repeat(np.arange(50), 4), np.repeat(np.arange(50), 4)  # a model a group: left out with it
    assert np.all(rates(np.repeat(labels[:50], 4), codes, units) == 0)


def test_models_that_differ_rank_and_those_that_do_not_are_at_chance() -> None:
    rng = np.random.default_rng(9)
    apart, alike = [], []
    for seed in range(40):
        codes = rng.integers(0, 3, 300)
        for truth, areas in (([0.05, 0.2, 0.6], apart), ([0.3, 0.3, 0.3], alike)):
            labels = rng.random(300) < np.array(truth)[codes]
            areas.append(roc_auc_score(labels, rates(labels, codes, seed=seed)))
    assert np.mean(apart) > 0.72
    assert np.mean(alike) == pytest.approx(0.49, abs=0.02)
    unknown = rates(rng.random(20) < 0.5, np.full(20, -1))
    assert np.isnan(unknown).all()
