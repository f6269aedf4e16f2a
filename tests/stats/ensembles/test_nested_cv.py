"""Nested cross-validation: no label judges a rule it helped to make, and the figures are the plain ones recounted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from calibrate.stats.ensembles import budget_cuts, combine, nested_cv
from calibrate.stats.ensembles.combine import Recipe
from calibrate.stats.ensembles.performance import (
    Judged,
    auroc_within_folds,
    draw_resamples,
    measure_flags,
    measure_performance,
    recall_difference,
)
from calibrate.stats.ensembles.rules import Weighted
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sweep.design import Design, Floats
from tests.stats.ensembles.ensembling import NAMES, WAYS, Octaves, material, take, world

LOGISTIC = Recipe("logistic")
ANY = Recipe("k_of_n", k=1)


def noise(seed: int, n: int = 150) -> TrainingData:
    return material(seed=seed, n=n, auroc=(0.5, 0.5, 0.5, 0.5), weighted=False, traffic=1000)


def test_on_noise_the_auroc_is_a_half_where_the_apparent_one_is_above() -> None:
    honest, apparent = [], []
    for seed in range(40):
        given = noise(seed)
        if given.positives < combine.FEW:
            continue
        folds = nested_cv.repeat_folds(given, rng=np.random.default_rng(seed), repeats=2)
        judged = nested_cv.judge_recipe(LOGISTIC, given, folds, budget=0.05)
        found = auroc_within_folds(given, judged, draw_resamples(given, rng=np.random.default_rng(0), count=2)).value
        assert found is not None
        honest.append(found)
        apparent.append(roc_auc_score(given.labels, combine.logistic(given).score(given.scores)))
    error = np.std(honest) / np.sqrt(len(honest))
    assert abs(np.mean(honest) - 0.5) < 3 * error
    assert np.mean(apparent) > 0.5 + 5 * error


def test_out_of_fold_scores_are_scikit_learns_fitted_without_the_fold() -> None:
    given = material(seed=1, n=200, missing=0.1)
    folds = nested_cv.repeat_folds(given, rng=np.random.default_rng(0), repeats=2)
    judged = nested_cv.judge_recipe(LOGISTIC, given, folds, budget=0.1)
    gaps, inputs = combine.has_gaps(given), combine.inputs_of(given)
    rows, traffic = (combine.design_matrix(some, inputs, gaps) for some in (given.scores, given.traffic))
    for repeat, fold in ((0, 0), (1, 3)):
        inside = folds[repeat] != fold
        model = LogisticRegression(C=combine.C, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        model.fit(rows[inside], given.labels[inside], sample_weight=(given.weights / given.weights.mean())[inside])
        theirs = model.decision_function(rows[~inside])
        assert_allclose(judged.scores[repeat, ~inside], theirs, atol=1e-4)
        at = np.sort(model.decision_function(traffic))[-int(0.1 * len(traffic))]
        assert np.mean(judged.flags[repeat, ~inside] == (theirs >= at)) > 0.98


def test_folds_keep_groups_together_and_spread_the_hallucinated() -> None:
    given = material(seed=2, n=300)
    groups = [f"g{row // 3}" if row < 150 else None for row in range(300)]
    folds = nested_cv.repeat_folds(replace(given, groups=groups), rng=np.random.default_rng(0))
    assert folds.shape == (10, 300)
    assert len({tuple(one) for one in folds.tolist()}) == 10
    for dealt in folds:
        assert np.all(dealt[:150].reshape(50, 3) == dealt[:150:3, None])
        hits = np.bincount(dealt[given.labels], minlength=5)
        assert hits.max() - hits.min() <= 2
        assert np.ptp(np.bincount(dealt, minlength=5)) <= 5


def test_figures_are_the_weighted_shares_recounted() -> None:
    given = material(seed=3, n=300)
    judged = nested_cv.judge_single("b", given, budget=0.1)
    drawn = draw_resamples(given, rng=np.random.default_rng(0))
    found, area = measure_performance(given, judged), auroc_within_folds(given, judged, drawn)
    flags, y, w = judged.flags[0], given.labels, given.weights
    assert found.recall.value == pytest.approx(w[flags & y].sum() / w[y].sum())
    assert found.precision.value == pytest.approx(w[flags & y].sum() / w[flags].sum())
    assert found.flag_rate.value == pytest.approx(w[flags].sum() / w.sum())
    assert area.value == pytest.approx(roc_auc_score(y, -given.scores["b"], sample_weight=w), abs=1e-3)


def test_a_figure_is_the_mean_over_the_dealings_and_precision_that_of_all_flags() -> None:
    given = material(seed=3, n=300, weighted=False)
    flags = np.zeros((3, 300), dtype=bool)
    flags[0, :40] = flags[1, :80] = True
    found, y = measure_performance(given, Judged(flags, flags.astype(float))), given.labels
    assert found.precision.value == pytest.approx((y[:40].sum() + y[:80].sum()) / 120)
    assert found.flag_rate.value == pytest.approx((40 + 80 + 0) / 900)
    assert found.recall.value == pytest.approx((y[:40].sum() + y[:80].sum()) / 3 / y.sum())
    nothing = measure_performance(given, Judged(flags[2:], flags[2:].astype(float)))
    assert (nothing.precision.value, nothing.recall.value) == (None, 0)


def test_answers_of_one_source_count_for_no_more_than_one() -> None:
    one = material(seed=10, n=400, weighted=False)
    four = replace(take(one, np.repeat(np.arange(400), 4)), groups=np.repeat(np.arange(400), 4).tolist())
    alone, shared = (measure_performance(some, nested_cv.judge_single("a", some, budget=0.2)) for some in (one, four))
    for name in ("recall", "precision", "flag_rate"):
        first, second = getattr(alone, name), getattr(shared, name)
        assert second.value == pytest.approx(first.value)
        assert 0.97 < (second.high - second.low) / (first.high - first.low) < 1.25  # Student's t at so many groups


def test_a_rule_in_two_strata_that_know_nothing_of_it_is_not_taken_for_one_that_ranks_them() -> None:
    """The heavy stratum often shows no flag, by chance: its rate is not known to be 0. So read, a rate held .81."""
    rng, held = np.random.default_rng(13), np.zeros(2)
    strata, population = np.repeat([0, 1], [100, 50]), np.array([5_000, 50_000])
    design, none = Design(strata, population), np.zeros(150)
    for _ in range(300):
        y, flags = rng.random(150) < 0.1, rng.random(150) < 0.03
        given = TrainingData(y, design.weights, [None] * 150, design, {"a": none}, none, np.ones(1), {"a": "above"})
        found = measure_flags(given, flags)
        for place, rate in enumerate((found.flag_rate, found.fpr)):
            assert rate.low is not None
            assert rate.high is not None
            held[place] += rate.low <= 0.03 <= rate.high
    assert (held / 300 >= 0.93).all()


def test_other_dealings_of_the_folds_are_part_of_what_is_uncertain() -> None:
    """Every trace's flags differ between dealings, half of them each: the traces say nothing, the dealings do."""
    y = np.arange(200) < 100
    given = TrainingData(y, np.ones(200), [None] * 200, None, {}, {}, np.ones(1), {})
    widths = []
    for share in (0.5, 1.0):
        flags = np.stack([np.full(200, dealing < 2 * share) for dealing in range(4)])
        first, second = (Judged(some, some.astype(float)) for some in (flags, np.zeros((1, 200), dtype=bool)))
        found = recall_difference(given, first, second, draw_resamples(given, rng=np.random.default_rng(0), count=300))
        assert found.value == pytest.approx(share / 2)
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[0] == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(4), rel=0.05)  # one of four dealings flags all
    assert widths[1] > widths[0]


def test_a_ranking_by_octaves_is_read_within_folds_and_holds_the_truth() -> None:
    """Scores of the five folds lie far apart, as those of five fits may: only pairs within a fold say anything."""
    rng, held = np.random.default_rng(14), 0
    made = Octaves.of(rng, prevalence=0.1, auroc=0.85)
    truth = roc_auc_score(made.truth, made.scores["a"])
    for _ in range(100):
        given, _ = made.label(300, rng)
        folds = nested_cv.repeat_folds(given, rng=rng, repeats=2)
        scores = given.scores["a"] + 100.0 * folds
        found = auroc_within_folds(given, Judged(scores > 0, scores, folds), draw_resamples(given, rng=rng, count=200))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    assert held >= 88  # of 100; Monte Carlo error 2.2


def test_the_best_single_detector_is_chosen_without_the_fold_it_is_judged_on() -> None:
    """Labels of the fold left out do not move what is chosen for it."""
    given = material(seed=4, n=200, auroc=(0.62, 0.61, 0.6, 0.6))
    folds = nested_cv.repeat_folds(given, rng=np.random.default_rng(0), repeats=1)
    before = nested_cv.judge_best_single(given, folds, budget=0.1)
    here = folds[0] == 2
    labels = given.labels.copy()
    labels[here] = np.random.default_rng(1).permutation(labels[here])
    after = nested_cv.judge_best_single(replace(given, labels=labels), folds, budget=0.1)
    assert np.array_equal(before.flags[0, here], after.flags[0, here])


def test_a_detector_that_cannot_flag_so_little_is_not_the_best_single_one() -> None:
    """One that is right where it says anything but has two values only: at 5% of the traffic it would find nothing."""
    given = material(seed=4, n=200, weighted=False)
    scores, traffic = {**given.scores}, {**given.traffic}
    scores["a"] = np.where(given.labels, 1.0, np.random.default_rng(0).random(200) < 0.3)
    traffic["a"] = (np.arange(len(traffic["a"])) % 4 == 0).astype(float)
    coarse = replace(given, scores=scores, traffic=traffic)
    folds = nested_cv.repeat_folds(coarse, rng=np.random.default_rng(0), repeats=2)
    assert nested_cv.best_single(coarse, budget=0.5) == "a"
    assert nested_cv.best_single(coarse, budget=0.05) != "a"
    found = measure_performance(coarse, nested_cv.judge_best_single(coarse, folds, budget=0.05))
    assert found.recall.value


def test_an_ensemble_against_itself_differs_by_nothing_and_is_not_shown_to_be_better() -> None:
    given = material(seed=5, n=300)
    one = nested_cv.judge_recipe(ANY, given, np.zeros((1, 300), dtype=np.int64), budget=0.05)
    found = recall_difference(given, one, one, draw_resamples(given, rng=np.random.default_rng(0)))
    assert found.value == 0
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high


@pytest.mark.parametrize(("positives", "finds"), [(30, (0.5, 0.5)), (60, (0.4, 0.5))])
def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says(
    positives: int, finds: tuple[float, float]
) -> None:
    """Two rules that agree on most; each dealing of the folds turns a tenth of the first one's flags around."""
    rng, held = np.random.default_rng(9), []
    y = np.arange(5 * positives) < positives
    none = np.zeros(len(y))
    given = TrainingData(y, np.ones(len(y)), [None] * len(y), None, {"a": none}, none, np.ones(len(y)), {"a": "above"})
    for _ in range(400):
        luck, other = rng.random((2, len(y)))
        other = np.where(rng.random(len(y)) < 0.3, other, luck)
        first = (luck < finds[0]) ^ (rng.random((10, len(y))) < 0.1)
        judged = [Judged(flags, flags.astype(float)) for flags in (first, (other < finds[1])[None])]
        found = recall_difference(given, judged[0], judged[1], draw_resamples(given, rng=rng, count=300))
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= 0.8 * finds[0] + 0.1 - finds[1] <= found.high)
    assert 0.93 - 0.025 <= np.mean(held) <= 0.985 + 0.01


def test_a_far_better_ensemble_is_beyond_its_interval() -> None:
    given = material(seed=6, n=400, weighted=False)
    perfect = Judged(given.labels[None], given.labels[None].astype(float))
    single = nested_cv.judge_single("d", given, budget=0.05)
    found = recall_difference(given, perfect, single, draw_resamples(given, rng=np.random.default_rng(0)))
    assert found.low is not None
    assert found.low > 0.3


def test_few_hallucinated_labels_fall_back_to_the_mean_rank() -> None:
    given = material(seed=7, n=300)
    rows = np.flatnonzero(given.labels)
    labels = given.labels.copy()
    labels[rows[combine.FEW - 1 :]] = False
    few = replace(given, labels=labels)
    rule = combine.build_rule(LOGISTIC, few)
    assert isinstance(rule, Weighted)
    folds = nested_cv.repeat_folds(few, rng=np.random.default_rng(0))
    judged = nested_cv.judge_recipe(LOGISTIC, few, folds, budget=0.05)
    assert np.array_equal(judged.scores[0], combine.mean_rank(few).score(few.scores))


def test_an_alert_budget_finds_what_the_published_simulation_found() -> None:
    """In order: logistic above the best single and above any of them; honest within Monte Carlo error."""
    truth: dict[str, list[float]] = {"logistic": [], "single": [], "any": []}
    measured: dict[str, list[float]] = {name: [] for name in truth}
    for seed in range(24):
        given = material(seed=seed, n=300, weighted=False, auroc=(0.85, 0.82, 0.78, 0.72))
        y, scores = world(np.random.default_rng(900 + seed), 20_000, auroc=(0.85, 0.82, 0.78, 0.72))
        folds = nested_cv.repeat_folds(given, rng=np.random.default_rng(seed), repeats=2)
        for name in truth:
            if name == "single":
                rule = combine.build_rule(ANY, given.select([nested_cv.best_single(given, budget=0.05)]))
                judged = nested_cv.judge_best_single(given, folds, budget=0.05)
            else:
                recipe = ANY if name == "any" else LOGISTIC
                rule = combine.build_rule(recipe, given)
                judged = nested_cv.judge_recipe(recipe, given, folds, budget=0.05)
            at = nested_cv.budget_cut(rule, given, budget=0.05)
            truth[name].append(float(budget_cuts.flags_at_cut(rule.score(scores), at)[y].mean()))
            measured[name].append(float(judged.flags[:, given.labels].mean()))
    means = {name: float(np.mean(values)) for name, values in truth.items()}
    assert means["logistic"] > max(means["any"], means["single"])
    for name in truth:
        gap = np.array(measured[name]) - truth[name]
        assert abs(gap.mean()) < 3.5 * gap.std() / np.sqrt(len(gap))


def test_the_interval_of_recall_holds_the_truth_as_often_as_it_says() -> None:
    """A rule that is fitted to nothing, on 240 fresh sets of labels: 95%, give or take 2.5 Monte Carlo errors."""
    held = []
    rng = np.random.default_rng(8)
    first = material(seed=8, n=10, weighted=False)
    y, scores = world(rng, 60_000, auroc=(0.8, 0.76, 0.72, 0.68))
    at = budget_cuts.cut_at_budget(_mean(first, scores), np.ones(len(y)), budget=0.1)
    true = budget_cuts.flags_at_cut(_mean(first, scores), at)[y].mean()
    for _ in range(240):
        labels, some = world(rng, 300, auroc=(0.8, 0.76, 0.72, 0.68))
        given = TrainingData(labels, np.ones(300), [None] * 300, None, some, first.traffic, first.traffic_weights, WAYS)
        flags = budget_cuts.flags_at_cut(_mean(first, some), at)[None]
        one = measure_performance(given, Judged(flags, flags.astype(float))).recall
        assert one.low is not None
        assert one.high is not None
        held.append(one.low <= true <= one.high)
    assert 0.915 <= np.mean(held) <= 0.99


def _mean(first: TrainingData, scores: dict[str, Floats]) -> Floats:
    return combine.mean_rank(first).score({name: scores[name] for name in NAMES})
