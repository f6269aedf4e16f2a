"""Intervals against scipy, closed forms and their own promise: a 95% interval holds about 95% of the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import beta, betaprime, binom, binomtest

from calibrate.errors import BadInput
from calibrate.stats.intervals.binomial_intervals import wilson, z_value
from calibrate.stats.intervals.sweep_intervals import band, figures, simultaneous_band
from calibrate.stats.sampling.designs import allocate
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval
from tests.stats.wilson import mended

Z = 1.959963984540054


def labelled(tp: int, fp: int, fn: int, tn: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores: 1 for the flagged, 0 for the rest."""
    labels = np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])
    return labels, np.repeat([1.0, 1.0, 0.0, 0.0], [tp, fp, fn, tn])


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_equals_scipy_but_for_rare_labels(k: int, more: int, confidence: float) -> None:
    n = k + more
    ours = wilson(np.array([k / n]), np.array([float(n)]), confidence=confidence)
    assert_allclose([ours.low[0], ours.high[0]], mended(k, n, confidence), atol=1e-9)


@pytest.mark.parametrize(("n", "least"), [(15, 0.91), (60, 0.915), (300, 0.925)])
def test_wilson_holds_whatever_the_share_is(n: int, least: float) -> None:
    """Summed over all counts, for shares from 0 to 1: without the mend .84 near both ends."""
    k, shares = np.arange(n + 1), np.linspace(0.001, 0.999, 999)
    found = wilson(k / n, np.full(n + 1, float(n)))
    held = (found.low <= shares[:, None]) & (shares[:, None] <= found.high)
    covers = np.sum(binom.pmf(k, n, shares[:, None]) * held, axis=1)
    assert covers.min() > least
    assert 0.945 < covers.mean() < 0.965


@pytest.mark.parametrize("counts", [(12, 5, 3, 80), (3, 0, 4, 20), (0, 5, 4, 20), (7, 6, 0, 9)])
def test_without_a_design_precision_and_fpr_are_ordinary_wilson(counts: tuple[int, int, int, int]) -> None:
    tp, fp, _fn, tn = counts
    known = figures(sweep(*labelled(*counts)), 1.0)
    for ours, k, n in (
        (known.precision, tp, tp + fp),
        (known.fpr, fp, fp + tn),
        (known.flag_rate, tp + fp, sum(counts)),
    ):
        assert (ours.value, ours.low, ours.high) == pytest.approx((k / n, *mended(k, n)), abs=1e-9)
    assert (known.true_positives, known.false_positives, known.false_negatives, known.true_negatives) == counts


@pytest.mark.parametrize(("found", "missed"), [(12, 3), (1, 9), (8, 0), (0, 8)])
def test_without_a_design_recall_is_jeffreys(found: int, missed: int) -> None:
    known = figures(sweep(*labelled(found, 5, missed, 80)), 1.0).recall
    low, high = beta.ppf([0.025, 0.975], found + 0.5, missed + 0.5)
    assert (known.low, known.high) == pytest.approx((low if found else 0, high if missed else 1), abs=1e-12)


def test_full_recall_is_less_certain_when_a_large_stratum_shows_no_positive() -> None:
    labels, scores = labelled(20, 5, 0, 75)
    small_first = np.repeat([0, 1], [25, 75])
    even = sweep(labels, scores, design=Design(small_first, np.array([2_500, 7_500])))
    heavy = sweep(labels, scores, design=Design(small_first, np.array([2_500, 750_000])))
    low = [figures(s, 1.0).recall.low for s in (even, heavy)]
    assert low[0] is not None
    assert low[1] is not None
    assert low[1] < low[0] - 0.3


def drawn(cut: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray, Design, np.ndarray]:
    """Verdicts and flags of 90 labels in three strata of different sizes, with each label's weight; `cut` flags by the
    stratum."""
    rng = np.random.default_rng(8)
    population, n_h = np.array([4_000, 900, 200]), np.array([40, 30, 20])
    strata = np.repeat([0, 1, 2], n_h)
    y = rng.random(90) < np.array([0.1, 0.3, 0.7])[strata]
    f = rng.random(90) < cut(strata) * np.where(y, 0.6, 0.2)
    return y, f, Design(strata, population), (population / n_h)[strata]


def test_a_draw_that_knows_nothing_of_the_score_has_the_intervals_of_two_counts() -> None:
    y, f, design, w = drawn(np.ones_like)
    known = figures(sweep(y, f.astype(float), design=design), 1.0)
    found = known.precision, known.recall, known.fpr, known.flag_rate
    for interval, one, other in zip(found, (y & f, y & f, ~y & f, f), (~y & f, y & ~f, ~y & ~f, ~f), strict=True):
        part, rest = (w * one).sum(), (w * other).sum()
        half = np.array([100 / 2, 100**2 / 2])  # a label of the heaviest stratum, the first
        v_part = v_rest = v = 0.0
        for h in range(3):
            here = design.strata == h
            k, m, n = one[here].sum(), other[here].sum(), here.sum()
            spread = w[here][0] ** 2 * n / (n - 1)
            v_part += spread * (k * (1 - k / n) + k * m / n * part / rest)
            v_rest += spread * (m * (1 - m / n) + k * m / n * rest / part)
            v += spread * n * (one / part - other / rest)[here].var()  # of the logarithm of part / rest
        assert v_part / part**2 + v_rest / rest**2 == pytest.approx(v)
        (a, s), (b, t) = (
            (m**2 / v, v / m) for m, v in ((half[0] + part, half[1] + v_part), (half[0] + rest, half[1] + v_rest))
        )
        rest_to_part = betaprime.ppf([0.975, 0.025], b, a) * t / s  # of two gamma variables
        assert astuple(interval) == pytest.approx((part / (part + rest), *(1 / (1 + rest_to_part))))


def test_a_draw_ranked_by_the_score_has_wilsons_interval_at_the_size_of_the_taylor_variance() -> None:
    y, f, design, w = drawn(lambda strata: np.array([0, 1, 5])[strata])  # the last is flagged whole
    scores = design.strata + f / 2 + np.arange(90) / 1000
    known = figures(sweep(y, scores, design=design), 1.5)
    for interval, among, part, most in ((known.precision, f, y, f.sum()), (known.fpr, ~y, f, np.inf)):
        p, v = (w * (among & part)).sum() / (w * among).sum(), 0.0
        z = among * (part - p) / (w * among).sum()
        for h in range(3):
            here = design.strata == h
            v += w[here][0] ** 2 * here.sum() * z[here].var(ddof=1)
        expected = wilson(np.array([p]), np.array([min(p * (1 - p) / v, most)]))
        assert astuple(interval) == pytest.approx((p, expected.low[0], expected.high[0]))


def test_the_stratum_that_holds_the_threshold_alone_leaves_the_flag_rate_open() -> None:
    """Flagged whole, 3 of 20, not at all: 50 + 3/20 of 400 of 10,050 traces. Between two strata: both may hold it."""
    population, strata = np.array([50, 400, 9_600]), np.repeat([0, 1, 2], [10, 20, 70])
    for flagged, holds in ((13, [1]), (10, [0, 1])):
        scores = 100.0 - np.arange(100)
        known = figures(
            sweep(np.zeros(100, bool), scores, design=Design(strata, population)), 101.0 - flagged
        ).flag_rate
        reach = np.zeros(2)
        for h in holds:
            k, n = int((scores[strata == h] > 100 - flagged).sum()), [10, 20, 70][h]
            reach += (population[h] / 10_050 * (np.array(mended(k, n)) - k / n)) ** 2
        value = (50 + (flagged - 10) / 20 * 400) / 10_050
        assert astuple(known) == pytest.approx((value, *(value + np.sqrt(reach) * [-1, 1])))


def test_a_cut_between_strata_leaves_the_false_positive_rate_open() -> None:
    """50 of 10,050 are flagged, whole strata of them; 30 and 70 labels say no more than that few of others could be."""
    population, strata = np.array([50, 400, 9_600]), np.repeat([0, 1, 2], [10, 30, 60])
    labels, scores = np.arange(100) % 7 == 0, 100.0 - np.arange(100)
    known = figures(sweep(labels, scores, design=Design(strata, population)), 91.0).fpr
    assert known.low is not None
    assert known.high is not None
    clean = np.bincount(strata[~labels])
    lost = 1 - mended(int(clean[0]), int(clean[0]))[0], mended(0, int(clean[1]))[1]  # of the first, of the second
    whole = population / np.array([10, 30, 60]) * clean
    reach = np.array(lost) * (whole / whole.sum())[:2]
    assert known.low <= known.value - reach[0] + 1e-9
    assert known.high >= known.value + reach[1] - 1e-9


def test_two_thresholds_do_not_make_strata_ranked() -> None:
    """One of 90 labels is flagged, in the first of three strata: the others may well hold some, in half of draws."""
    population, strata = np.array([5_000, 5_000, 5_000]), np.repeat([0, 1, 2], 30)
    design, flagged = Design(strata, population), np.arange(90) < 1
    known = figures(sweep(np.arange(90) % 9 == 0, flagged.astype(float), design=design), 1.0).flag_rate
    assert known.high is not None
    assert known.high >= beta.ppf(0.975, 1.5, 89.5) * 0.9


@pytest.mark.parametrize("ranked", [True, False])
def test_fewer_groups_of_sources_know_less(ranked: bool) -> None:
    """Forty flagged labels of two strata, all hallucinated, from 40 groups of sources down to 1."""
    labels, scores = np.repeat([True, False], [40, 120]), 200.0 - np.arange(160)
    strata = np.repeat([0, 1], 80) if ranked else np.arange(160) % 2
    lows = []
    for groups in (40, 8, 4, 2, 1):
        names = [f"g{i % groups if i < 40 else i}" for i in range(160)]
        found = figures(sweep(labels, scores, design=Design(strata, np.array([800, 8_000])), groups=names), 161.0)
        lows.append((found.precision.low, found.recall.low))
    assert np.all(np.diff(np.array(lows, dtype=float), axis=0) <= 1e-9)
    assert lows[-1][0] is not None
    assert lows[-1][0] < 0.1


@pytest.mark.parametrize("ranked", [True, False])
def test_traffic_to_come_is_no_better_known_where_all_of_the_window_is_labelled(ranked: bool) -> None:
    labels, scores = labelled(12, 5, 3, 80)
    strata = np.argsort(np.argsort(-scores, kind="stable")) // 25 if ranked else np.arange(100) % 4
    whole, part = (
        figures(sweep(labels, scores, design=Design(strata, np.full(4, each))), 1.0) for each in (25, 25_000)
    )
    for name in ("precision", "recall", "fpr", "flag_rate"):
        assert astuple(getattr(whole, name)) == pytest.approx(astuple(getattr(part, name)))
        assert getattr(whole, name).high - getattr(whole, name).low > 0.01


@pytest.mark.parametrize(("rate", "shared"), [(0.3, False), (0.1, False), (0.01, False), (0.01, True)])
@pytest.mark.parametrize("kin", [0.0, 0.7])
def test_figures_hold_where_strata_are_ranked_by_another_score(kin: float, rate: float, shared: bool) -> None:
    """Octaves of a score that is unrelated, or correlated at .7, and flags in any of them; alone or in eights that lean
    the same way."""
    rng, runs, size = np.random.default_rng(12), 300, 2**15
    y = rng.random(size) < 0.1
    score = rng.normal(size=size) + y + shared * np.repeat(rng.normal(size=size // 8), 8)
    order = np.argsort(-(kin * score + np.sqrt(1 - kin**2) * rng.normal(size=size)))
    stratum = np.empty(size, dtype=int)
    stratum[order] = np.clip(7 + np.floor(np.log2((np.arange(size) + 0.5) / size)), 0, 6)
    members = [np.flatnonzero(stratum == h) for h in range(7)]
    sizes = np.array([len(rows) for rows in members])
    n_h = list(allocate({str(h): int(size) for h, size in enumerate(sizes)}, 300).values())
    cut = np.quantile(score, 1 - rate)
    flagged = score >= cut
    inside, known_at_all = np.zeros(4), np.zeros(4)
    for _ in range(runs):
        rows = np.concatenate([rng.choice(some, n, replace=False) for some, n in zip(members, n_h, strict=True)])
        groups = [f"g{row // 8}" for row in rows] if shared else None
        known = figures(sweep(y[rows], score[rows], design=Design(stratum[rows], sizes), groups=groups), float(cut))
        pairs = (known.precision, y[flagged]), (known.recall, flagged[y]), (known.fpr, flagged[~y])
        for i, (found, among) in enumerate((*pairs, (known.flag_rate, flagged))):
            if found.low is not None and found.high is not None:  # where nothing is flagged precision claims nothing
                inside[i] += found.low <= among.mean() <= found.high
                known_at_all[i] += 1
    assert np.all(known_at_all > runs * 0.8)
    assert np.all(inside / known_at_all >= 0.91)


def test_precision_of_traces_that_were_all_labelled_is_not_certain() -> None:
    """Two strata labelled whole, neither ranked by the score: five flagged, all hallucinated."""
    labels = np.arange(40) % 8 == 0
    scores = np.where(labels, 1.0, 0.0) + np.arange(40) % 2 / 10
    for groups in (None, [f"g{i // 2}" for i in range(40)]):
        curve = sweep(labels, scores, design=Design(np.arange(40) % 2, np.array([20, 20])), groups=groups)
        known = figures(curve, 1.0).precision
        assert known.value == 1
        assert known.low is not None
        assert known.low <= beta.ppf(0.025, 5.5, 0.5) + 1e-9


def test_weights_without_a_design_cost_precision() -> None:
    labels, scores = labelled(12, 8, 3, 80)
    equal = figures(sweep(labels, scores, weights=np.full(103, 3.0)), 1.0)
    plain = figures(sweep(labels, scores), 1.0)
    assert (equal.precision.low, equal.recall.low) == pytest.approx((plain.precision.low, plain.recall.low))
    uneven = sweep(labels, scores, weights=np.tile([1.0, 9.0], 52)[:103])
    bounds = figures(uneven, 1.0).precision
    assert bounds.high - bounds.low > plain.precision.high - plain.precision.low  # type: ignore[operator]


def test_the_band_is_the_figures_at_every_point() -> None:
    rng = np.random.default_rng(2)
    labels, scores = rng.random(120) < 0.3, rng.normal(size=120).round(1)
    scores[::9] = np.nan
    ours = sweep(labels, scores, design=Design(np.arange(120) % 4, np.array([1_000, 500, 100, 30])))
    edges = band(ours)
    for i, threshold in enumerate(ours.thresholds):
        known = figures(ours, float(threshold))
        for name in ("precision", "recall", "fpr", "flag_rate"):
            low, high = getattr(edges, f"{name}_low")[i], getattr(edges, f"{name}_high")[i]
            assert astuple(getattr(known, name)) == pytest.approx((getattr(ours, name)[i], low, high))
            assert 0 <= low <= getattr(ours, name)[i] <= high <= 1
    wide = band(ours, confidence=1 - 0.05 / 25)
    assert np.all(wide.precision_low <= edges.precision_low)


def test_a_threshold_that_flags_nothing_has_no_precision() -> None:
    for design in (None, Design(np.arange(20) % 2, np.array([100, 50]))):
        known = figures(sweep(*labelled(4, 2, 4, 10), design=design), 2.0)
        assert known.precision == Interval(None)
        assert known.recall.value == known.fpr.value == known.flag_rate.value == 0
        assert known.recall.high is not None
        assert 0.2 < known.recall.high < 0.5
        assert (known.true_positives, known.false_negatives, known.true_negatives) == (0, 8, 12)


def test_one_class_and_no_label_leave_the_rest_unknown() -> None:
    clean = figures(sweep([0, 0, 0], [1.0, 2.0, 3.0]), 2.0)
    assert clean.recall == Interval(None)
    assert (clean.precision.value, clean.fpr.value) == (0, pytest.approx(2 / 3))
    nothing = figures(sweep([], []), 2.0)
    assert [nothing.precision, nothing.recall, nothing.fpr, nothing.flag_rate] == [Interval(None)] * 4


def test_confidence_must_be_a_share() -> None:
    assert z_value(0.95) == pytest.approx(Z)
    with pytest.raises(BadInput, match="between 0 and 1"):
        z_value(95)


# --- coverage, by simulation ---------------------------------------------------------------------------------------

REPLICATIONS = 500
POPULATION = 40_000


def coverage(prevalence: float, *, octaves: bool) -> tuple[float, float]:
    """How often the intervals of precision and recall hold the truth at a fixed threshold: 300 labels of 40,000."""
    rng = np.random.default_rng(20_261_121)
    y = rng.random(POPULATION) < prevalence
    scores = rng.normal(size=POPULATION) + 1.8 * y
    flagged = scores >= np.quantile(scores, 1 - prevalence)
    truth = (y & flagged).sum() / flagged.sum(), (y & flagged).sum() / y.sum()
    # Strata by rank of a score: the top 1/64, 1/32 ... 1/2; or all in one.
    rank = np.empty(POPULATION)
    rank[np.argsort(-scores)] = (np.arange(POPULATION) + 1) / POPULATION
    strata = np.clip(6 + np.ceil(np.log2(rank)), 0, 6).astype(int) if octaves else np.zeros(POPULATION, int)
    members = [np.flatnonzero(strata == h) for h in range(strata.max() + 1)]
    sizes = {str(h): len(rows) for h, rows in enumerate(members)}
    n_h = list(allocate(sizes, 300).values())
    population = np.array([len(rows) for rows in members])
    held = np.zeros((REPLICATIONS, 2))
    for i in range(REPLICATIONS):
        drawn = np.concatenate([rng.choice(rows, n, replace=False) for rows, n in zip(members, n_h, strict=True)])
        design = Design(strata[drawn], population) if octaves else None
        known = figures(sweep(y[drawn], flagged[drawn].astype(float), design=design), 1.0)
        for j, bounds in enumerate((known.precision, known.recall)):
            # A figure that nothing is known of claims nothing.
            held[i, j] = bounds.low is None or bounds.high is None or bounds.low <= truth[j] <= bounds.high
    precision, recall = held.mean(axis=0)
    return float(precision), float(recall)


@pytest.mark.parametrize("octaves", [False, True], ids=["random", "octaves"])
@pytest.mark.parametrize("prevalence", [0.05, 0.1])
def test_intervals_hold_as_often_as_they_say(prevalence: float, octaves: bool) -> None:
    precision, recall = coverage(prevalence, octaves=octaves)
    # Monte Carlo error at 500 replications: one standard deviation is 0.01.
    assert 0.92 <= precision <= 0.985
    assert 0.92 <= recall <= 0.985


def test_the_simultaneous_band_is_bonferronis() -> None:
    labels, scores = labelled(12, 5, 3, 80)
    wide = simultaneous_band(sweep(labels, scores))
    theirs = binomtest(12, 17).proportion_ci(1 - 0.05 / 25, method="wilson")
    assert (wide.precision_low[0], wide.precision_high[0]) == pytest.approx((theirs.low, theirs.high))
    narrow = band(sweep(labels, scores))
    assert wide.recall_low[0] < narrow.recall_low[0] < narrow.recall_high[0] < wide.recall_high[0]


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 4), st.booleans(), st.booleans())
@pytest.mark.filterwarnings("error")
def test_whatever_was_drawn_every_interval_holds_its_figure(
    seed: int, n: int, strata: int, shared: bool, whole: bool
) -> None:
    """Few labels, one verdict, ties, missing scores, strata with one label or labelled whole, shared sources."""
    rng = np.random.default_rng(seed)
    labels, scores = rng.random(n) < rng.choice([0.0, 0.05, 0.5, 1.0]), rng.integers(0, 6, n).astype(float)
    scores[rng.random(n) < 0.2] = np.nan
    codes = rng.integers(0, strata, n)
    drawn = np.bincount(codes, minlength=strata)
    more = 0 if whole else rng.choice([0, 1, 1_000_000], strata)
    groups = [f"g{code}" for code in rng.integers(0, n, n)] if shared else None
    curve = sweep(labels, scores, design=Design(codes, drawn + more), groups=groups)
    edges = band(curve)
    for name in ("precision", "recall", "fpr", "flag_rate"):
        value, low, high = getattr(curve, name), getattr(edges, f"{name}_low"), getattr(edges, f"{name}_high")
        assert (np.isnan(low) == np.isnan(value)).all()
        assert (np.isnan(high) == np.isnan(value)).all()
        there = ~np.isnan(value)
        assert np.all((low[there] >= 0) & (low[there] <= value[there]) & (value[there] <= high[there]))
        assert np.all(high[there] <= 1)
