"""The sequential test against closed forms, quadrature and Ville's inequality."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from calibrate.errors import BadInput
from calibrate.stats.monitoring.confidence_sequence import confidence_sequence
from calibrate.stats.monitoring.eprocess import (
    STRENGTH,
    Path,
    first_decision,
    follow_labels,
    log_fell,
    log_holds,
    standing,
)

TARGET = 0.7


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("target", [0.5, 0.7, 0.9])
@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (3, 10), (28, 40), (5, 60), (60, 60)])
def test_the_wealth_is_the_mean_of_the_bets(k: int, n: int, target: float) -> None:
    prior = beta(STRENGTH * target, STRENGTH * (1 - target))
    below = prior.cdf(target)

    def bet(q: float) -> float:
        return float((q / target) ** k * ((1 - q) / (1 - target)) ** (n - k) * prior.pdf(q))

    assert np.exp(log_fell(k, n, target)) == pytest.approx(quad(bet, 0, target, epsabs=0)[0] / below, rel=1e-6)
    assert np.exp(log_holds(k, n, target)) == pytest.approx(quad(bet, target, 1, epsabs=0)[0] / (1 - below), rel=1e-6)


def test_each_label_is_a_fair_bet_at_the_target_and_a_losing_one_beyond() -> None:
    for n in (0, 1, 7, 40):
        k = np.arange(n + 1)
        for of, beyond in ((log_fell, 0.85), (log_holds, 0.5)):
            now, hit, miss = (np.exp(of(*at, TARGET)) for at in ((k, n), (k + 1, n + 1), (k, n + 1)))
            np.testing.assert_allclose(TARGET * hit + (1 - TARGET) * miss, now, rtol=1e-9)
            assert np.all(beyond * hit + (1 - beyond) * miss < now)


def test_far_from_the_target_the_wealth_stays_finite_and_too_small_at_most() -> None:
    k = np.array([5000, 20_000])
    found = log_fell(k, k, TARGET)  # all hallucinated: the beta ratio has no room in a float
    assert np.all(np.isfinite(found))
    assert np.all(found < 0)
    # The bets near the target: density there times target / n, less what bends.
    prior = beta(STRENGTH * TARGET, STRENGTH * (1 - TARGET))
    about = np.log(prior.pdf(TARGET) / prior.cdf(TARGET) * TARGET / k)
    assert np.all(found <= about + 0.01)
    assert np.all(found >= about - 1.3)


def test_at_the_target_either_alarm_is_false_in_at_most_one_of_twenty_however_often_one_looks() -> None:
    k = np.cumsum(rng(1).random((1500, 400)) < TARGET, axis=1)
    n = np.arange(1, 401)
    for of in (log_fell, log_holds):
        ever = np.mean((of(k, n, TARGET) >= np.log(20)).any(axis=1))
        assert ever <= 0.05
        assert ever > 0.01


def test_labels_to_a_decision_are_those_promised() -> None:
    n = np.arange(1, 701)
    for precision, of, most in ((0.5, log_fell, 40), (0.6, log_fell, 160), (0.8, log_holds, 120), (0.9, log_holds, 27)):
        k = np.cumsum(rng(2).random((600, 700)) < precision, axis=1)
        over = of(k, n, TARGET) >= np.log(20)
        took = np.where(over.any(1), over.argmax(1) + 1, 701)
        assert np.median(took) <= most * 1.1  # the exact medians: `simulate --drift`


def test_the_confidence_sequence_covers_at_all_times_at_once() -> None:
    n = np.arange(1, 301)
    for precision in (0.1, 0.7):
        k = np.cumsum(rng(3).random((400, 300)) < precision, axis=1)
        low, high = confidence_sequence(k, np.broadcast_to(n, k.shape), alpha=0.05)
        assert np.mean(((low > precision) | (high < precision)).any(axis=1)) <= 0.05
        assert np.all(low <= k / n + 1e-9)
        assert np.all(high >= k / n - 1e-9)
    low, high = confidence_sequence([0, 0, 10], [0, 10, 10], alpha=0.05)
    assert (low[0], high[0], low[1], high[2]) == (0, 1, 0, 1)
    # All of 10 hallucinated: q^10 B(1, 1) = .05 B(11, 1), so q = (.05 / 11)^(1/10).
    assert low[2] == pytest.approx((0.05 / 11) ** 0.1)


def test_unsure_labels_count_against_both_decisions_and_in_no_estimate() -> None:
    path = follow_labels([True, None, False, None], TARGET)
    np.testing.assert_allclose(path.holds, log_holds([1, 1, 1, 1], [1, 2, 3, 4], TARGET))
    np.testing.assert_allclose(path.fell, log_fell([1, 2, 2, 3], [1, 2, 3, 4], TARGET))
    np.testing.assert_allclose(path.estimate, [1, 1, 0.5, 0.5])
    assert np.isnan(follow_labels([None], TARGET).low[0])


def test_the_first_decision_counts() -> None:
    up, down = np.array([0.0, 3.1, 0.0]), np.array([0.0, 0.0, 9.0])
    nothing = np.zeros(3)
    assert first_decision(Path(up, up, down, nothing, nothing, nothing)) == ("holds", 2)
    assert first_decision(Path(*[nothing] * 6)) == ("go on", 3)
    assert first_decision(follow_labels([], TARGET)) == ("go on", 0)
    at = standing([False] * 30, TARGET, rng=rng())
    assert (at.decision, at.more) == ("fell below", 0)
    assert at.labels < 10
    assert at.estimate.value == 0.0


def test_holds_takes_both_counts_and_fell_below_the_traces_alone() -> None:
    labels, repeats = [True] * 12 + [False] * 3, [False, *[True] * 9, *[False] * 5]
    path = follow_labels(labels, TARGET, repeats=repeats)
    np.testing.assert_allclose(path.rows, follow_labels(labels, TARGET).holds)
    np.testing.assert_allclose(path.sources[-1], log_holds(3, 6, TARGET))
    np.testing.assert_allclose(path.holds, np.minimum(path.rows, path.sources))
    np.testing.assert_allclose(path.fell, follow_labels(labels, TARGET).fell)
    at = standing(labels, TARGET, repeats=repeats, rng=rng())
    assert (at.labels, at.hallucinated, at.sources, at.hallucinated_sources) == (15, 12, 6, 3)
    alone = follow_labels(labels, TARGET, repeats=[False] * 15)
    np.testing.assert_array_equal(alone.rows, alone.sources)


@pytest.mark.parametrize(
    ("busy", "bad", "rest"),
    [(0.2, 0.3, 0.8), (0.3, 0.2, 0.88), (0.3, 0.9, 0.62)],
)
def test_busy_sources_that_differ_make_no_wrong_decision(busy: float, bad: float, rest: float) -> None:
    """A share of what is flagged is of four sources of another precision; the truth is that of the drawn traffic."""
    drawn, flagged, runs = rng(11), 1200, 100
    n = round(busy * flagged)
    groups = np.concatenate([np.arange(n) % 4, 4 + np.arange(flagged - n)])
    wrong, alone = 0, 0
    for _ in range(runs):
        verdicts = drawn.random(flagged) < np.where(groups < 4, bad, rest)
        order = drawn.permutation(flagged)[:400]
        first = np.zeros(400, dtype=bool)
        first[np.unique(groups[order], return_index=True)[1]] = True
        right = {"holds": verdicts.mean() > TARGET, "fell below": verdicts.mean() < TARGET, "go on": True}
        path = follow_labels(verdicts[order].tolist(), TARGET, repeats=(~first).tolist())
        wrong += not right[first_decision(path)[0]]
        # What the first of each source says alone, as if there were no others.
        alone += not right[first_decision(follow_labels(verdicts[order][first].tolist(), TARGET))[0]]
    assert wrong / runs <= 0.05
    assert alone / runs > 0.2


def test_more_labels_are_forecast_as_they_turn_out() -> None:
    labels = [True] * 9 + [False]
    at = standing(labels, TARGET, rng=rng())
    assert (at.decision, at.hallucinated, at.labels) == ("go on", 9, 10)
    # By hand: precisions from the same posterior, labels one by one.
    drawn, took = rng(5), []
    for _ in range(300):
        p = drawn.beta(9.5, 1.5)
        k = 9 + np.cumsum(drawn.random(600) < p)
        n = 10 + np.arange(1, 601)
        over = np.maximum(log_holds(k, n, TARGET), log_fell(k, n, TARGET)) >= np.log(20)
        took.append(over.argmax() + 1 if over.any() else 601)
    assert at.more is not None
    assert np.median(took) * 0.6 <= at.more <= np.median(took) * 1.6
    near = standing([place % 10 < 7 for place in range(2000)], TARGET, rng=rng())
    assert near.decision == "go on"
    assert near.more is None  # at the target itself no number of labels decides
    first = standing([], TARGET, rng=rng())
    assert (first.labels, first.estimate.value, first.log_fell) == (0, None, 0.0)


@pytest.mark.parametrize("bad", [0.0, 1.0, 1.4])
def test_a_target_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(BadInput, match="target"):
        follow_labels([True], bad)
    with pytest.raises(BadInput, match="alpha"):
        follow_labels([True], 0.7, alpha=bad)
