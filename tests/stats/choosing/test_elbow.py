"""How steady an elbow is, against elbows chosen on resampled labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from calibrate.report.sentences.tuning import figures
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.elbow import Elbow, ElbowDoubt, Spread, elbow_gain, elbow_spread
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.fitting.smoothed_curve import smooth_sweep
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.2
    return labels, np.where(labels, rng.normal(1.5, 1.0, n), rng.normal(0.0, 1.0, n))


def test_the_quartiles_are_those_of_elbows_chosen_on_resampled_labels() -> None:
    labels, scores = drawn(300, 1)
    found = elbow_spread(labels, scores, rng=np.random.default_rng(2))
    rng = np.random.default_rng(3)
    picks = (rng.integers(0, 300, 300) for _ in range(200))
    chosen = [choose(sweep(labels[rows], scores[rows]), Policy("elbow")).threshold for rows in picks]
    assert found is not None
    assert (found.low, found.median, found.high) == pytest.approx(np.quantile(chosen, (0.25, 0.5, 0.75)), abs=0.08)


def test_more_labels_make_it_steadier_and_the_same_seed_the_same() -> None:
    few, many = (
        elbow_spread(*drawn(n, 1), rng=np.random.default_rng(2)) for n in (150, 2400)
    )  # four standard deviations less
    assert few is not None
    assert many is not None
    assert many.high - many.low < 0.6 * (few.high - few.low)
    assert many == elbow_spread(*drawn(2400, 1), rng=np.random.default_rng(2))


def test_flipping_the_side_mirrors_it() -> None:
    labels, scores = drawn(200, 4)
    above = elbow_spread(labels, scores, rng=np.random.default_rng(0))
    below = elbow_spread(labels, -scores, rng=np.random.default_rng(0), flag_when="below")
    assert above is not None
    assert below is not None
    assert (-below.high, -below.median, -below.low) == pytest.approx((above.low, above.median, above.high))


def test_one_positive_is_in_too_few_resamples_to_tell() -> None:
    labels = np.arange(30) == 0
    assert elbow_spread(np.zeros(30, dtype=bool), np.arange(30.0), rng=np.random.default_rng(0)) is None
    nothing = Elbow(None, 0.3, 0.2, Interval(0.1, 0.05, 0.15), 0.1)
    assert figures.elbow(nothing)[0].startswith("How steady the elbow is is unknown")
    steady = figures.elbow(replace(nothing, spread=Spread(-0.5, 0.1, 0.51)))
    assert steady == ["Were as many labels drawn again, half of the elbows would lie from −0.5 to 0.51."]
    assert elbow_spread(labels, np.arange(30.0), rng=np.random.default_rng(0)) is not None  # in 64% of them


def gain_of(labels: np.ndarray, scores: np.ndarray, cut: float) -> tuple[float | None, float | None]:
    return elbow_gain(labels, scores, cut=cut, rng=np.random.default_rng(7))


def test_the_gain_is_that_of_labels_drawn_again() -> None:
    labels, scores = drawn(300, 1)
    rng, gains = np.random.default_rng(5), []
    for _ in range(1000):
        rows = rng.integers(0, 300, 300)
        hit, flagged, bad = (int(np.sum(each[rows])) for each in (labels & (scores >= 1.0), scores >= 1.0, labels))
        gains.append(2 * hit / (flagged + bad) - 2 * bad / (300 + bad))
    assert gain_of(labels, scores, 1.0) == pytest.approx(np.quantile(gains, (0.025, 0.975)), abs=0.02)
    assert gain_of(labels, -scores, 1.0) != gain_of(labels, scores, 1.0)


def test_an_elbow_that_is_no_better_than_flagging_everything_is_doubted() -> None:
    """Scores that know nothing are doubted, whatever the elbow; those of a fair detector hardly ever."""
    doubted = {0.0: 0, 1.5: 0}
    for shift in doubted:
        for seed in range(25):
            rng = np.random.default_rng(seed)
            labels = rng.random(300) < 0.25
            scores = rng.normal(size=300) + shift * labels
            ours = sweep(labels, scores)
            cut = choose(ours, Policy("elbow")).threshold
            low, high = gain_of(labels, scores, cut)
            flagged = float(np.mean(scores >= cut))
            doubted[shift] += bool(Elbow(None, 0.0, 0.0, Interval(0.0, low, high), flagged).doubts)
    assert doubted[0.0] >= 24
    assert doubted[1.5] == 0


def test_what_is_doubted_is_said() -> None:
    weak = Elbow(None, 0.376, 0.376, Interval(0.0, -0.01, 0.02), 0.97)
    assert weak.doubts == (ElbowDoubt.NO_BETTER, ElbowDoubt.FLAGS_MOST)
    _, better, most = figures.elbow(weak)
    assert "an F1 of 0.376 against 0.376 (difference 0, 95% −0.010 to +0.020)" in better
    assert most.startswith("It flags 97% of traffic")
    assert Elbow(None, 0.5, 0.3, Interval(0.2, None, None), 0.2).doubts == (ElbowDoubt.NO_BETTER,)


def test_the_smoothed_curve_is_scikit_learns_ridge_logistic() -> None:
    labels, scores = drawn(300, 4)
    curve = sweep(labels, scores)
    z = (scores - scores.mean()) / scores.std()
    features = np.column_stack([z, np.maximum(z, 0) ** 2 / 2])
    theirs = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(features, labels)
    expected = theirs.predict_proba(features)[np.argsort(-scores), 1]
    assert smooth_sweep(curve).probability == pytest.approx(expected, abs=1e-5)
