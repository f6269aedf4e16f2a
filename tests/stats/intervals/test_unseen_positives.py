"""Resamples that reckon with the unseen: what they keep, what they add, and that intervals from them hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate.stats.ensembles.performance import Judged, measure_performance
from calibrate.stats.intervals.bootstrap import Units, draw_counts
from calibrate.stats.intervals.ranking import rank_with_intervals
from calibrate.stats.intervals.ranking_differences import Comparison, compare_rankings
from calibrate.stats.intervals.unseen_positives import Unseen
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep
from tests.stats.ensembles.ensembling import Octaves

Scores = NDArray[np.float64]

SIZES, POPULATION = (20, 30, 50), np.array([100, 600, 5_000])
STRATA = np.repeat([0, 1, 2], SIZES)
WEIGHTS = (POPULATION / SIZES)[STRATA]


def alone(n: int = 100) -> Units:
    return Units.of_codes(np.arange(n), STRATA)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.5))
def test_strata_keep_their_size_and_the_half_label_lies_in_the_heaviest(seed: int, share: float) -> None:
    labels = np.random.default_rng(seed).random(100) < share
    found = Unseen.of(labels, WEIGHTS, alone(), STRATA)
    assert found is not None
    weights = np.concatenate(list(found.drawn(200, np.random.default_rng(seed))))
    for h in range(3):
        assert weights[:, :100][:, h == STRATA].sum(axis=1) == pytest.approx(POPULATION[h])
    assert set(found.rows[100:]) == set(np.flatnonzero((STRATA == 2) & ~labels))
    assert found.labels[100:].all()
    assert (found.labels[:100] == labels).all()
    assert ((weights[:, 100:] > 0).sum(axis=1) <= 1).all()


def test_half_a_label_is_added_on_average() -> None:
    found = Unseen.of(np.zeros(100, dtype=bool), WEIGHTS, alone(), STRATA)
    assert found is not None
    added = np.concatenate(list(found.drawn(20_000, np.random.default_rng(1))))[:, 100:].sum(axis=1)
    assert added.mean() == pytest.approx(0.5 * 100, rel=0.05)  # a label there stands for 100 traces
    assert added.var() == pytest.approx(0.5 * 100**2, rel=0.1)  # of a gamma variable of shape 1/2


def test_groups_are_drawn_whole_and_a_stratum_of_positives_lends_them() -> None:
    labels = STRATA == 2
    units = Units.of_codes(np.arange(100) // 5, STRATA)
    found = Unseen.of(labels, WEIGHTS, units, STRATA)
    assert found is not None
    weights = np.concatenate(list(found.drawn(50, np.random.default_rng(2))))[:, :100]
    assert weights == pytest.approx(np.repeat(weights[:, ::5], 5, axis=1))
    assert set(found.rows[100:]) == set(np.flatnonzero(labels))


def test_every_lender_adds_one_label_in_turn() -> None:
    labels = np.arange(100) % 9 == 0
    unseen = Unseen.of(labels, WEIGHTS, alone(), STRATA)
    assert unseen is not None
    weights = np.concatenate(list(unseen.added()))
    assert weights[:, :100] == pytest.approx(np.tile(WEIGHTS, (len(weights), 1)))
    assert weights[:, 100:] == pytest.approx(100 * np.eye(len(weights)))  # a label there stands for 100 traces


def test_a_random_draw_has_seen_what_there_is() -> None:
    labels = np.arange(100) % 5 == 0
    assert Unseen.of(labels, None, alone(), None) is None
    assert Unseen.of(labels, np.ones(100), alone(), np.zeros(100, dtype=np.int64)) is None


def test_strata_of_one_weight_are_drawn_apart_all_the_same() -> None:
    rng = np.random.default_rng(21)
    labels = rng.random(100) < 0.4
    first = rng.normal(size=100) + labels
    units, same = Units.of_codes(np.arange(100), STRATA), np.full(100, 5.0)
    rows = np.concatenate(list(draw_counts(units, 300, np.random.default_rng(22))))
    each = [roc_auc_score(labels, first, sample_weight=w) for w in rows]
    found = rank_with_intervals(
        sweep(labels, first), labels, first, rng=np.random.default_rng(22), weights=same, strata=STRATA, count=300
    )
    assert found.draws.auroc == pytest.approx(each)


def test_areas_are_scikit_learns_and_traces_without_a_score_do_not_count() -> None:
    rng = np.random.default_rng(3)
    labels = rng.random(100) < 0.3
    scores = rng.normal(size=100) + labels
    scores[::7] = np.nan
    design, there = Design(STRATA, POPULATION), ~np.isnan(scores)
    for strata in (STRATA, None):
        given_to = {"weights": design.weights, "strata": strata, "count": 300}
        found = rank_with_intervals(sweep(labels, scores, weights=design.weights), labels, scores, rng=rng, **given_to)  # type: ignore[arg-type]
        value = roc_auc_score(labels[there], scores[there], sample_weight=design.weights[there])
        assert found.auroc.value == pytest.approx(value)
        assert found.auroc.low is not None
        assert found.auroc.high is not None
        assert found.auroc.low < value < found.auroc.high
        assert len(found.draws.auroc) == 300


def test_intervals_of_octaves_hold_where_nearly_all_is_clean() -> None:
    """2% hallucinated, 300 labels by octaves of two detectors' mean: percentiles held about half for an AUROC."""
    rng, runs = np.random.default_rng(4), 120
    made = Octaves.of(rng, prevalence=0.02, auroc=0.85)
    area, other = (roc_auc_score(made.truth, made.scores[name]) for name in ("a", "b"))
    flags = made.scores["a"] >= np.quantile(made.scores["a"], 0.95)
    truths = {
        "auroc": area,
        "average precision": average_precision_score(made.truth, made.scores["a"]),
        "difference": other - area,
        "recall": flags[made.truth].mean(),
        "precision": made.truth[flags].mean(),
        "flag rate": flags.mean(),
    }
    inside = dict.fromkeys(truths, 0)
    for _ in range(runs):
        given_labels, design = made.label(300, rng)
        y, first, second = given_labels.labels, given_labels.scores["a"], given_labels.scores["b"]
        strata, weights = design.strata, design.weights
        found = rank_with_intervals(
            sweep(y, first, design=design), y, first, rng=rng, weights=weights, strata=strata, count=300
        )
        both = compare_rankings(y, first, second, rng=rng, weights=weights, strata=strata)
        flagged = first[None] >= np.quantile(made.scores["a"], 0.95)
        rule = measure_performance(given_labels, Judged(flagged, first[None]))
        intervals = (found.auroc, found.average_precision, both.auroc, rule.recall, rule.precision, rule.flag_rate)
        for (name, truth), interval in zip(truths.items(), intervals, strict=True):
            assert interval.low is not None
            assert interval.high is not None
            inside[name] += interval.low <= truth <= interval.high
    assert all(each / runs >= 0.9 for each in inside.values()), inside  # Monte Carlo error 2 points


def test_a_difference_asks_where_a_trace_stands_and_not_what_it_scores() -> None:
    made = Octaves.of(np.random.default_rng(15), prevalence=0.1, auroc=0.85)
    given_labels, design = made.label(300, np.random.default_rng(16))
    y, first, second = given_labels.labels, given_labels.scores["a"], given_labels.scores["b"]

    def apart(one: Scores, other: Scores) -> Comparison:
        rng = np.random.default_rng(17)
        return compare_rankings(y, one, other, rng=rng, weights=design.weights, strata=design.strata)

    assert apart(np.exp(first), 7 * second - 40) == apart(first, second)


def test_a_difference_is_scikit_learns_without_each_label_and_with_each_that_was_not_seen() -> None:
    made = Octaves.of(np.random.default_rng(18), prevalence=0.1, auroc=0.85)
    labelled, design = made.label(150, np.random.default_rng(19))
    y, weights, strata = labelled.labels, design.weights, design.strata
    first, second = labelled.scores["a"], labelled.scores["b"]
    for name, score in (("auroc", roc_auc_score), ("average_precision", average_precision_score)):

        def gap(rows: NDArray[np.int64], w: Scores, truth: NDArray[np.bool_], score: Any = score) -> float:
            return float(np.subtract(*(score(truth, each[rows], sample_weight=w) for each in (second, first))))

        every = np.arange(150)
        value, variance = gap(every, weights, y), 0.0
        for row in every:
            n = np.count_nonzero(strata == strata[row])
            w = np.where(strata == strata[row], weights * n / (n - 1), weights) * (every != row)
            variance += (n - 1) / n * (gap(every, w, y) - value) ** 2
        lend = np.flatnonzero(~y & (strata == 8))
        unseen = [gap(np.append(every, row), np.append(weights, weights.max()), np.append(y, True)) for row in lend]
        variance += np.mean((np.array(unseen) - value) ** 2) / 2
        few = weights[y].sum() ** 2 / (weights[y] ** 2).sum()
        reach = t.ppf(0.975, few - 1) * np.sqrt(variance)
        figure = getattr(
            compare_rankings(y, first, second, rng=np.random.default_rng(0), weights=weights, strata=strata), name
        )
        assert (figure.value, figure.low, figure.high) == pytest.approx((value, value - reach, value + reach))


def test_a_difference_holds_where_the_better_one_knows_what_the_other_misses() -> None:
    """5% hallucinated, two detectors that err together: a hallucinated trace that both rank low is one that tells them
    apart, which a clean trace there does not. A bootstrap with a label lent by any of these held .89."""
    rng, runs = np.random.default_rng(12), 200
    made = Octaves.of(rng, prevalence=0.05, auroc=0.9, other=0.8, rho=0.9)
    truth = np.subtract(*(roc_auc_score(made.truth, made.scores[name]) for name in ("b", "a")))
    inside = 0
    for _ in range(runs):
        labelled, design = made.label(300, rng)
        found = compare_rankings(
            labelled.labels, labelled.scores["a"], labelled.scores["b"], rng=rng,
            weights=design.weights, strata=design.strata,
        ).auroc  # fmt: skip
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= truth <= found.high
    assert inside / runs >= 0.93  # Monte Carlo error 1.5 points


@pytest.mark.parametrize("flagged", [False, True])
def test_a_rule_that_flags_none_or_all_of_the_labels_is_not_known_to_flag_none_or_all(flagged: bool) -> None:
    made = Octaves.of(np.random.default_rng(5), prevalence=0.1, auroc=0.85)
    given_labels, _ = made.label(200, np.random.default_rng(6))
    flags = np.full((1, 200), flagged)
    found = measure_performance(given_labels, Judged(flags, flags.astype(float)))
    for interval in (found.recall, found.flag_rate):
        assert interval.value == pytest.approx(float(flagged))
        assert interval.low is not None
        assert interval.high is not None
        assert 0.01 < interval.high - interval.low < 0.5
