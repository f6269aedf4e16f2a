"""Gains against scikit-learn's figures, and against a bootstrap written out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_auc_score

from calibrate.errors import BadInput
from calibrate.stats.aligning.gain import Gained, measure_gain
from calibrate.types import FlagWhen


def draw(rng: np.random.Generator, n: int, better: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = rng.random(n) < 0.35
    return y, y + rng.normal(size=n) * 1.2, y * (1 + better) + rng.normal(size=n) * 1.2


@pytest.mark.parametrize("flag_when", ["above", "below"])
@pytest.mark.parametrize("recall", [0.3, 0.5, 0.8, 1.0])
def test_figures_are_those_of_scikit_learn(flag_when: FlagWhen, recall: float) -> None:
    rng = np.random.default_rng(7)
    y, first, second = draw(rng, 200, 0.7)
    first, second = first.round(1), second.round(1)  # with ties
    weights = rng.uniform(1, 4, len(y))
    sign = 1 if flag_when == "above" else -1
    gain = measure_gain(y, sign * first, sign * second, recall=recall, rng=rng, flag_when=flag_when, weights=weights)
    areas = [roc_auc_score(y, scores, sample_weight=weights) for scores in (first, second)]
    assert gain.ranking.auroc.value == pytest.approx(areas[1] - areas[0])
    for scores, ours in ((first, gain.precision.first), (second, gain.precision.second)):
        precisions, recalls, _ = precision_recall_curve(y, scores, sample_weight=weights)
        place = np.flatnonzero(recalls >= recall - 1e-9)[-1]  # recall falls along the curve: the strictest that reaches
        assert ours == pytest.approx(precisions[place])


def test_the_interval_is_that_of_a_bootstrap_over_groups() -> None:
    """Half of its width against one that draws groups with replacement and counts in plain Python."""
    rng = np.random.default_rng(3)
    y, first, second = draw(rng, 240, 0.6)
    groups = [f"g{i // 3}" for i in range(len(y))]
    gain = measure_gain(y, first, second, recall=0.6, rng=rng, groups=groups)
    differences = []
    for _ in range(1500):
        rows = (np.repeat(rng.integers(0, 80, 80) * 3, 3).reshape(80, 3) + np.arange(3)).ravel()
        values = []
        for scores in (first, second):
            order = rows[np.argsort(-scores[rows])]
            hits = np.cumsum(y[order])
            place = np.searchsorted(hits, 0.6 * hits[-1] - 1e-9)
            values.append(hits[place] / (place + 1))
        differences.append(values[1] - values[0])
    low, high = np.quantile(differences, [0.025, 0.975])
    interval = gain.precision.interval
    assert interval.low is not None
    assert interval.high is not None
    assert interval.high - interval.low == pytest.approx(high - low, rel=0.15)
    assert gain.precision.together.low is not None
    assert gain.precision.together.low <= interval.low


def test_the_same_scores_gain_nothing() -> None:
    rng = np.random.default_rng(1)
    y, first, _ = draw(rng, 100, 0.0)
    gain = measure_gain(y, first, first, recall=0.5, rng=rng)
    assert gain.verdict == Gained.OPEN
    assert gain.ranking.auroc.value == gain.precision.interval.value == 0


def test_a_clear_gain_shows_either_way_and_more_looks_ask_for_more() -> None:
    rng = np.random.default_rng(2)
    y, first, second = draw(rng, 300, 2.0)
    assert measure_gain(y, first, second, recall=0.7, rng=rng).verdict == Gained.BETTER
    assert measure_gain(y, second, first, recall=0.7, rng=rng).verdict == Gained.WORSE
    single, tenth = (measure_gain(y, first, second, recall=0.7, rng=rng, looks=looks) for looks in (1, 10))
    assert (tenth.ranking.auroc_together.low or 0) < (single.ranking.auroc_together.low or 0)


def test_few_labels_and_bad_input() -> None:
    rng = np.random.default_rng(0)
    gain = measure_gain([True, False], [0.1, 0.2], [0.2, 0.1], recall=0.5, rng=rng)
    assert gain.ranking.missing is not None
    assert gain.verdict == Gained.OPEN
    with pytest.raises(BadInput, match="recall"):
        measure_gain([True, False], [0.1, 0.2], [0.2, 0.1], recall=0.0, rng=rng)


def test_what_ranks_alike_differs_by_zero() -> None:
    """Swapping answers above every threshold changes the order of a sum, never a figure."""
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.4
    first = y + rng.normal(0, 0.1, 60)
    first[~y] = rng.random((~y).sum()) * 1.05
    top = np.flatnonzero(y)[np.argsort(-first[y])[:6]]
    first[top] += 2
    second = first.copy()
    second[top] = first[top][::-1]
    gain = measure_gain(y, first, second, recall=0.7, rng=np.random.default_rng(1), weights=rng.random(60))
    for interval in (gain.ranking.auroc, gain.ranking.auroc_together, gain.precision.interval):
        assert {interval.value, interval.low, interval.high} == {0}
    assert gain.verdict is Gained.OPEN
