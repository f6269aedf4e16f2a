"""Labels that are most likely wrong, by confident learning: out-of-fold probabilities against the labels given.

Each trace is judged by a fit that has not seen it or its group; labels are ranked by self-confidence, the probability
of the label given.

References
----------
Northcutt, Jiang and Chuang, Journal of Artificial Intelligence Research 70 (2021).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.fitting import ridge
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.intervals import bootstrap
from calibrate.stats.intervals.bootstrap import Units
from calibrate.types import FlagWhen

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

AT_LEAST = 10
FOLDS = 10
C = 0.3
REASONS = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """A detector that speaks against a label. Of the other traces with the same label it puts `beyond`, 0 to 1, on the
    label's side of this one: a clean trace more suspicious than 97% of the clean ones has 0.97."""

    detector: str
    value: float
    beyond: float


@dataclass(frozen=True, slots=True)
class Doubt:
    """A label that the detectors would not have given: `row` of the input, P(hallucinated), and who speaks against."""

    row: int
    probability: float
    surprise: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Doubts:
    """Every label, the most surprising first: surprise is -log P(the label). `auroc` says how well the combination
    tells the labels apart at all, out of fold; near 0.5 its doubts mean nothing."""

    ranked: tuple[Doubt, ...]
    auroc: float
    detectors: tuple[str, ...]


def rank_doubts(
    labels: Bools,
    scores: Mapping[str, Floats],
    *,
    flag_when: Mapping[str, FlagWhen],
    groups: Sequence[Hashable],
    rng: np.random.Generator,
) -> Doubts:
    """Rank labels by how much a ridge logistic on all detectors is surprised by them.

    A missing score is a feature of its own. Traces of one group are never split between fit and judgement.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : mapping of str to array of float, shape (labels,)
        By detector, in its units, NaN for none.
    flag_when : mapping of str to {"above", "below"}
        By detector: its suspicious side.
    groups : sequence of hashable, length labels
        The sources that a trace shares with others, None for a trace of its own.
    rng : Generator
        Deals the folds.

    Returns
    -------
    Doubts
        Every label, the least self-confident first.

    Raises
    ------
    BadInput
        With fewer than 10 labels of either verdict, and where no detector tells the traces apart.

    References
    ----------
    Northcutt, Jiang and Chuang, Journal of Artificial Intelligence Research 70 (2021).
    """
    positives = int(labels.sum())
    if min(positives, len(labels) - positives) < AT_LEAST:
        raise BadInput(
            f"a second look needs at least {AT_LEAST} hallucinated and {AT_LEAST} clean gold labels with scores; "
            f"there are {positives} and {len(labels) - positives}"
        )
    z = {name: _standardise(values, flag_when[name]) for name, values in scores.items()}
    z = {name: values for name, values in z.items() if np.nanmax(np.abs(values), initial=0.0) > 0}
    if not z:
        raise BadInput("no detector tells these traces apart: every score is missing, or they are all the same")
    matrix = np.column_stack(list(z.values()))
    probability, push = _predict_out_of_fold(matrix, labels, groups, rng)
    surprise = -np.log(np.where(labels, probability, 1 - probability))
    beyond = _share_beyond(matrix, labels)
    names = tuple(z)
    ranked = [
        Doubt(
            row,
            float(probability[row]),
            float(surprise[row]),
            _find_reasons(names, [scores[name][row] for name in names], beyond[row], push[row] * (1 - 2 * labels[row])),
        )
        for row in np.argsort(-surprise, kind="stable").tolist()
    ]
    area = bootstrap.weighted_auroc(labels, probability, np.ones((1, len(labels))))[0]
    return Doubts(tuple(ranked), float(area), names)


def _predict_out_of_fold(
    z: Floats, labels: Bools, groups: Sequence[Hashable], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """P(hallucinated) per row, and what each detector adds to its log odds, from a fit on the other folds."""
    missing = np.isnan(z)
    filled = np.where(missing, 0.0, z)
    features = np.concatenate([filled, missing.astype(float)], axis=1)
    units = Units.among(groups).of
    fold = deal_folds(labels, units, folds=min(FOLDS, int(units.max()) + 1), rng=rng)
    outside = (fold[None, :] != np.arange(fold.max() + 1)[:, None]).astype(float)
    # The intercept is held, lightly, for a fold may leave one class outside it only.
    fitted = ridge.fit_ridge(features, np.broadcast_to(labels, outside.shape).astype(float), outside, c=C, c_free=100.0)
    own = fitted.coefficients[fold]
    terms = own[:, 1:] * features
    probability = ridge.expit(own[:, 0] + terms.sum(axis=1))
    return np.clip(probability, 1e-4, 1 - 1e-4), terms[:, : z.shape[1]]


def _standardise(values: Floats, flag_when: FlagWhen) -> Floats:
    """Standardised, positive where suspicious, within 5 standard deviations; NaN stays, all 0 without spread."""
    signed = suspicion(values, flag_when)
    finite = signed[np.isfinite(signed)]
    spread = finite.std() if len(finite) else 0.0
    if spread <= 1e-12 * max(1.0, abs(finite.mean()) if len(finite) else 1.0):
        return np.asarray(np.where(np.isnan(signed), np.nan, 0.0))
    return np.asarray(np.clip((signed - finite.mean()) / spread, -5.0, 5.0))


def _share_beyond(z: Floats, labels: Bools) -> Floats:
    """Of the traces with the same label, the share less suspicious than this one, where it is clean, or more, where it
    is hallucinated; ties count half, NaN stays."""
    shares = np.full(z.shape, np.nan)
    for own, sign in ((labels, -1.0), (~labels, 1.0)):
        for j in range(z.shape[1]):
            values = sign * z[own, j]
            scored = np.sort(values[~np.isnan(values)])
            middle = (np.searchsorted(scored, values, "left") + np.searchsorted(scored, values, "right")) / 2
            shares[own, j] = np.where(np.isnan(values), np.nan, middle / max(len(scored), 1))
    return shares


def _find_reasons(names: Sequence[str], values: Sequence[float], beyond: Floats, away: Floats) -> tuple[Reason, ...]:
    """The detectors that push furthest away from the label, where this trace is at the far end of its class."""
    first = [j for j in np.argsort(-away, kind="stable").tolist() if away[j] > 0 and beyond[j] > 0.5]
    return tuple(Reason(names[j], float(values[j]), float(beyond[j])) for j in first[:REASONS])
