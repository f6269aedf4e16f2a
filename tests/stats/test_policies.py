"""The rule that chooses a threshold, and what is said of the choice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from calibrate.errors import BadInput
from calibrate.stats import smooth
from calibrate.stats.policies import NotEnoughLabels, Policy, choose, parse
from calibrate.stats.smooth import expit, ridge_logistic, smoothed
from calibrate.stats.sweep import Sweep, sweep


def made_up(seed: int, n: int = 300, *, prevalence: float = 0.15, shift: float = 1.5) -> Sweep:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < prevalence
    labels[:2] = [True, False]
    return sweep(labels, (rng.normal(size=n) + shift * labels).round(2))


@pytest.mark.parametrize(
    ("text", "policy", "canonical"),
    [
        ("precision>=0.7", Policy("precision", 0.7), "precision>=0.7"),
        (" Precision >= .70 ", Policy("precision", 0.7), "precision>=0.7"),
        ("precision>=1", Policy("precision", 1.0), "precision>=1"),
        ("elbow", Policy("elbow"), "elbow"),
        ("manual", Policy("manual"), "manual"),
        ("manual:-2.5e-1", Policy("manual", -0.25), "manual:-0.25"),
    ],
)
def test_policies_are_read_and_written(text: str, policy: Policy, canonical: str) -> None:
    assert parse(text) == policy
    assert str(policy) == canonical
    assert parse(str(policy)) == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write one of"),
        ("recall>=0.7", "write one of"),
        ("precision>0.7", "write one of"),
        ("precision>=", "is no number"),
        ("precision>=high", "is no number"),
        ("precision>=nan", "is no number"),
        ("precision>=0", "above 0 and at most 1"),
        ("precision>=-0.2", "above 0 and at most 1"),
        ("precision>=70", "write precision>=0.7 for 70%"),
        ("manual:inf", "is no number"),
    ],
)
def test_other_policies_are_a_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse(text)


@pytest.mark.parametrize("target", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_precision_takes_most_recall_by_brute_force(seed: int, target: float) -> None:
    ours = made_up(seed)
    point = choose(ours, Policy("precision", target), detector="d")
    reach = [i for i in range(len(ours)) if ours.tp_count[i] / (ours.tp_count[i] + ours.fp_count[i]) >= target]
    assert point.feasible == bool(reach)
    if reach:
        # Most recall; of equals the strictest, which is the first.
        best = max(reach, key=lambda i: (ours.tp_count[i], -i))
        assert point.threshold == ours.thresholds[best]
        assert point.precision.value >= target - 1e-12  # type: ignore[operator]
    assert point.true_positives + point.false_negatives == ours.positives
    assert point.detector == "d"


def test_a_target_met_exactly_is_met_in_weights_too() -> None:
    point = choose(
        sweep([1] * 7 + [0] * 13, [1.0] * 7 + [1.0] * 3 + [0.0] * 10, weights=[0.1] * 20), Policy("precision", 0.7)
    )
    assert point.feasible
    assert point.threshold == 1.0


def test_ties_of_recall_take_the_stricter_threshold() -> None:
    assert choose(sweep([1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0]), Policy("precision", 0.4)).threshold == 3.0
    below = sweep([1, 1, 0, 0], [1.0, 2.0, 3.0, 4.0], flag_when="below")
    assert choose(below, Policy("precision", 0.4)).threshold == 2.0


def test_a_target_that_nothing_reaches_gives_the_nearest_and_says_so() -> None:
    # 11 of 19 flagged is the best there is.
    labels = np.repeat([1, 0, 1, 0], [11, 8, 4, 77])
    scores = np.repeat([0.31, 0.31, 0.1, 0.1], [11, 8, 4, 77])
    point = choose(sweep(labels, scores), parse("precision>=0.7"), detector="d")
    assert (point.feasible, point.threshold) == (False, 0.31)
    assert point.why == "no threshold reaches precision 0.70; the best is 0.58 at 0.31 (19 labels flagged)"
    assert point.precision.low is not None


def test_a_near_miss_does_not_read_like_a_hit() -> None:
    labels, scores = np.repeat([1, 0, 0, 1], [697, 303, 50, 2]), np.repeat([2.0, 2.0, 1.0, 1.0], [697, 303, 50, 2])
    point = choose(sweep(labels, scores), Policy("precision", 0.7))
    assert "reaches precision 0.70; the best is 0.697 at" in (point.why or "")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 1), st.floats(0.05, 1))
def test_the_threshold_is_monotone_in_the_target(seed: int, one: float, other: float) -> None:
    ours = made_up(seed, 80, shift=0.7)
    loose, strict = (choose(ours, Policy("precision", target)) for target in sorted((one, other)))
    assert strict.threshold >= loose.threshold
    assert loose.feasible >= strict.feasible


@pytest.mark.parametrize("policy", ["precision>=0.7", "elbow"])
@pytest.mark.parametrize(
    ("labels", "scores", "says"),
    [
        ([], [], "no labels"),
        ([0, 0, 0], [1.0, 2.0, 3.0], "d: all 3 labels are clean: label some hallucinated traces"),
        ([1, 1], [1.0, 2.0], "all 2 labels are hallucinated"),
        ([1, 0], [np.nan, np.nan], "has a score"),
    ],
)
def test_labels_that_cannot_choose_are_refused_with_a_remedy(
    policy: str, labels: list[int], scores: list[float], says: str
) -> None:
    with pytest.raises(NotEnoughLabels, match=says):
        choose(sweep(np.array(labels, dtype=int), np.array(scores)), parse(policy), detector="d")


def test_manual_takes_any_threshold_and_measures_it() -> None:
    ours = sweep([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    point = choose(ours, parse("manual:2.5"))
    assert (point.threshold, point.true_positives, point.false_positives) == (2.5, 1, 1)
    assert point.policy == "manual:2.5"
    assert choose(ours, parse("manual"), threshold=2.5) == point
    assert choose(ours, parse("manual:9")).precision.value is None
    with pytest.raises(BadInput, match=r"write manual:0\.42"):
        choose(ours, parse("manual"))


def test_manual_on_one_class_says_what_is_not_known() -> None:
    point = choose(sweep([0, 0], [1.0, 2.0]), parse("manual:1.5"))
    assert point.recall.value is None
    assert point.why is not None
    assert point.why.startswith("all 2 labels are clean")


@pytest.mark.parametrize("c", [0.3, 1.0, 100.0])
def test_the_logistic_equals_scikit_learn(c: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 2))
    y, w = rng.random(200) < 1 / (1 + np.exp(1 - x[:, 0])), rng.uniform(0.2, 3, 200)
    theirs = LogisticRegression(C=c, tol=1e-10, max_iter=5_000).fit(x, y, sample_weight=w).predict_proba(x)[:, 1]
    ours = ridge_logistic(x, w * y, w, c=c)
    assert_allclose(expit(ours[0] + x @ ours[1:]), theirs, atol=1e-6)


def test_fitting_cells_is_fitting_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    labels = rng.random(30_000) < 0.1
    ours = sweep(labels, rng.normal(size=30_000) + labels, weights=rng.uniform(1, 5, 30_000))
    assert len(ours) > smooth.CELLS
    cells = smoothed(ours)
    monkeypatch.setattr(smooth, "CELLS", 10**9)
    assert_allclose(cells.probability, smoothed(ours).probability, rtol=2e-3)


def test_the_logistic_survives_separation_and_wild_scores() -> None:
    separated = smoothed(sweep([0] * 50 + [1] * 5, np.arange(55.0)))
    assert np.all(np.isfinite(separated.f1))
    assert choose(sweep([0] * 50 + [1] * 5, np.arange(55.0)), Policy("elbow")).threshold == pytest.approx(50, abs=2)
    outlier = np.append(np.random.default_rng(0).normal(size=400), 1e6)
    assert np.all(np.isfinite(smoothed(sweep(np.arange(401) % 5 == 0, outlier)).f1))
    assert len(smoothed(sweep([0, 1, 1], [2.0, 2.0, 2.0])).f1) == 1


def test_the_elbow_is_near_the_true_maximum_and_steadier_than_raw_f1() -> None:
    # Two normal scores 1.5 apart at 15%: the best F1 of the true curve, on a fine grid.
    from scipy.stats import norm

    grid = np.linspace(-3, 5, 4_001)
    tp, fp = 0.15 * norm.sf(grid - 1.5), 0.85 * norm.sf(grid)
    best = grid[np.argmax(2 * tp / (tp + fp + 0.15))]
    elbows, raw = [], []
    for seed in range(60):
        ours = made_up(seed)
        elbows.append(choose(ours, Policy("elbow")).threshold)
        raw.append(ours.thresholds[np.argmax(2 * ours.tp / (ours.tp + ours.fp + ours.positives))])
    assert np.mean(elbows) == pytest.approx(best, abs=0.1)
    assert np.std(elbows) < 0.6 * np.std(raw)


@pytest.mark.parametrize("policy", ["elbow", "precision>=0.5"])
def test_the_sign_of_the_scores_does_not_matter(policy: str) -> None:
    rng = np.random.default_rng(11)
    labels = rng.random(200) < 0.2
    scores = rng.normal(size=200) + labels
    above = choose(sweep(labels, scores), parse(policy))
    below = choose(sweep(labels, -scores, flag_when="below"), parse(policy))
    assert above.threshold == -below.threshold
    assert (above.precision, above.recall) == (below.precision, below.recall)


def test_every_trace_twice_at_half_weight_chooses_the_same() -> None:
    rng = np.random.default_rng(12)
    labels = rng.random(150) < 0.2
    scores = rng.normal(size=150) + labels
    once = sweep(labels, scores, weights=np.ones(150))
    twice = sweep(np.tile(labels, 2), np.tile(scores, 2), weights=np.full(300, 0.5))
    assert choose(once, parse("precision>=0.5")).threshold == choose(twice, parse("precision>=0.5")).threshold
