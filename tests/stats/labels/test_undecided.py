"""What undecided labels could change, against scikit-learn on every way to settle them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from calibrate.errors import BadInput
from calibrate.stats.labels.undecided import Reach, settle, settle_recall
from calibrate.stats.sweep.design import Bools, Floats

EACH = ("prevalence", "precision", "recall")


def every_settlement(labels: Bools, undecided: Bools, flagged: Bools, w: Floats) -> Iterator[tuple[float, ...]]:
    """(prevalence, precision, recall), NaN where not defined, with all 2^k ways to settle k labels."""
    for verdicts in product((False, True), repeat=int(undecided.sum())):
        y = labels.copy()
        y[undecided] = verdicts
        measured = (
            score(y, flagged, sample_weight=w, zero_division=np.nan) for score in (precision_score, recall_score)
        )
        yield (np.average(y, weights=w), *measured)


@pytest.mark.parametrize("seed", range(25))
def test_bounds_are_those_of_trying_every_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    labels, undecided, flagged = rng.random(n) < 0.4, rng.random(n) < 0.4, rng.random(n) < rng.choice([0.0, 0.4, 1.0])
    weights = rng.choice([0.5, 1.0, 7.0], n)
    result = settle(labels, undecided, flagged=flagged, weights=weights)
    assert (result.undecided, result.flagged) == (undecided.sum(), (undecided & flagged).sum())
    for name, values in zip(
        EACH, zip(*every_settlement(labels, undecided, flagged, weights), strict=True), strict=True
    ):
        defined = [value for value in values if not np.isnan(value)]
        reach = getattr(result, name)
        assert (reach is None) == (not defined)
        if reach is not None:
            assert (reach.low, reach.high) == pytest.approx((min(defined), max(defined)), abs=1e-12)


def test_nineteen_disputes_of_eighty_are_no_small_thing() -> None:
    """Gold alone called 18 of 80 hallucinated; leaving the disputes out said 3 of 61."""
    labels = np.arange(80) < 3
    result = settle(labels, np.arange(80) >= 61)
    assert result.prevalence == Reach(pytest.approx(3 / 80), pytest.approx(22 / 80))
    assert result.prevalence.low < 18 / 80 < result.prevalence.high


def test_labels_that_are_all_decided_change_nothing() -> None:
    result = settle([True, False, False], [False] * 3, flagged=[True, True, False])
    assert (result.precision, result.recall) == (Reach(0.5, 0.5), Reach(1.0, 1.0))


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="2 labels, 1 marks"):
        settle([True, False], [False])


@pytest.mark.parametrize("seed", range(5))
def test_the_recall_along_thresholds_is_that_of_each_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, undecided = rng.random(60) < 0.3, rng.random(60) < 0.2
    scores = np.where(rng.random(60) < 0.1, np.nan, rng.integers(0, 20, 60) / 10)
    weights, at = rng.random(60) + 0.5, np.array([-1.0, 0.0, 0.35, 0.7, 1.9, 5.0])
    low, high = settle_recall(labels, undecided, scores, at, weights=weights)
    for place, threshold in enumerate(at):
        single = settle(labels, undecided, flagged=scores >= threshold, weights=weights).recall
        assert single is not None
        assert (low[place], high[place]) == pytest.approx((single.low, single.high))


def test_the_recall_along_thresholds_is_unknown_without_any_that_could_be_hallucinated() -> None:
    low, high = settle_recall([False, False], [False, False], [0.1, 0.2], [0.0])
    assert np.isnan(low).all()
    assert np.isnan(high).all()
