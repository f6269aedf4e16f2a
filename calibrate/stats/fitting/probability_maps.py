"""The map from a detector's score to P(hallucinated), judged on traces it was not fitted on.

The map is a ridge logistic (stats.fitting.ridge). It is judged by 10 times 5-fold cross-validation, traces that share
their sources in one fold (stats.fitting.reliability).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.probability import ProbabilityMap
from calibrate.stats.choosing.choose import NotEnoughLabels
from calibrate.stats.fitting import ridge
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.fitting.reliability import Reliability, judge_probabilities
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints, check_weights
from calibrate.types import FlagWhen

FOLDS, REPEATS = 5, 10
FEW = 10  # labels of either verdict: below that a map is one label's opinion


@dataclass(frozen=True)
class MapCurve:
    """The map at evenly spaced scores, in the detector's units, over the scores it was fitted on."""

    scores: Floats
    probabilities: Floats

    @property
    def monotone(self) -> bool:
        """False when the map turns: somewhere a more suspicious score means a smaller probability."""
        steps = np.diff(self.probabilities)
        return bool(np.all(steps >= -1e-9) or np.all(steps <= 1e-9))


@dataclass(frozen=True)
class Fitted:
    """A map fitted on every scored label, its reliability on traces it was not fitted on, and the `apparent` one on
    those it was, which flatters it."""

    map: ProbabilityMap
    curve: MapCurve
    reliability: Reliability
    apparent: Reliability


def fit_map(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    flag_when: FlagWhen,
    rng: np.random.Generator,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Fitted:
    """Fit and judge the map of one detector. A trace without a score is left out.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    rng : Generator
        Deals the folds and draws the resamples.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, length labels, optional
        The sources that a trace shares with others; default: none shares any.

    Returns
    -------
    Fitted
        The map and what it is worth, out of fold.

    Raises
    ------
    NotEnoughLabels
        Below 10 scored labels of either verdict, or 5 groups of either.
    """
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    given = check_weights(None, design, len(y))
    scored = ~np.isnan(values)
    scored_groups = [group for group, here in zip(groups or [None] * len(y), scored, strict=True) if here]
    strata = None if design is None else np.unique(design.strata[scored], return_inverse=True)[1].astype(np.int64)
    units = Units.among(scored_groups, strata)
    y, values, w = y[scored], values[scored], (np.ones(len(y)) if given is None else given)[scored]
    _check_enough(y, units.of)
    fitted = ridge.fit_probability_map(y, values, weights=w, flag_when=flag_when)
    span = np.linspace(values.min(), values.max(), 121)
    unseen = np.stack([_predict_out_of_fold(y, values, w, units.of, flag_when, rng) for _ in range(REPEATS)])
    return Fitted(
        ProbabilityMap(fitted.centre, fitted.spread, fitted.coefficients, flag_when),
        MapCurve(span, fitted.at(span)),
        judge_probabilities(y, unseen, weights=w, units=units, strata=strata, rng=rng),
        judge_probabilities(y, fitted.at(values), weights=w, units=units, strata=strata, rng=rng),
    )


def _predict_out_of_fold(
    y: Bools, values: Floats, w: Floats, units: Ints, flag_when: FlagWhen, rng: np.random.Generator
) -> Floats:
    """Every label's probability by a map that was fitted without its group."""
    fold, probability = deal_folds(y, units, folds=FOLDS, rng=rng), np.empty(len(y))
    for number in range(FOLDS):
        here = fold == number
        fitted = ridge.fit_probability_map(y[~here], values[~here], weights=w[~here], flag_when=flag_when)
        probability[here] = fitted.at(values[here])
    return probability


def _check_enough(y: Bools, code: Ints) -> None:
    for kind, here in (("hallucinated", y), ("clean", ~y)):
        n, groups = int(here.sum()), len(np.unique(code[here]))
        if n < FEW:
            raise NotEnoughLabels(
                f"{n} {kind} {'label' if n == 1 else 'labels'} with a score: a probability map needs at least {FEW}; "
                "label more traces"
            )
        if groups < FOLDS:
            raise NotEnoughLabels(
                f"the {n} {kind} labels come from {groups} groups of shared sources: a probability map needs at least "
                f"{FOLDS}, to be judged on sources it has not seen; label traces of other sources"
            )
