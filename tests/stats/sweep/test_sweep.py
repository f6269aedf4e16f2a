"""The sweep against scikit-learn, and the properties that hold for any labels and scores."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from calibrate.errors import BadInput
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import Missing, Sweep, sweep

SHARED = Path(__file__).parents[4] / "shared" / "data" / "ragtruth_qa.jsonl.gz"
RATES = ("precision", "recall", "recall_scored", "fpr", "flag_rate")


def made_up(seed: int, n: int = 300, *, decimals: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores with many ties, and weights between 0.5 and 20."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.2
    scores = (rng.normal(size=n) + labels).round(decimals)
    return labels, scores, rng.uniform(0.5, 20, size=n)


@st.composite
def rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both classes, ties, missing scores, weights."""
    row = st.tuples(
        st.booleans(),
        st.one_of(st.just(float("nan")), st.integers(-3, 3).map(float), st.floats(-1e3, 1e3)),
        st.integers(1, 40).map(lambda w: w / 4),
    )
    body = draw(st.lists(row, min_size=1, max_size=30))
    body += [(True, 1.0, 1.0), (False, 0.0, 2.0)]
    labels, scores, weights = zip(*body, strict=True)
    return np.array(labels), np.array(scores), np.array(weights)


def assert_same(one: Sweep, other: Sweep, *, but: tuple[str, ...] = ()) -> None:
    for name in ("thresholds", *RATES):
        if name not in but:
            assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, err_msg=name)
    for name in ("prevalence", "coverage", "auroc", "average_precision"):
        if name not in but:
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-11), name


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_equals_scikit_learn_with_weights_and_ties(seed: int, weighted: bool) -> None:
    labels, scores, w = made_up(seed)
    weights = w if weighted else None
    ours = sweep(labels, scores, weights=weights)
    precision, recall, thresholds = precision_recall_curve(labels, scores, sample_weight=weights)
    assert_array_equal(ours.thresholds[::-1], thresholds)
    assert_allclose(ours.precision[::-1], precision[:-1], rtol=1e-12)
    assert_allclose(ours.recall[::-1], recall[:-1], rtol=1e-12)
    fpr, tpr, cuts = roc_curve(labels, scores, sample_weight=weights, drop_intermediate=False)
    assert_array_equal(ours.thresholds, cuts[1:])
    assert_allclose(ours.fpr, fpr[1:], rtol=1e-11)
    assert_allclose(ours.recall, tpr[1:], rtol=1e-11)
    assert ours.auroc == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights), abs=1e-9)
    expected = average_precision_score(labels, scores, sample_weight=weights)
    assert ours.average_precision == pytest.approx(expected, abs=1e-9)


def test_counts_by_hand() -> None:
    ours = sweep([1, 0, 1, 0, 1, 0], [0.9, 0.9, 0.5, 0.2, np.nan, np.nan])
    assert_array_equal(ours.thresholds, [0.9, 0.5, 0.2])
    assert_array_equal(ours.tp_count, [1, 2, 2])
    assert_array_equal(ours.fp_count, [1, 1, 2])
    assert_allclose(ours.recall, [1 / 3, 2 / 3, 2 / 3])
    assert_allclose(ours.recall_scored, [1 / 2, 1, 1])
    assert_allclose(ours.fpr, [1 / 3, 1 / 3, 2 / 3])
    assert_allclose(ours.flag_rate, [2 / 6, 3 / 6, 4 / 6])
    assert (ours.n, ours.positives, ours.scored, ours.coverage) == (6, 3, 4, pytest.approx(4 / 6))


@given(rows(), st.randoms(use_true_random=False))
def test_permuting_changes_nothing(data: tuple[np.ndarray, ...], random: object) -> None:
    labels, scores, weights = data
    order = list(range(len(labels)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert_same(sweep(labels, scores, weights=weights), sweep(labels[order], scores[order], weights=weights[order]))
    assert_same(sweep(labels, scores), sweep(labels[order], scores[order]))


@given(rows())
def test_every_trace_twice_at_half_weight_changes_nothing(data: tuple[np.ndarray, ...]) -> None:
    labels, scores, weights = data
    twice = sweep(np.tile(labels, 2), np.tile(scores, 2), weights=np.tile(weights / 2, 2))
    assert_same(sweep(labels, scores, weights=weights), twice)


@given(rows())
def test_equal_weights_are_no_weights(data: tuple[np.ndarray, ...]) -> None:
    labels, scores, _ = data
    assert_same(sweep(labels, scores), sweep(labels, scores, weights=np.full(len(labels), 7.0)))


@given(rows(), st.booleans())
def test_an_abstaining_trace_moves_only_what_is_end_to_end(data: tuple[np.ndarray, ...], verdict: bool) -> None:
    labels, scores, weights = data
    one = sweep(labels, scores, weights=weights)
    more = sweep(np.append(labels, verdict), np.append(scores, np.nan), weights=np.append(weights, 1.0))
    assert_same(one, more, but=("recall", "fpr", "flag_rate", "prevalence", "coverage"))
    assert more.coverage is not None
    assert one.coverage is not None
    assert more.coverage < one.coverage
    if not verdict:
        assert_allclose(one.recall, more.recall, rtol=1e-12)


@given(rows())
def test_flag_when_and_the_sign_of_the_scores_cancel(data: tuple[np.ndarray, ...]) -> None:
    labels, scores, weights = data
    above = sweep(labels, scores, weights=weights, flag_when="above")
    below = sweep(labels, -scores, weights=weights, flag_when="below")
    assert_array_equal(above.thresholds, -below.thresholds)
    assert_same(above, below, but=("thresholds",))


@given(rows(), st.floats(-2e3, 2e3), st.sampled_from(["above", "below"]))
def test_at_any_threshold_flags_what_a_runtime_would(data: tuple[np.ndarray, ...], threshold: float, when: str) -> None:
    labels, scores, _ = data
    ours = sweep(labels, scores, flag_when=when)  # type: ignore[arg-type]
    flagged = scores >= threshold if when == "above" else scores <= threshold
    index = ours.at(threshold)
    counted = (0, 0) if index is None else (ours.tp_count[index], ours.fp_count[index])
    assert counted == ((flagged & labels).sum(), (flagged & ~labels).sum())
    assert [ours.at(t) for t in ours.thresholds] == list(range(len(ours)))


def test_a_design_weighs_by_population_over_rows() -> None:
    labels, scores, _ = made_up(3)
    strata = np.repeat([0, 1], [200, 100])
    design = Design(strata, np.array([400, 5_000]))
    by_hand = sweep(labels, scores, weights=np.where(strata == 0, 2.0, 50.0))
    assert_same(sweep(labels, scores, design=design), by_hand)
    named = Design.of(["a"] * 200 + ["b"] * 100, {"a": 400, "b": 5_000})
    assert_array_equal(named.weights, design.weights)


def test_strata_add_up_to_the_counts() -> None:
    labels, scores, _ = made_up(4)
    scores[::7] = np.nan
    ours = sweep(labels, scores, design=Design(np.arange(300) % 3, np.array([900, 300, 3_000])))
    assert ours.strata is not None
    assert_array_equal(ours.strata.tp.sum(axis=0), ours.tp_count)
    assert_array_equal(ours.strata.fp.sum(axis=0), ours.fp_count)
    assert ours.strata.positives.sum() == ours.positives


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_thinning_keeps_the_shape(flag_when: str) -> None:
    labels, scores, weights = made_up(6, 20_000, decimals=9)
    full = sweep(labels, scores, weights=weights, flag_when=flag_when)  # type: ignore[arg-type]
    thin = full.thin(400)
    assert len(full) > 19_000
    assert 100 < len(thin) <= 400
    assert np.all(np.isin(thin.thresholds, full.thresholds))
    assert (thin.thresholds[0], thin.thresholds[-1]) == (full.thresholds[0], full.thresholds[-1])
    assert thin.precision.max() == full.precision.max()
    assert (thin.auroc, thin.n) == (full.auroc, full.n)
    assert np.trapezoid(thin.recall, thin.fpr) == pytest.approx(np.trapezoid(full.recall, full.fpr), abs=2e-3)
    drawn = np.interp(full.recall, thin.recall, thin.precision)
    # The first few labels jump about; from there on the drawn line is the curve.
    assert np.max(np.abs(drawn - full.precision)[full.recall > 0.05]) < 0.03
    assert full.thin(len(full)) is full


@pytest.mark.parametrize(
    ("labels", "scores", "missing"),
    [
        ([], [], Missing.NO_LABELS),
        ([0] * 12, np.arange(12.0), Missing.ALL_CLEAN),
        ([1] * 3, [1.0, 2.0, 2.0], Missing.ALL_HALLUCINATED),
        ([0, 1], [np.nan, np.nan], Missing.NO_SCORES),
        ([0, 0, 1], [1.0, 2.0, np.nan], Missing.HALLUCINATED_SCORED),
        ([0, 1, 1], [np.nan, 2.0, 3.0], Missing.CLEAN_SCORED),
    ],
)
def test_a_missing_class_is_named(labels: list[int], scores: list[float], missing: Missing) -> None:
    ours = sweep(np.array(labels, dtype=int), np.array(scores))
    assert ours.missing == missing
    assert (ours.auroc, ours.average_precision) == (None, None)
    assert len(ours.recall) == len(ours) == len(ours.precision)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"labels": [0, 1], "scores": [1.0]}, "one score per label"),
        ({"labels": [0, 2], "scores": [1.0, 2.0]}, "labels must be 0"),
        ({"labels": [0, 1], "scores": [1.0, np.inf]}, "infinite"),
        ({"labels": [0, 1], "scores": [1.0, 2.0], "weights": [1.0, 0.0]}, "above 0"),
        ({"labels": [0, 1], "scores": [1.0, 2.0], "weights": [1.0]}, "one per label"),
        ({"labels": [0, 1], "scores": [1.0, 2.0], "flag_when": "over"}, "flag_when"),
        ({"labels": [0, 1], "scores": [1.0, 2.0], "design": Design(np.zeros(3, int), np.array([9]))}, "same traces"),
    ],
)
def test_bad_input_is_a_sentence(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        sweep(**arguments)  # type: ignore[arg-type]


def test_bad_designs_are_a_sentence() -> None:
    with pytest.raises(BadInput, match="codes 0 to 0"):
        Design(np.array([0, 1]), np.array([9]))
    with pytest.raises(BadInput, match="2 rows but holds 1"):
        Design(np.array([0, 0]), np.array([1]))
    with pytest.raises(BadInput, match="no population is given for stratum 'b'"):
        Design.of(["a", "b"], {"a": 3})
    design = Design(np.array([0, 0, 1]), np.array([4, 4]))
    with pytest.raises(BadInput, match="different weights"):
        sweep([0, 1, 1], [1.0, 2.0, 3.0], weights=[1.0, 2.0, 3.0], design=design)
    with pytest.raises(BadInput, match="no threshold"):
        sweep([0, 1], [1.0, 2.0]).at(float("nan"))


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_large_scores_lose_no_threshold(seed: int) -> None:
    labels, scores, _ = made_up(seed, 200, decimals=2)
    ours = sweep(labels, scores * 1e300)
    assert len(ours) == len(np.unique(scores))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason=f"{SHARED} is not here")
def test_answer_length_on_real_labels_equals_scikit_learn() -> None:
    with gzip.open(SHARED, "rt", encoding="utf-8") as lines:
        records = [record for record in map(json.loads, lines) if record["label"]]
    labels = np.array([record["label"] == "hallucinated" for record in records])
    scores = np.array([float(len(record["answer"])) for record in records])
    ours = sweep(labels, scores)
    assert (ours.n, ours.positives) == (378, 69)
    precision, recall, _ = precision_recall_curve(labels, scores)
    assert_allclose(ours.precision[::-1], precision[:-1], rtol=1e-12)
    assert_allclose(ours.recall[::-1], recall[:-1], rtol=1e-12)
    assert ours.auroc == pytest.approx(roc_auc_score(labels, scores), abs=1e-9)
    assert ours.average_precision == pytest.approx(average_precision_score(labels, scores), abs=1e-9)
