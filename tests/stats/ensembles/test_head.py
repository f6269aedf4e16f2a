"""The head: scikit-learn's own fits, folds that never see what they judge, and a difference that is paired."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrate.stats.ensembles import head, nested_cv, performance
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sweep.design import Floats
from tests.stats.ensembles.ensembling import material

EXACT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 10_000}


def sentences(training: TrainingData, seed: int, *, planted: float = 0.0) -> head.HeadData:
    """Two statistics of each detector: its score, and a value of its sentences that may know more."""
    rng = np.random.default_rng(seed)
    features = {
        name: np.column_stack([scores, rng.standard_normal(len(scores)) + planted * training.labels + 0 * scores])
        for name, scores in training.scores.items()
    }
    return head.HeadData(training.labels, training.weights, features)


def columns(data: head.HeadData) -> Floats:
    return np.column_stack([data.features[base] for base in data.bases])


def test_the_head_is_scikit_learns_pipeline() -> None:
    training = material(seed=1, n=200, weighted=False)
    data = sentences(training, 1, planted=0.5)
    fitted = head.fit_head(data, 0.1)
    theirs = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, **EXACT)).fit(columns(data), data.labels)
    mine = fitted.intercept + data.design @ np.concatenate([fitted.slopes[base] for base in data.bases])
    assert mine == pytest.approx(theirs.decision_function(columns(data)), abs=1e-6)


def test_a_missing_score_counts_as_the_mean_and_has_a_weight_of_its_own() -> None:
    training = material(seed=2, n=150, missing=0.2)
    data = sentences(training, 2)
    assert data.gaps == data.bases
    missing = ~np.isfinite(training.scores["b"])
    at = list(data.bases).index("b")
    assert not data.design[missing, 2 * at : 2 * at + 2].any()
    assert (data.design[:, 8 + at] == missing).all()
    nothing = ~data.usable
    assert (data.counts[nothing] == 0).all()
    assert data.counts[~nothing].mean() == pytest.approx(1)
    folds = nested_cv.repeat_folds(training, rng=np.random.default_rng(0), repeats=1)
    scores = head.judge_head(data, folds).judged.scores[0]
    assert not nothing.any() or scores[nothing].max() < scores[~nothing].min()


def test_a_fold_is_judged_by_a_fit_and_a_penalty_that_never_saw_it() -> None:
    training = material(seed=3, n=160)
    data, penalties = sentences(training, 3, planted=0.4), (0.003, 0.1, 1.0)
    folds = nested_cv.repeat_folds(training, rng=np.random.default_rng(1), repeats=1)
    judged = head.judge_head(data, folds, penalties).judged.scores[0]
    dealt = folds[0]
    for fold in range(5):
        losses = []
        for c in penalties:
            loss = 0.0
            for inner in set(range(5)) - {fold}:
                fit, on = (dealt != fold) & (dealt != inner), dealt == inner
                model = LogisticRegression(C=c, **EXACT)
                model.fit(data.design[fit], data.labels[fit], sample_weight=data.counts[fit])
                chance = model.predict_proba(data.design[on])
                loss += log_loss(
                    data.labels[on], chance, sample_weight=data.counts[on], normalize=False, labels=[False, True]
                )
            losses.append(loss)
        outside = dealt != fold
        model = LogisticRegression(C=penalties[int(np.argmin(losses))], **EXACT)
        model.fit(data.design[outside], data.labels[outside], sample_weight=data.counts[outside])
        assert judged[dealt == fold] == pytest.approx(model.decision_function(data.design[dealt == fold]), abs=1e-5)


def test_the_best_detector_is_chosen_by_scikit_learns_area_outside_the_fold() -> None:
    training = material(seed=4, n=120, auroc=(0.72, 0.7, 0.7, 0.68), weighted=False)
    folds = nested_cv.repeat_folds(training, rng=np.random.default_rng(2), repeats=2)
    judged = head.judge_best_detector(training, folds)
    for repeat, dealt in enumerate(folds):
        for fold in range(5):
            turned = {n: s if training.flag_when[n] == "above" else -s for n, s in training.scores.items()}
            areas = {n: roc_auc_score(training.labels[dealt != fold], s[dealt != fold]) for n, s in turned.items()}
            best = max(areas, key=lambda name: areas[name])
            assert (judged.scores[repeat, dealt == fold] == turned[best][dealt == fold]).all()


def test_a_detector_that_scores_little_is_no_rival() -> None:
    training = material(seed=6, n=300, auroc=(0.99, 0.7, 0.5, 0.5), weighted=False)
    rare = np.where(np.arange(300) % 5 == 0, training.scores["a"], np.nan)
    training = replace(training, scores={**training.scores, "a": rare})
    assert head.best_detector(training) == "b"
    folds = nested_cv.repeat_folds(training, rng=np.random.default_rng(2), repeats=2)
    assert (head.judge_best_detector(training, folds).scores == -training.scores["b"]).all()


def test_the_difference_is_paired_and_turns_with_its_sides() -> None:
    training = material(seed=5, n=300)
    rng = np.random.default_rng(3)
    folds = nested_cv.repeat_folds(training, rng=rng, repeats=3)
    drawn = performance.draw_resamples(training, rng=rng, count=300)
    learned = head.judge_head(sentences(training, 5, planted=1.5), folds).judged
    best = head.judge_best_detector(training, folds)
    there, back = (performance.auroc_difference(training, *pair, drawn) for pair in ((learned, best), (best, learned)))
    assert there.value == pytest.approx(-(back.value or 0))
    assert (there.low, there.high) == pytest.approx((-(back.high or 0), -(back.low or 0)))
    mine, theirs = (performance.auroc_within_folds(training, each, drawn).value for each in (learned, best))
    assert there.value == pytest.approx((mine or 0) - (theirs or 0))
    assert there.low is not None
    assert there.low > 0
    same = performance.auroc_difference(training, best, best, drawn)
    assert (same.value, same.low, same.high) == (0, 0, 0)
