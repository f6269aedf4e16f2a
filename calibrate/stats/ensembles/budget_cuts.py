"""Cuts that flag a share of the traffic, and what is flagged at them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrate.orientation import flags, reaches, suspicion
from calibrate.stats.ensembles.training_data import TrainingData, scored
from calibrate.stats.sweep.design import Bools, Floats


def cut_at_budget(scores: Floats, weights: Floats, *, budget: float) -> float | None:
    """The lowest score at which no more than the budget's share of the traffic is flagged.

    None where the most suspicious score alone is shared by more.

    Parameters
    ----------
    scores : array of float, shape (traces,)
        Higher is more suspicious, NaN is never flagged.
    weights : array of float, shape (traces,)
        What each trace stands for.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    float or None
        A score of the traffic.
    """
    values, w = scored(scores, weights)
    order = np.argsort(-values, kind="stable")
    ranked, share = values[order], np.cumsum(w[order]) / weights.sum()
    last = np.append(ranked[1:] != ranked[:-1], True)
    good = np.flatnonzero(last & (share <= budget + 1e-9))
    return float(ranked[good[-1]]) if len(good) else None


def flags_at_cut(scores: Floats, threshold: float | None) -> Bools:
    """Whether each score reaches the cut.

    Parameters
    ----------
    scores : array of float, shape (traces,)
        An ensemble's scores.
    threshold : float or None
        The cut; None flags nothing.

    Returns
    -------
    array of bool, shape (traces,)
        Whether each is flagged.
    """
    return np.zeros(len(scores), dtype=bool) if threshold is None else reaches(scores, threshold)


def thresholds_at_budget(training: TrainingData, budget: float) -> dict[str, float | None]:
    """The threshold, in its units, at which each detector alone flags this share of the traffic; None: it cannot.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    budget : float
        The share of the traffic to flag, between 0 and 1.

    Returns
    -------
    dict of str to float or None
        By detector, in its units.
    """
    thresholds = {}
    for name in training.names:
        side = training.flag_when[name]
        at = cut_at_budget(suspicion(training.traffic[name], side), training.traffic_weights, budget=budget)
        thresholds[name] = None if at is None else suspicion(at, side)
    return thresholds


def flags_at_thresholds(training: TrainingData, thresholds: Mapping[str, float | None]) -> dict[str, Bools]:
    """What each detector flags of the labelled traces at its threshold.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    thresholds : mapping of str to float or None
        By detector, in its units; None flags nothing.

    Returns
    -------
    dict of str to array of bool, shape (labels,)
        By detector.
    """
    return {
        name: np.zeros(len(training.labels), dtype=bool)
        if at is None
        else flags(training.scores[name], at, training.flag_when[name])
        for name, at in sorted(thresholds.items())
    }
