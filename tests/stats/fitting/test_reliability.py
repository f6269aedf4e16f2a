"""The probability map and its reliability against scikit-learn, closed forms and simulated truth."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from calibrate.errors import BadInput
from calibrate.probability import ProbabilityMap
from calibrate.stats.choosing.choose import NotEnoughLabels
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.fitting.probability_maps import fit_map
from calibrate.stats.fitting.reliability import equal_bins, judge_probabilities
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.sweep.design import Design


def perfect(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and the probabilities they were drawn with."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.5, 3.5, n)
    return rng.random(n) < p, p


def drawn(seed: int = 0, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.3
    return labels, rng.normal(0.0, 1.0, n) + 1.2 * labels


def test_losses_equal_scikit_learn_with_weights() -> None:
    labels, p = perfect(1, 400)
    weights = np.random.default_rng(2).uniform(0.2, 9, 400)
    found = judge_probabilities(labels, p, weights=weights, rng=np.random.default_rng(0))
    assert found.brier.value == pytest.approx(brier_score_loss(labels, p, sample_weight=weights), abs=1e-12)
    assert found.log_loss == pytest.approx(log_loss(labels, p, sample_weight=weights), abs=1e-12)
    always = np.full(400, np.average(labels, weights=weights))
    assert found.base_brier == pytest.approx(brier_score_loss(labels, always, sample_weight=weights), abs=1e-12)
    assert found.gain.value == pytest.approx(found.base_brier - (found.brier.value or 0))
    assert (found.gain.low or 0) > 0


def test_bins_of_equal_mass_equal_scikit_learn() -> None:
    labels, p = perfect(3, 500)
    found = judge_probabilities(labels, p, bins=10, rng=np.random.default_rng(0))
    share, predicted = calibration_curve(labels, p, n_bins=10, strategy="quantile")
    assert_allclose([one.predicted for one in found.bins], predicted, atol=1e-12)
    assert_allclose([one.hallucinated.value for one in found.bins], share, atol=1e-12)
    assert [one.n for one in found.bins] == [50] * 10
    assert found.ece == pytest.approx(np.mean(np.abs(share - predicted)), abs=1e-12)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=80), st.integers(1, 12))
def test_equal_values_share_a_bin_and_bins_rise(values: list[int], count: int) -> None:
    given_ = np.array(values, dtype=float)
    place = equal_bins(given_, count)
    assert set(place) == set(range(place.max() + 1))
    order = np.argsort(given_, kind="stable")
    assert np.all(np.diff(place[order]) >= 0)
    assert all(len(set(place[given_ == one])) == 1 for one in given_)


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_the_map_is_scikit_learns_logistic_regression_on_the_same_features(flag_when: str) -> None:
    labels, suspicion = drawn()
    scores = suspicion if flag_when == "above" else 3 - suspicion
    found = fit_map(labels, scores, flag_when=flag_when, rng=np.random.default_rng(0)).map  # type: ignore[arg-type]
    z = (suspicion - suspicion.mean()) / suspicion.std()
    features = np.column_stack([z, np.maximum(z, 0) ** 2 / 2])
    theirs = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(features, labels)
    ours = [found.probability(float(one)) for one in scores]
    assert_allclose(ours, theirs.predict_proba(features)[:, 1], atol=1e-5)
    assert found.probability(None) is None
    assert found.probability(float("nan")) is None
    assert all(0 <= (found.probability(one) or 0) <= 1 for one in (-1e300, 1e300, float("inf")))
    assert ProbabilityMap.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize(
    "broken", [{"spread": 0}, {"kind": "isotonic"}, {"coefficients": [1, 2]}, {"centre": None}, {"flag_when": "never"}]
)
def test_what_is_no_map_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="probability map"):
        ProbabilityMap.from_json({**ProbabilityMap(0.0, 1.0, (0.0, 1.0, 0.0), "above").to_json(), **broken})


def test_chance_alone_makes_the_calibration_error_of_perfect_probabilities() -> None:
    found = [
        judge_probabilities(*perfect(seed, 300), rng=np.random.default_rng(seed), bins=10).ece for seed in range(60)
    ]
    assert np.median(found) == pytest.approx(0.05, abs=0.015)
    assert judge_probabilities(*perfect(1, 30_000), rng=np.random.default_rng(1), bins=10).ece < 0.01


def test_labels_that_come_in_copies_widen_the_interval() -> None:
    labels, p = perfect(5, 100)
    alone = judge_probabilities(labels, p, rng=np.random.default_rng(0), bins=5).brier
    copies = Units.among([place // 4 for place in range(400)])
    fourfold = [np.repeat(one, 4) for one in (labels, p)]
    together = judge_probabilities(*fourfold, units=copies, rng=np.random.default_rng(0), bins=5).brier
    naive = judge_probabilities(*fourfold, rng=np.random.default_rng(0), bins=5).brier
    widths = [(one.high or 0) - (one.low or 0) for one in (alone, together, naive)]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert widths[2] == pytest.approx(widths[0] / 2, rel=0.15)


def test_folds_keep_groups_whole_and_share_out_the_hallucinated() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), 3)
    labels = np.isin(groups, [1, 5, 9, 20, 33])
    fold = deal_folds(labels, groups, folds=5, rng=rng)
    assert all(len(set(fold[groups == one])) == 1 for one in range(50))
    assert [int(labels[fold == one].sum()) for one in range(5)] == [3] * 5
    assert np.bincount(fold).tolist() == [30] * 5


def test_a_label_that_nothing_foretells_is_flattered_by_the_apparent_figure_only() -> None:
    rng = np.random.default_rng(0)
    made = [fit_map(np.arange(60) % 4 == 0, rng.normal(size=60), flag_when="above", rng=rng) for _ in range(12)]
    worse = np.mean([(one.reliability.brier.value or 0) - one.reliability.base_brier for one in made])
    assert worse > 0 > np.mean([(one.apparent.brier.value or 0) - one.apparent.base_brier for one in made])


def test_a_design_weighs_every_label_by_what_it_stands_for() -> None:
    labels, scores = drawn(n=100)
    design = Design(np.arange(100) % 2, np.array([50, 5000]))
    found = fit_map(labels, scores, flag_when="above", design=design, rng=np.random.default_rng(0))
    prevalence = float(np.average(labels, weights=design.weights))
    assert found.reliability.base_brier == pytest.approx(prevalence * (1 - prevalence))
    assert sum(one.mass for one in found.reliability.bins) == pytest.approx(1)


def test_a_missing_score_changes_nothing_and_one_seed_gives_one_answer() -> None:
    labels, scores = drawn(n=80)
    one = fit_map(labels, scores, flag_when="above", rng=np.random.default_rng(4))
    more = fit_map(np.append(labels, True), np.append(scores, np.nan), flag_when="above", rng=np.random.default_rng(4))
    assert (one.map, one.reliability, one.apparent) == (more.map, more.reliability, more.apparent)


@pytest.mark.parametrize(
    ("bad", "groups", "match"),
    [
        (9, None, "9 hallucinated labels with a score: a probability map needs at least 10"),
        (93, None, "7 clean labels"),
        (30, [0] * 30 + [None] * 70, "30 hallucinated labels come from 1 groups of shared sources"),
    ],
)
def test_too_few_labels_are_refused_with_the_remedy(bad: int, groups: list[int | None] | None, match: str) -> None:
    with pytest.raises(NotEnoughLabels, match=match):
        fit_map(np.arange(100) < bad, np.arange(100.0), flag_when="above", groups=groups, rng=np.random.default_rng(0))
