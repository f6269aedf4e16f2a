"""Certification against scipy's exact tests, closed forms, and the properties a certificate must have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom, binomtest, norm

from calibrate.errors import BadInput
from calibrate.stats.certification.certificates import Certified, NotCertifiable, Plan, Shortfall, ShortfallReason
from calibrate.stats.certification.forecast import forecast
from calibrate.stats.certification.ladder import build_ladder, local_weights
from calibrate.stats.certification.offers import offer_budgets
from calibrate.stats.certification.readings import draw_rings
from calibrate.stats.certification.stage_a import plan_certificate, read_evidence
from calibrate.stats.certification.stage_b import certify
from calibrate.stats.certification.walks import Walk, best_walk
from calibrate.stats.intervals.exact_tests import binomial_p, critical, level, lower_bound, walk_down

MU, SPREAD, PREVALENCE = 1.87, 1.5, 0.1


def traffic(seed: int, n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < PREVALENCE
    z = rng.standard_normal(n)
    return np.where(truth, MU + SPREAD * z, z), truth


def true_precision(cut: float) -> float:
    found, false = norm.sf((cut - MU) / SPREAD), norm.sf(cut)
    return PREVALENCE * found / (PREVALENCE * found + (1 - PREVALENCE) * false)


def labelled(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and truth of `n` traces, half of them from the top, and their weights."""
    scores, truth = traffic(seed)
    order = np.argsort(-scores)
    rng = np.random.default_rng(seed)
    top, rest = rng.choice(2_000, n // 2, replace=False), 2_000 + rng.choice(18_000, n // 2, replace=False)
    rows = order[np.concatenate([top, rest])]
    return scores[rows], truth[rows], np.repeat([2_000 / (n // 2), 18_000 / (n // 2)], n // 2)


def planned(seed: int = 1, **more: object) -> Plan:
    scores, truth, weights = labelled(seed)
    rng = np.random.default_rng(0)
    plan = plan_certificate(scores, truth, weights, traffic(seed)[0], 0.7, budget=180, rng=rng, **more)  # type: ignore[arg-type]
    assert isinstance(plan, Plan)
    return plan


def by_hand(cuts: tuple[float, ...], target: float = 0.7) -> Plan:
    shares = tuple(np.linspace(0.01, 0.1, len(cuts)).tolist())
    return Plan(target, cuts, shares, ((0.8, 0.7, 0.9),) * len(cuts), 100, 0.9, 0.05, 0.04, 1, "above")


def test_p_values_are_scipys() -> None:
    m, k = (grid.ravel() for grid in np.meshgrid(np.arange(80), np.arange(81)))
    for target in (0.05, 0.7, 0.95):
        assert_allclose(binomial_p(k, m, target), binom.sf(k - 1, m, target), atol=1e-12)


@pytest.mark.parametrize(("target", "alpha"), [(0.7, 0.05), (0.7, 0.008), (0.3, 0.04), (0.95, 0.04)])
def test_critical_counts_are_the_first_that_pass(target: float, alpha: float) -> None:
    for m, k in enumerate(critical(150, target, alpha)):
        assert k == m + 1 or binom.sf(k - 1, m, target) <= alpha
        assert k == 0 or binom.sf(k - 2, m, target) > alpha


@settings(max_examples=50)
@given(st.integers(1, 200), st.data())
def test_the_bound_is_the_exact_one_and_agrees_with_the_test(m: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, m))
    ours = float(lower_bound(np.array([k]), np.array([m]), 0.04)[0])
    theirs = binomtest(k, m, alternative="greater").proportion_ci(0.96, method="exact").low
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert (ours >= 0.7) == (binom.sf(k - 1, m, 0.7) <= 0.04)


def test_all_attempts_together_spend_alpha() -> None:
    assert sum(level(attempt, 0.05) for attempt in range(1, 40)) == pytest.approx(0.05)
    assert level(1) > level(2) > level(3)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=12))
def test_a_walk_passes_over_what_is_not_eligible_and_ends_at_the_first_failure(steps: list[tuple[bool, float]]) -> None:
    last = -1
    for i, (eligible, p) in enumerate(steps):
        if eligible and p > 0.3:
            break
        last = i if eligible else last
    found = walk_down(np.array([[p for _, p in steps]]), np.array([[e for e, _ in steps]]), 0.3)
    assert found.tolist() == [last]


def test_a_ladder_says_how_much_each_cut_flags() -> None:
    rng = np.random.default_rng(4)
    pool = np.round(rng.standard_normal(3_000), 1)
    pool[rng.random(3_000) < 0.3] = np.nan
    for flag_when, sign in (("above", 1), ("below", -1)):
        found = build_ladder(pool, flag_when=flag_when)  # type: ignore[arg-type]
        flagged = [(sign * pool >= sign * cut).sum() / 3_000 for cut in found.thresholds]
        assert_allclose(found.shares, flagged)
        assert (np.diff(found.shares) > 0).all()
        assert found.rings.sum() == pytest.approx((~np.isnan(pool)).mean())
        cut = found.thresholds[5]
        expected = ((sign * pool > sign * cut).sum() + (pool == cut).sum() / 2) / 3_000
        assert found.positions(np.array([cut]))[0] == pytest.approx(expected)


def test_local_weights_average_one_within_an_octave_and_keep_their_ratios() -> None:
    positions = np.array([0.001, 0.002, 0.3, 0.4, 0.49, 0.9])
    weights = np.array([2.0, 4.0, 10.0, 30.0, 20.0, 100.0])
    assert_allclose(local_weights(positions, weights), [2 / 3, 4 / 3, 0.5, 1.5, 1.0, 1.0])
    assert_allclose(local_weights(positions, 50 * weights), local_weights(positions, weights))


def test_the_fitted_curve_finds_the_true_precision_from_many_labels() -> None:
    scores, truth = traffic(3, n=60_000)
    rungs = build_ladder(scores)
    rng = np.random.default_rng(5)
    rows = rng.choice(60_000, 12_000, replace=False)
    draws = draw_rings(
        rungs, rungs.describe(scores[rows])[None], truth[rows][None] * 1.0, np.ones((1, 12_000)), draws=200, rng=rng
    )
    precision = (np.cumsum(draws[0] * rungs.rings, axis=-1) / rungs.shares).mean(0)
    for cut, share, ours in zip(rungs.thresholds, rungs.shares, precision, strict=True):
        if share > 0.01:
            assert ours == pytest.approx(true_precision(cut), abs=0.05)


def test_the_predicted_chance_is_the_power_of_the_binomial_test() -> None:
    rungs = build_ladder(np.random.default_rng(0).standard_normal(20_000))
    curves = np.broadcast_to(np.where(rungs.shares < 0.05, 0.85, 0.1), (1, 20_000, len(rungs.shares)))
    walk = best_walk(rungs, curves, labels=120, fresh=20_000, target=0.7, level=0.04, rng=np.random.default_rng(1))
    share = rungs.shares[walk.start[0]] / rungs.shares[walk.deepest[0]]
    m = round(int(walk.labels[0]) * share)
    power = binom.sf(critical(200, 0.7, 0.04)[m] - 1, m, 0.85)
    assert walk.chance[0] == pytest.approx(power, abs=0.03)
    assert 0.03 < rungs.shares[walk.deepest[0]] < 0.08


def test_a_forecast_is_the_power_of_the_binomial_test_and_says_what_unsure_answers_cost() -> None:
    rungs = build_ladder(np.random.default_rng(0).standard_normal(20_000))
    curves = np.broadcast_to(np.where(rungs.shares <= 0.05, 0.8, 0.1), (1, 40_000, len(rungs.shares)))
    cut = np.array([int(np.searchsorted(rungs.shares, 0.05, side="right")) - 1])
    walk = Walk(start=cut, deepest=cut, labels=np.array([150]), chance=np.zeros(1))
    least = critical(150, 0.7, 0.04)
    told = forecast(rungs, curves, walk, target=0.7, level=0.04, rng=np.random.default_rng(1))
    assert told.chance[0] == pytest.approx(binom.sf(least[150] - 1, 150, 0.8), abs=0.02)
    assert told.chance_unsure[0] == pytest.approx(binom.sf(least[150] - 1, 150, 0.72), abs=0.02)
    caught = np.cumsum(curves[0, 0] * rungs.rings)
    assert told.recall[0] == pytest.approx(caught[cut[0]] / caught[-1])
    # Where a third of the labels repeat a source, the test by sources has 100.
    told = forecast(rungs, curves, walk, target=0.7, level=0.04, rng=np.random.default_rng(1), sources=2 / 3)
    assert told.chance[0] == pytest.approx(binom.sf(least[100] - 1, 100, 0.8), abs=0.02)


def test_levels_explain_a_plateau_and_the_score_explains_a_tail() -> None:
    """Far below the target a plateau promises little: the score alone sees a rise that is not there."""
    rng = np.random.default_rng(3)
    pool = -np.sort(-rng.standard_normal(20_000))
    precise = {"plateau": lambda rank: np.where(rank < 0.05, 0.55, 0.02), "tail": lambda rank: np.exp(-25 * rank)}
    chances = {}
    for name, of in precise.items():
        chances[name] = []
        for _ in range(12):
            rows = np.unique(np.floor(20_000 * 2.0 ** -rng.uniform(0, 9, 160)).astype(int)) - 1
            truth = rng.random(len(rows)) < of(rows / 20_000)
            evidence = read_evidence(pool[rows], truth, None, pool)
            offers = offer_budgets(evidence, 0.7, fresh=20_000, rng=rng)
            assert [offer.labels for offer in offers] == sorted(offer.labels for offer in offers)
            assert all(offer.chance_unsure <= offer.chance + 0.03 for offer in offers)
            chances[name].append(offers[-1].chance)
    assert np.mean(chances["plateau"]) < 0.3
    assert np.mean(chances["tail"]) > 0.8


def test_below_a_chance_of_a_fifth_nothing_is_planned() -> None:
    scores, truth, weights = labelled(1)
    for target, budget in ((0.7, 20), (0.85, 60), (0.99, 100)):
        rng = np.random.default_rng(0)
        found = plan_certificate(scores, truth, weights, traffic(1)[0], target, budget=budget, rng=rng)
        if isinstance(found, Plan):
            assert found.chance >= 0.2
        else:
            assert (found.why.chance or 0) < 0.2
    assert isinstance(found, NotCertifiable)


def test_a_plan_is_strict_to_loose_within_budget_and_near_the_target() -> None:
    plan = planned()
    assert list(plan.cuts) == sorted(plan.cuts, reverse=True)
    assert list(plan.shares) == sorted(plan.shares)
    assert plan.labels <= 180
    assert 0.5 < true_precision(plan.deepest) < 0.85
    assert plan.level == pytest.approx(0.04)
    scores, _ = traffic(1)
    assert_allclose(plan.shares, [(scores >= cut).mean() for cut in plan.cuts])
    assert all(low < expected < high for expected, low, high in plan.precision)


def test_a_plan_cannot_ask_for_more_than_fresh_traffic_flags() -> None:
    plan = planned(fresh=1_500)
    assert plan.labels <= plan.shares[-1] * 1_500


def test_what_must_not_matter_to_a_plan_does_not() -> None:
    scores, truth, weights = labelled(1)
    pool, _ = traffic(1)

    def cuts(s: np.ndarray, y: np.ndarray, w: np.ndarray, p: np.ndarray, **more: str) -> np.ndarray:
        found = plan_certificate(s, y, w, p, 0.7, budget=180, rng=np.random.default_rng(0), **more)  # type: ignore[arg-type]
        assert isinstance(found, Plan)
        return np.array(found.cuts)

    expected = cuts(scores, truth, weights, pool)
    order = np.random.default_rng(2).permutation(len(scores))
    assert_allclose(cuts(scores[order], truth[order], weights[order], pool), expected)
    assert_allclose(cuts(scores, truth, weights, np.random.default_rng(3).permutation(pool)), expected)
    assert_allclose(cuts(-scores, truth, weights, -pool, flag_when="below"), -expected)
    assert_allclose(cuts(100 * scores - 7, truth, weights, 100 * pool - 7), 100 * expected - 7)
    assert_allclose(cuts(scores, truth, 1000 * weights, pool), expected)
    more = (np.append(scores, np.nan), np.append(truth, True), np.append(weights, 5.0))
    assert_allclose(cuts(*more, pool), expected)


def test_a_certificate_is_the_last_cut_passed_and_its_exact_figures() -> None:
    scores = np.repeat([3.0, 2.0, 1.0], [30, 30, 40])
    truth = np.r_[np.arange(30) < 29, np.arange(30) < 26, np.arange(40) < 18]
    found = certify(by_hand((3.0, 2.0, 1.0)), scores, truth, rng=np.random.default_rng(0))
    assert isinstance(found, Certified)
    assert (found.cut, found.m, found.k) == (2.0, 60, 55)
    assert found.p_value == pytest.approx(binom.sf(54, 60, 0.7))
    assert found.bound == pytest.approx(binomtest(55, 60, alternative="greater").proportion_ci(0.96).low)
    assert [step.outcome for step in found.walk] == ["passed", "passed", "failed"]
    assert [(step.labels, step.hallucinated) for step in found.walk] == [(30, 29), (60, 55), (100, 73)]


def test_nothing_behind_a_failed_cut_is_certified_however_good() -> None:
    scores = np.repeat([3.0, 2.0], [30, 300])
    truth = np.r_[np.arange(30) < 15, np.ones(300)]
    found = certify(by_hand((3.0, 2.0)), scores, truth, rng=np.random.default_rng(0))
    assert isinstance(found, NotCertifiable)
    assert [step.outcome for step in found.walk] == ["failed", "not tested"]
    assert found.walk[1].p_value < 1e-6
    assert not hasattr(found, "cut")
    assert found.why == Shortfall(ShortfallReason.FAILED)
    assert (found.walk[0].cut, found.walk[0].labels, found.walk[0].hallucinated) == (3, 30, 15)


def test_a_higher_target_never_certifies_a_looser_cut() -> None:
    rng = np.random.default_rng(6)
    scores = rng.choice([5.0, 4.0, 3.0, 2.0, 1.0], 300)
    truth = rng.random(300) < 0.45 + 0.1 * scores
    cuts = []
    for target in (0.4, 0.5, 0.6, 0.7, 0.8):
        found = certify(replace(by_hand((5.0, 4.0, 3.0, 2.0, 1.0)), target=target), scores, truth, rng=rng)
        cuts.append(found.cut if isinstance(found, Certified) else np.inf)
    assert cuts == sorted(cuts)
    assert len(set(cuts)) > 2


def test_order_and_direction_do_not_matter_to_a_certificate() -> None:
    scores = np.repeat([3.0, 2.0, 1.0], [30, 30, 40])
    truth = np.r_[np.arange(30) < 29, np.arange(30) < 26, np.arange(40) < 18]
    rng = np.random.default_rng(1)
    found = certify(by_hand((3.0, 2.0, 1.0)), scores, truth, rng=rng)
    order = rng.permutation(100)
    assert certify(by_hand((3.0, 2.0, 1.0)), scores[order], truth[order], rng=rng) == found
    below = replace(by_hand((-3.0, -2.0, -1.0)), flag_when="below")
    flipped = certify(below, -scores, truth, rng=rng)
    assert isinstance(found, Certified)
    assert isinstance(flipped, Certified)
    assert (flipped.cut, flipped.m, flipped.k) == (-found.cut, found.m, found.k)


def test_answers_that_share_sources_must_pass_by_rows_and_by_sources() -> None:
    scores, truth = np.full(60, 2.0), np.r_[np.ones(50), np.zeros(10)].astype(bool)
    plan = by_hand((2.0,))
    assert isinstance(certify(plan, scores, truth, rng=np.random.default_rng(0)), Certified)
    shared = ["one source"] * 45 + [None] * 15
    found = certify(plan, scores, truth, groups=shared, rng=np.random.default_rng(0))
    assert isinstance(found, NotCertifiable)
    step = found.walk[0]
    assert (step.labels, step.hallucinated, step.sources, step.first_hallucinated) == (60, 50, 16, 6)
    assert step.p_value == pytest.approx(max(binom.sf(49, 60, 0.7), binom.sf(5, 16, 0.7)))
    low = [binomtest(k, m, alternative="greater").proportion_ci(0.96).low for k, m in ((50, 60), (6, 16))]
    assert step.bound == pytest.approx(min(low))
    # The other way round: the sources pass, as one busy source that is mostly clean counts once.
    busy = ["busy"] * 30 + [None] * 60
    truth = np.r_[np.zeros(24), np.ones(6), np.ones(54), np.zeros(6)].astype(bool)
    found = certify(plan, np.full(90, 2.0), truth, groups=busy, rng=np.random.default_rng(0))
    assert isinstance(found, NotCertifiable)
    assert binom.sf(found.walk[0].first_hallucinated - 1, 61, 0.7) < 0.04  # type: ignore[operator]


@pytest.mark.parametrize(("busy", "low", "rest"), [(0.2, 0.3, 0.798), (0.3, 0.2, 0.88)])
def test_busy_sources_that_differ_from_the_rest_do_not_make_wrong_certificates(
    busy: float, low: float, rest: float
) -> None:
    """A fifth (or 30%) of the flagged traces come from four sources that are mostly false alarms."""
    rng, size, runs = np.random.default_rng(11), 5_000, 300
    shared = np.arange(size) < busy * size
    truth = rng.permutation(size) >= 0  # all true, then made exact: the truth is known to the trace
    truth[shared] = np.arange(shared.sum()) < round(low * shared.sum())
    truth[~shared] = np.arange((~shared).sum()) < round(rest * (~shared).sum())
    truth[shared], truth[~shared] = rng.permutation(truth[shared]), rng.permutation(truth[~shared])
    assert truth.mean() < 0.7
    groups = [f"source {i % 4}" if i < busy * size else None for i in range(size)]
    wrong = 0
    for _ in range(runs):
        rows = rng.choice(size, 180, replace=False)
        drawn = [groups[row] for row in rows]
        wrong += isinstance(certify(by_hand((2.0,)), np.full(180, 2.0), truth[rows], groups=drawn, rng=rng), Certified)
    assert wrong <= binom.isf(0.001, runs, 0.04)


def test_traffic_without_shared_sources_pays_nothing_for_the_second_walk() -> None:
    scores = np.repeat([3.0, 2.0, 1.0], [30, 30, 40])
    truth = np.r_[np.arange(30) < 29, np.arange(30) < 26, np.arange(40) < 18]
    plan = by_hand((3.0, 2.0, 1.0))
    alone = certify(plan, scores, truth, groups=[None] * 100, rng=np.random.default_rng(0))
    assert alone == certify(plan, scores, truth, rng=np.random.default_rng(0))
    assert all(step.sources == step.labels for step in alone.walk)


def test_a_failure_that_more_labels_would_mend_says_how_many_and_plans_them() -> None:
    plan = planned()
    # Unlucky labels at the strictest cut, too few to outweigh what stage A saw.
    found = certify(plan, np.full(25, plan.cuts[0]), np.arange(25) < 20, rng=np.random.default_rng(3))
    assert isinstance(found, NotCertifiable)
    assert found.needed is not None
    assert found.next is not None
    assert found.why.reason == ShortfallReason.MORE_LABELS
    assert found.next.labels == found.needed
    assert found.next.attempt == 2
    assert found.next.level == pytest.approx(0.008)
    assert found.next.chance >= 0.75


def test_a_detector_that_tells_nothing_is_out_of_reach() -> None:
    rng = np.random.default_rng(7)
    scores, pool = rng.standard_normal(400), rng.standard_normal(20_000)
    found = plan_certificate(scores, rng.random(400) < 0.1, None, pool, 0.7, budget=200, rng=rng)
    if isinstance(found, Plan):
        assert found.chance < 0.3
        rows = rng.choice(pool[pool >= found.deepest], found.labels)
        found = certify(found, rows, rng.random(len(rows)) < 0.1, rng=rng)
    assert isinstance(found, NotCertifiable)
    assert found.needed is None
    assert found.why.reason == ShortfallReason.OUT_OF_REACH
    assert found.why.best is not None
    assert (found.why.best.value or 1) < 0.5


def test_both_stages_together_certify_good_cuts_from_300_labels() -> None:
    runs, certified, wrong = 40, 0, 0
    for seed in range(runs):
        scores, truth, weights = labelled(seed, n=120)
        rng = np.random.default_rng(seed)
        plan = plan_certificate(scores, truth, weights, traffic(seed)[0], 0.7, budget=180, rng=rng)
        assert isinstance(plan, Plan)
        fresh, fresh_truth = traffic(1_000 + seed)
        rows = rng.choice(np.flatnonzero(fresh >= plan.deepest), plan.labels, replace=False)
        found = certify(plan, fresh[rows], fresh_truth[rows], rng=rng)
        if isinstance(found, Certified):
            certified += 1
            wrong += true_precision(found.cut) < 0.7
            assert found.bound >= 0.7
    assert certified >= 34
    assert wrong <= binom.isf(0.001, runs, 0.05)


def test_the_same_seed_gives_the_same_plan() -> None:
    first, second = planned(), planned()
    assert replace(first, evidence=None) == replace(second, evidence=None)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"target": 1.0}, "a precision of 1 cannot be certified"),
        ({"target": 0.0}, "cannot be certified"),
        ({"labels": np.zeros(40)}, "all 40 scored labels are clean"),
        ({"labels": np.ones(40)}, "all 40 scored labels are hallucinated"),
        ({"scores": np.array([1.0, 2, 3]), "labels": np.array([0, 1, 0])}, "3 scored labels are too few"),
        ({"scores": np.append(np.arange(39.0), np.inf)}, "1 scores are infinite"),
        ({"pool_scores": np.append(np.arange(39.0), np.inf)}, "1 scores are infinite"),
        ({"pool_scores": np.full(50, 2.0)}, "all 50 scores are 2: there is nothing to cut"),
        ({"pool_scores": np.full(50, np.nan)}, "no trace has a score"),
        ({"weights": np.zeros(40)}, "above 0"),
        ({"scores": np.arange(39.0)}, "40 labels and 39 scores"),
        ({"budget": 10}, "10 labels cannot certify anything"),
    ],
)
def test_bad_input_is_a_sentence(changed: dict[str, object], says: str) -> None:
    good: dict[str, object] = {
        "scores": np.arange(40.0),
        "labels": np.arange(40) % 2,
        "weights": None,
        "pool_scores": np.arange(400.0),
        "target": 0.7,
        "budget": 100,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises(BadInput, match=says):
        plan_certificate(**{**good, **changed})  # type: ignore[arg-type]


def test_labels_from_elsewhere_are_refused() -> None:
    with pytest.raises(BadInput, match="2 of the 3 labels are not flagged at 1"):
        certify(by_hand((2.0, 1.0)), [3.0, 0.5, np.nan], [1, 1, 1], rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="2 groups for 3 labels"):
        certify(by_hand((2.0, 1.0)), [3.0, 3.0, 3.0], [1, 1, 1], groups=["a", "b"], rng=np.random.default_rng(0))
