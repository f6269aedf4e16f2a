"""A head on what detectors found in an answer: logistic regression on their scores and their sentences' values.

The penalty is chosen by the log-loss of folds that the fit has not seen, inside each training fold as well, so that the
figures of the folds left out are of the choosing too. The many fits of this cross-validation are made in batches by
`fit_ridge`; the head that is used in the end is scikit-learn's, which minimises the same loss.

References
----------
Varma and Simon, Bias in error estimation when using cross-validation for model selection, BMC Bioinformatics 7 (2006).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.ensembles.members import Picking, pick_in_folds, pick_members
from calibrate.stats.ensembles.performance import Judged
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.fitting.ridge import fit_ridge, with_one
from calibrate.stats.sweep.design import Bools, Floats, Ints

PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Prior variances of a coefficient, as scikit-learn's C, for one label's weight on average."""


@dataclass(frozen=True)
class HeadData:
    """Features of labelled traces: by base detector an array of shape (labels, statistics), NaN rows where it has no
    score. A feature that is missing counts as its mean, and an indicator says that its base is."""

    labels: Bools
    weights: Floats
    features: Mapping[str, Floats]

    @property
    def bases(self) -> tuple[str, ...]:
        return tuple(sorted(self.features))

    @cached_property
    def usable(self) -> Bools:
        """Whether any base has a score, shape (labels,)."""
        present = [np.isfinite(self.features[base]).all(axis=1) for base in self.bases]
        return np.asarray(np.any(present, axis=0))

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """The bases that miss a score of a usable trace."""
        return tuple(base for base in self.bases if not np.isfinite(self.features[base][self.usable]).all(axis=1).all())

    @cached_property
    def scaling(self) -> dict[str, tuple[Floats, Floats]]:
        """Weighted mean and standard deviation of every statistic where it is known; 1 where it does not vary."""
        scaling = {}
        for base in self.bases:
            values = self.features[base]
            rows = np.isfinite(values).all(axis=1)
            if not rows.any():
                scaling[base] = np.zeros(values.shape[1]), np.ones(values.shape[1])
                continue
            mean = np.average(values[rows], axis=0, weights=self.weights[rows])
            spread = np.sqrt(np.average((values[rows] - mean) ** 2, axis=0, weights=self.weights[rows]))
            scaling[base] = mean, np.where(spread > 1e-9 * np.maximum(1.0, np.abs(mean)), spread, 1.0)
        return scaling

    @cached_property
    def design(self) -> Floats:
        """Standardised features base by base, then the indicators of `gaps`; shape (labels, columns)."""
        blocks = []
        for base in self.bases:
            mean, spread = self.scaling[base]
            blocks.append(np.nan_to_num((self.features[base] - mean) / spread, nan=0.0))
        missing = [~np.isfinite(self.features[base]).all(axis=1) for base in self.gaps]
        return np.column_stack([*blocks, *(each.astype(np.float64) for each in missing)])

    @property
    def counts(self) -> Floats:
        """What each label counts in a fit: 1 on average, 0 where nothing is known of it."""
        weights = np.where(self.usable, self.weights, 0.0)
        return np.asarray(weights / weights[self.usable].mean()) if self.usable.any() else weights


@dataclass(frozen=True)
class FittedHead:
    """Coefficients in standard deviations of the features: `slopes` by base, shape (statistics,), and `missing` by base
    of `gaps`. `c` is the prior variance that was chosen."""

    intercept: float
    slopes: Mapping[str, Floats]
    missing: Mapping[str, float]
    scaling: Mapping[str, tuple[Floats, Floats]]
    c: float


@dataclass(frozen=True)
class JudgedHead:
    """Out-of-fold log odds of the head, and the penalty that all folds together choose."""

    judged: Judged
    c: float


def judge_head(data: HeadData, folds: Ints, penalties: Sequence[float] = PENALTIES) -> JudgedHead:
    """Score every label by a head that was fitted, penalty and all, without its fold.

    Parameters
    ----------
    data : HeadData
        Features and labels.
    folds : array of int, shape (repeats, labels)
        The fold of every label in every repeat; whole groups lie in one.
    penalties : sequence of float
        Prior variances to choose from.

    Returns
    -------
    JudgedHead
        Log odds, below all others where nothing is known of a trace; they compare only within one fold.
    """
    scores, total = np.zeros(folds.shape), np.zeros(len(penalties))
    for repeat, dealt in enumerate(folds):
        many = int(dealt.max()) + 1
        without = [(fold,) for fold in range(many)] + list(combinations(range(many), 2))
        place = {left_out: at for at, left_out in enumerate(without)}
        outside = np.stack([~np.isin(dealt, left_out) for left_out in without]) * data.counts
        # (penalties, fits, labels)
        odds = np.stack([_log_odds(data, outside, c) for c in penalties])
        losses = np.logaddexp(0.0, odds) - data.labels * odds
        for fold in range(many):
            here = dealt == fold
            inner = np.zeros(len(penalties))
            for other in range(many):
                if other != fold:
                    judged = dealt == other
                    inner += losses[:, place[min(fold, other), max(fold, other)], judged] @ data.counts[judged]
            scores[repeat, here] = odds[int(np.argmin(inner)), place[fold,]][here]
            total += losses[:, place[fold,], here] @ data.counts[here]
    return JudgedHead(
        Judged(np.zeros(folds.shape, dtype=bool), _lowest_where(~data.usable, scores), folds),
        float(penalties[int(np.argmin(total))]),
    )


def judge_best_detector(training: TrainingData, folds: Ints) -> Judged:
    """The detector with the highest AUROC outside each fold, applied to the fold left out.

    A missing score is the least suspicious, where it is chosen as where it is judged: else a detector that ranks the
    few traces well that it can score would be taken, and be no rival.

    Parameters
    ----------
    training : TrainingData
        Labelled traces and the scores of the detectors to choose from.
    folds : array of int, shape (repeats, labels)
        The fold of every label in every repeat.

    Returns
    -------
    Judged
        Scores turned so that higher is more suspicious, below all others where there is none.
    """
    whole, scores = _fill_in(training), np.zeros(folds.shape)
    for (name,), where in pick_in_folds(whole, folds, Picking(1)).items():
        here = np.take_along_axis(where, folds, axis=1)
        scores[here] = np.broadcast_to(whole.scores[name], folds.shape)[here]
    return Judged(np.zeros(folds.shape, dtype=bool), scores, folds)


def best_detector(training: TrainingData) -> str:
    """The detector with the highest AUROC on all labels, a missing score being the least suspicious.

    Parameters
    ----------
    training : TrainingData
        Labelled traces and the scores of the detectors to choose from.

    Returns
    -------
    str
        Its name.
    """
    return pick_members(_fill_in(training), Picking(1))[0]


def _fill_in(training: TrainingData) -> TrainingData:
    """The scores turned so that higher is more suspicious, below all others where there is none."""
    scores = {}
    for name in training.names:
        own = suspicion(training.scores[name], training.flag_when[name])
        scores[name] = _lowest_where(~np.isfinite(own), own)
    return replace(training, scores=scores, flag_when=dict.fromkeys(scores, "above"))


def fit_head(data: HeadData, c: float) -> FittedHead:
    """Fit the head on all labels.

    Parameters
    ----------
    data : HeadData
        Features and labels.
    c : float
        Prior variance of a coefficient.

    Returns
    -------
    FittedHead
        Coefficients in standard deviations of the features.
    """
    from sklearn.linear_model import LogisticRegression

    rows = data.usable
    model = LogisticRegression(C=c, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    model.fit(data.design[rows], data.labels[rows], sample_weight=data.counts[rows])
    beta, slopes, begun = model.coef_[0], {}, 0
    for base in data.bases:
        size = data.features[base].shape[1]
        slopes[base] = beta[begun : begun + size]
        begun += size
    missing = {base: float(beta[begun + at]) for at, base in enumerate(data.gaps)}
    return FittedHead(float(model.intercept_[0]), slopes, missing, data.scaling, c)


def _log_odds(data: HeadData, weights: Floats, c: float) -> Floats:
    """Log odds of every label by a fit for each row of weights, shape (fits, labels)."""
    labels = np.broadcast_to(data.labels.astype(np.float64), weights.shape)
    beta = fit_ridge(data.design, labels, weights, c=c).coefficients
    return np.asarray(beta @ with_one(data.design).T)


def _lowest_where(missing: Bools, scores: Floats) -> Floats:
    """Scores with a value below all others where one is missing."""
    least = float(np.min(scores, initial=0.0, where=np.broadcast_to(~missing, scores.shape))) - 1.0
    return np.where(missing, least, scores)
