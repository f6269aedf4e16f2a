"""Ensembles: against scikit-learn, scipy, closed forms and the published simulation; total, and exact through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, rankdata, spearmanr
from sklearn.linear_model import LogisticRegression

from calibrate.errors import BadInput
from calibrate.stats.ensembles import budget_cuts, combine
from calibrate.stats.ensembles.cascade import Price, frontier
from calibrate.stats.ensembles.combine import KINDS, Recipe
from calibrate.stats.ensembles.joint import correlation, joint_false_positives, spearman
from calibrate.stats.ensembles.nested_cv import budget_cut
from calibrate.stats.ensembles.rules import Cascade, Fixed, Logistic, Rule, Vote, from_json, to_json
from calibrate.stats.ensembles.training_data import KNOTS, TrainingData, standing
from tests.stats.ensembles.ensembling import NAMES, Octaves, equicorrelated, material, take


def made(kind: str, given: TrainingData) -> Rule:
    return combine.build_rule(Recipe(kind, expensive="b"), given)  # type: ignore[arg-type]


def every_rule(given: TrainingData) -> list[Rule]:
    fixed = Recipe("k_of_n", k=1, thresholds=dict.fromkeys(NAMES, 0.5))
    return [*(made(kind, given) for kind in KINDS), combine.build_rule(fixed, given), combine.mean_rank(given)]


def test_logistic_equals_scikit_learn_on_the_same_design_matrix() -> None:
    given = material(seed=1, n=300, missing=0.2)
    rule = made("logistic", given)
    assert isinstance(rule, Logistic)
    columns = []
    for name in NAMES:
        way = -1 if given.flag_when[name] == "below" else 1
        traffic = given.traffic[name][~np.isnan(given.traffic[name])]
        columns.append(np.nan_to_num(way * (given.scores[name] - traffic.mean()) / traffic.std()))
    columns += [np.isnan(given.scores[name]).astype(float) for name in NAMES]
    design = np.column_stack(columns)
    theirs = LogisticRegression(C=0.3, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(design, given.labels, sample_weight=given.weights / given.weights.mean())
    assert_allclose([rule.inputs[name].slope for name in NAMES], theirs.coef_[0][:4], atol=2e-5)
    assert_allclose([rule.inputs[name].missing for name in NAMES], theirs.coef_[0][4:], atol=2e-5)
    assert_allclose(rule.score(given.scores), theirs.predict_proba(design)[:, 1], atol=1e-5)


def test_a_standing_is_scipys_rank_and_its_normal_quantile() -> None:
    values = np.random.default_rng(2).integers(0, 40, 500).astype(float)
    traffic = standing(values, np.ones(500), flag_when="below")
    place = (rankdata(-values) - 0.5) / 500
    assert_allclose(traffic.suspicion(values), place, atol=1e-12)
    assert_allclose(traffic.normal(values), norm.ppf(place), atol=1e-12)
    assert traffic.threshold(float(place[7])) == pytest.approx(values[7])


def test_no_score_is_as_suspicious_as_more_than_all_of_the_traffic() -> None:
    traffic = standing(np.arange(10.0), np.ones(10), flag_when="above")
    assert traffic.threshold(0.95) == pytest.approx(9.0)  # half of the highest score's own share counts
    assert traffic.threshold(0.96) is None
    assert standing(np.full(3, np.nan), np.ones(3), flag_when="above").threshold(0.0) is None


def test_few_knots_keep_the_order_and_the_place() -> None:
    values = np.random.default_rng(3).exponential(size=20_000)
    traffic = standing(values, np.ones(20_000), flag_when="above")
    assert len(traffic.knots) <= KNOTS + 1
    assert_allclose(traffic.suspicion(values), (rankdata(values) - 0.5) / 20_000, atol=0.003)
    assert np.all(np.diff(traffic.suspicion(np.sort(values))) > 0)


@pytest.mark.parametrize(("rho", "any_", "two"), [(0.0, 0.186, 0.014), (0.5, 0.145, 0.042), (0.9, 0.088, 0.055)])
def test_the_measured_joint_rate_of_correlated_detectors_is_the_published_one(
    rho: float, any_: float, two: float
) -> None:
    n = 120_000
    scores = equicorrelated(np.random.default_rng(4), n, rho=rho)
    clean = TrainingData(
        np.zeros(n, dtype=bool), np.ones(n), [None] * n, None, scores, scores, np.ones(n),
        dict.fromkeys(NAMES, "above"),
    )  # fmt: skip
    each = budget_cuts.thresholds_at_budget(clean, 0.05)
    found = joint_false_positives(clean, budget_cuts.flags_at_thresholds(clean, each))
    assert found[0].measured.value == pytest.approx(any_, abs=0.002)
    assert found[1].measured.value == pytest.approx(two, abs=0.002)


def test_an_interval_of_the_joint_rate_narrows_with_labels_and_holds_its_figure() -> None:
    widths = []
    for n in (200, 3200):
        given = material(seed=5, n=n)
        figure = joint_false_positives(
            given, budget_cuts.flags_at_thresholds(given, budget_cuts.thresholds_at_budget(given, 0.05))
        )[0].measured
        assert figure.low is not None
        assert figure.high is not None
        assert figure.value is not None
        assert 0 <= figure.low <= figure.value <= figure.high <= 1
        widths.append(figure.high - figure.low)
    assert widths[1] < widths[0] / 2.5


def test_the_joint_rate_holds_by_octaves_and_is_narrower_than_so_many_labels_at_random() -> None:
    rng, runs = np.random.default_rng(11), 150
    traffic = Octaves.of(rng, prevalence=0.1, auroc=0.85)
    cuts = {name: float(np.quantile(values, 0.97)) for name, values in traffic.scores.items()}
    clean = ~traffic.truth
    both = np.sum([values >= cuts[name] for name, values in traffic.scores.items()], axis=0)[clean]
    held, widths = np.zeros(2), []
    for _ in range(runs):
        given, _ = traffic.label(300, rng)
        found = joint_false_positives(given, budget_cuts.flags_at_thresholds(given, dict(cuts)))
        for k, one in enumerate(found):
            assert one.measured.low is not None
            assert one.measured.high is not None
            held[k] += one.measured.low <= (both > k).mean() <= one.measured.high
        widths.append(found[0].measured.high - found[0].measured.low)  # type: ignore[operator]
    assert np.all(held / runs >= 0.9)
    rate = (both > 0).mean()
    assert np.mean(widths) < 0.8 * 2 * 1.96 * np.sqrt(rate * (1 - rate) / 270)


def test_correlation_is_spearmans_on_the_pairs_both_scored() -> None:
    given = material(seed=6, n=400, missing=0.3, weighted=False)
    found = correlation(given)
    one, other = (given.scores[name][~given.labels] for name in ("a", "b"))
    both = np.isfinite(one) & np.isfinite(other)
    way = -1 if given.flag_when["a"] != given.flag_when["b"] else 1
    assert found.rho[0, 1] == pytest.approx(way * spearmanr(one[both], other[both]).statistic)
    assert found.n[0, 1] == both.sum()
    assert np.isnan(spearman(np.ones(9), np.arange(9.0), np.ones(9)))


def test_a_weight_of_two_is_the_trace_twice() -> None:
    rng = np.random.default_rng(7)
    x, y, w = rng.normal(size=60), rng.normal(size=60), rng.integers(1, 4, 60)
    assert spearman(x, y, w.astype(float)) == pytest.approx(
        spearmanr(np.repeat(x, w), np.repeat(y, w)).statistic, abs=1e-12
    )


@pytest.mark.parametrize("budget", [0.01, 0.05, 0.3])
def test_a_budget_cut_flags_at_most_the_budget_and_one_step_looser_flags_more(budget: float) -> None:
    rng = np.random.default_rng(8)
    scores, weights = np.round(rng.normal(size=800), 2), rng.uniform(0.5, 3, 800)
    at = budget_cuts.cut_at_budget(scores, weights, budget=budget)
    assert at is not None
    assert weights[scores >= at].sum() / weights.sum() <= budget
    looser = scores[scores < at].max()
    assert weights[scores >= looser].sum() / weights.sum() > budget


def test_a_score_that_too_many_share_has_no_cut() -> None:
    assert budget_cuts.cut_at_budget(np.repeat([1.0, 0.0], 50), np.ones(100), budget=0.05) is None


def test_a_vote_flags_where_k_detectors_are_above_their_own_thresholds() -> None:
    given = material(seed=9, n=300, missing=0.1)
    for k in (1, 2, 3):
        rule = combine.build_rule(Recipe("k_of_n", k=k), given)
        assert isinstance(rule, Vote)
        at = budget_cut(rule, given, budget=0.1)
        assert at is not None
        thresholds = {name: rule.standings[name].threshold(at) for name in NAMES}
        flags = budget_cuts.flags_at_thresholds(given, thresholds)
        counted = np.sum([flags[name] for name in NAMES], axis=0) >= k
        # A threshold is read from knots: a score on the edge may fall to either side.
        assert np.mean(counted != (rule.score(given.scores) >= at)) <= 0.01


def test_every_rule_is_total() -> None:
    given = material(seed=10, n=200, missing=0.2)
    for rule in every_rule(given):
        nothing = rule.score({name: np.array([np.nan, np.nan]) for name in NAMES})
        assert nothing.shape == (2,)
        for scores in ({}, {"a": None}, {"a": [np.inf], "b": [-np.inf]}, {"a": [1.0], "zzz": [1.0]}):
            assert np.isfinite(rule.score(scores)).all()
        assert np.isfinite(nothing).all()
        at = budget_cut(rule, given, budget=0.05)
        if not isinstance(rule, Logistic):  # whose indicators may know that no score is a bad sign
            assert not budget_cuts.flags_at_cut(nothing, at).any()


def test_lengths_that_differ_are_refused() -> None:
    rule = made("k_of_n", material(seed=10, n=200))
    with pytest.raises(BadInput, match="one of each per trace"):
        rule.score({"a": [1.0, 2.0], "b": [1.0]})


def test_json_gives_the_same_rule_back() -> None:
    given = material(seed=11, n=200, missing=0.2)
    for rule in every_rule(given):
        back = from_json(json.loads(json.dumps(to_json(rule))))
        assert back == rule
        assert np.array_equal(back.score(given.scores), rule.score(given.scores))


@pytest.mark.parametrize("document", [{}, {"form": "vote"}, {"form": "other"}, {"form": "cascade", "filter": 3}])
def test_what_is_no_rule_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="no ensemble"):
        from_json(document)


def test_the_order_of_rows_and_detectors_changes_nothing() -> None:
    given = material(seed=12, n=250, missing=0.2)
    order = np.random.default_rng(0).permutation(250)
    turned = take(given, order)
    backwards = TrainingData(
        turned.labels, turned.weights, turned.groups, None,
        {name: turned.scores[name] for name in reversed(NAMES)},
        {name: turned.traffic[name] for name in reversed(NAMES)},
        turned.traffic_weights, turned.flag_when,
    )  # fmt: skip
    for ours, theirs in zip(every_rule(given), every_rule(backwards), strict=True):
        assert_allclose(theirs.score(turned.scores), ours.score(given.scores)[order], atol=1e-9)
    assert_allclose(correlation(backwards).rho, correlation(given).rho, atol=1e-12)


def test_negated_scores_that_flag_below_are_the_same_ensemble() -> None:
    given = material(seed=13, n=250)
    other = {"above": "below", "below": "above"}
    negated = TrainingData(
        given.labels, given.weights, given.groups, None,
        {name: -values for name, values in given.scores.items()},
        {name: -values for name, values in given.traffic.items()},
        given.traffic_weights,
        {name: other[way] for name, way in given.flag_when.items()},  # type: ignore[misc]
    )  # fmt: skip
    for ours, theirs in [(made(kind, given), made(kind, negated)) for kind in KINDS]:
        assert_allclose(theirs.score(negated.scores), ours.score(given.scores), atol=1e-9)


def test_fixed_thresholds_count_flags() -> None:
    rule = Fixed(2, {"a": ("above", 0.5), "b": ("below", 1.0)})
    assert rule.score({"a": [0.5, 0.6, np.nan], "b": [1.0, 1.1, 0.0]}).tolist() == [2, 1, 1]


def test_a_cascade_asks_only_about_what_passes_and_passing_all_is_the_expensive_one_alone() -> None:
    given = material(seed=14, n=400)
    rule = combine.cascade(given, "b", pass_share=0.3)
    assert np.mean(rule.passes(given.traffic)) == pytest.approx(0.3, abs=0.01)
    stopped = ~rule.passes(given.scores)
    changed = {**given.scores, "b": np.where(stopped, np.nan, given.scores["b"])}
    assert np.array_equal(rule.score(changed), rule.score(given.scores))
    whole = combine.cascade(given, "b", pass_share=1.0)
    assert isinstance(whole, Cascade)
    alone = given.standings["b"].suspicion(given.scores["b"])
    assert_allclose(whole.score(given.scores), 1 + alone)


def test_the_frontier_counts_calls_and_money() -> None:
    given = material(seed=15, n=400)
    found = frontier(given, Price("b", 50, calls=2.0, dollars=0.01, seconds=1.0), budget=0.05)
    assert found.filters == ("a", "c", "d")
    asked = [step.traces for step in found.steps]
    assert (asked[0], asked[-1]) == (0.0, 1000.0)
    assert asked == sorted(asked)
    for step in found.steps:
        assert (step.calls, step.dollars) == (pytest.approx(2 * step.traces), pytest.approx(0.01 * step.traces))


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        (Recipe("k_of_n", k=5), "5 of 4 detectors"),
        (Recipe("cascade", expensive="a", pass_share=0.0), "above 0"),
        (Recipe("cascade", expensive="zzz"), "an expensive one"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(recipe: Recipe, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        combine.build_rule(recipe, material(seed=16, n=100))
