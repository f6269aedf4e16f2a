"""How a rule does on traces it was not fitted to: repeated, stratified cross-validation, groups kept together.

Everything that looks at labels is done anew inside each fold: the fit, the choice of the best single detector, and that
of the members where nobody named them.
Ranks and cuts are read from the traffic, which has no labels to peek at. The apparent performance of a fitted rule, on
the labels that fitted it, is too good by about ten points of recall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from calibrate.stats.ensembles.budget_cuts import cut_at_budget, flags_at_cut, thresholds_at_budget
from calibrate.stats.ensembles.combine import FEW, C, Recipe, build_rule, design_matrix, has_gaps, inputs_of
from calibrate.stats.ensembles.performance import Judged
from calibrate.stats.ensembles.rules import Fixed, Rule, Vote
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.fitting.ridge import fit_ridge
from calibrate.stats.intervals.bootstrap import Units, weighted_auroc
from calibrate.stats.sweep.design import Bools, Floats, Ints

REPEATS = 10
FOLDS = 5


def repeat_folds(
    training: TrainingData, *, rng: np.random.Generator, repeats: int = REPEATS, folds: int = FOLDS
) -> Ints:
    """Deal folds several times, whole groups at a time.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    rng : Generator
        Source of the random draws.
    repeats : int
        How often the folds are dealt anew.
    folds : int
        How many folds.

    Returns
    -------
    array of int, shape (repeats, labels)
        Fold numbers from 0.
    """
    units = Units.among(training.groups).of
    return np.stack([deal_folds(training.labels, units, folds=folds, rng=rng) for _ in range(repeats)])


def judge_recipe(recipe: Recipe, training: TrainingData, folds: Ints, *, budget: float) -> Judged:
    """What the recipe's rule flags of each trace at the alert budget when made without the trace's fold.

    Parameters
    ----------
    recipe : Recipe
        What ensemble to build.
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    folds : array of int, shape (repeats, labels)
        The fold of every label in every repeat.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    Judged
        Flags and scores; one repeat for a rule that sees no labels.
    """
    if refits(recipe, training):
        return _refit(training, folds, budget=budget)
    # The rule sees no labels: made once, it is the same in every fold.
    return apply_rule(build_rule(recipe, training), training, budget=budget)


def judge_picked(
    recipe_of: Callable[[tuple[str, ...]], Recipe],
    training: TrainingData,
    folds: Ints,
    picked: Mapping[tuple[str, ...], Bools],
    *,
    budget: float,
) -> Judged:
    """What is flagged of each trace when both the members and the rule are chosen without the trace's fold.

    Parameters
    ----------
    recipe_of : callable
        What ensemble to build of these members.
    training : TrainingData
        Labelled traces of every candidate, beside the traffic they stand for.
    folds : array of int, shape (repeats, labels)
        The fold of every label in every repeat.
    picked : mapping of tuple of str to array of bool, shape (repeats, folds)
        By members: the folds without which they were picked.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    Judged
        Flags and scores, which compare only within one fold.
    """
    flags, scores = np.zeros(folds.shape, dtype=bool), np.zeros(folds.shape)
    for members, where in picked.items():
        recipe, chosen = recipe_of(members), training.select(members)
        here = np.take_along_axis(where, folds, axis=1)
        if refits(recipe, chosen):
            judged = _refit(chosen, folds, budget=budget, only=where)
        else:
            judged = apply_rule(build_rule(recipe, chosen), chosen, budget=budget)
        flags[here], scores[here] = (np.broadcast_to(part, folds.shape)[here] for part in (judged.flags, judged.scores))
    return Judged(flags, scores, folds)


def refits(recipe: Recipe, training: TrainingData) -> bool:
    """Whether the recipe's rule is fitted to labels: its out-of-fold scores are then log odds.

    Parameters
    ----------
    recipe : Recipe
        What ensemble to build.
    training : TrainingData
        Labelled traces beside the traffic they stand for.

    Returns
    -------
    bool
        False for a rule that is the same in every fold.
    """
    return recipe.kind == "logistic" and training.positives >= FEW


def judge_single(name: str, training: TrainingData, *, budget: float) -> Judged:
    """One detector alone; it is fitted to nothing.

    Parameters
    ----------
    name : str
        The detector.
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    Judged
        Flags and scores, one repeat.
    """
    return apply_rule(Vote(1, {name: training.standings[name]}), training, budget=budget)


def judge_best_single(training: TrainingData, folds: Ints, *, budget: float) -> Judged:
    """The detector that ranks best in each training fold, applied to the fold left out.

    One of those that can flag so little; the best by AUROC, a missing score being the least suspicious: at a few
    positives recall at the budget is too coarse to choose by.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    folds : array of int, shape (repeats, labels)
        The fold of every label in every repeat.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    Judged
        Flags and scores of the detector chosen for each fold.
    """
    singles = [judge_single(name, training, budget=budget) for name in _able_detectors(training, budget=budget)]
    flags, scores = (np.stack([getattr(single, part)[0] for single in singles]) for part in ("flags", "scores"))
    chosen = np.stack([np.argmax(_measure_areas(training, scores, repeat), axis=0)[repeat] for repeat in folds])
    rows = np.arange(len(training.labels))
    return Judged(flags[chosen, rows], scores[chosen, rows], folds)


def best_single(training: TrainingData, *, budget: float) -> str:
    """The detector that ranks best on all the labels, of those that can flag so little.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    str
        Its name.
    """
    nowhere, names = np.full(len(training.labels), -1), _able_detectors(training, budget=budget)
    scores = np.stack([judge_single(name, training, budget=budget).scores[0] for name in names])
    return names[int(np.argmax(_measure_areas(training, scores, nowhere, folds=1)[:, 0]))]


def _able_detectors(training: TrainingData, *, budget: float) -> tuple[str, ...]:
    """The detectors that can flag no more than this share of the traffic, and some; all where none can."""
    cuts = thresholds_at_budget(training, budget)
    return tuple(name for name in training.names if cuts[name] is not None) or training.names


def apply_rule(rule: Rule, training: TrainingData, *, budget: float) -> Judged:
    """A rule as it is, at its budget cut.

    Parameters
    ----------
    rule : Rule
        The ensemble.
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    Judged
        Flags and scores, one repeat.
    """
    scores = rule.score(training.scores)
    return Judged(flags_at_cut(scores, budget_cut(rule, training, budget=budget))[None], scores[None])


def budget_cut(rule: Rule, training: TrainingData, *, budget: float) -> float | None:
    """The cut at which the rule flags this share of the traffic; fixed thresholds have theirs already.

    Parameters
    ----------
    rule : Rule
        The ensemble.
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    float or None
        A cut of the rule's score; None where it cannot flag so little.
    """
    if isinstance(rule, Fixed):
        return float(rule.k)
    return cut_at_budget(rule.score(training.traffic), training.traffic_weights, budget=budget)


def _measure_areas(training: TrainingData, scores: Floats, held_out: Ints, *, folds: int = FOLDS) -> Floats:
    """AUROC of every detector outside each fold, shape (detectors, folds)."""
    inside = np.stack([held_out != fold for fold in range(folds)]) * training.weights
    return np.nan_to_num(np.stack([weighted_auroc(training.labels, column, inside) for column in scores]), nan=0.5)


def _refit(training: TrainingData, folds: Ints, *, budget: float, only: Bools | None = None) -> Judged:
    """The logistic rule, fitted without each fold of each repeat, or of `only` these, and applied to it."""
    inputs, gaps = inputs_of(training), has_gaps(training)
    rows, traffic = (design_matrix(columns, inputs, gaps) for columns in (training.scores, training.traffic))
    weights = training.weights / training.weights.mean()
    flags, scores = np.zeros(folds.shape, dtype=bool), np.zeros(folds.shape)
    for repeat, dealt in enumerate(folds):
        numbers = np.unique(dealt) if only is None else np.flatnonzero(only[repeat])
        if not len(numbers):
            continue
        outside = np.stack([dealt != fold for fold in numbers]) * weights
        labels = np.broadcast_to(training.labels.astype(np.float64), outside.shape)
        fitted = fit_ridge(rows, labels, outside, c=C).coefficients
        for fold, beta in zip(numbers, fitted, strict=True):
            here = dealt == fold
            scores[repeat, here] = beta[0] + rows[here] @ beta[1:]
            at = cut_at_budget(beta[0] + traffic @ beta[1:], training.traffic_weights, budget=budget)
            flags[repeat, here] = flags_at_cut(scores[repeat, here], at)
    return Judged(flags, scores, folds)
