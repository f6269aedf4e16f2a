"""Which detectors an ensemble is made of, where nobody names them: those that rank best without the fold left out.

Members picked on the labels that judge the ensemble flatter it: of 20 detectors that know nothing the best four by 300
labels seem to know something. So the picking is part of the rule, done anew in every training fold (Varma and Simon,
BMC Bioinformatics 7, 2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.intervals.bootstrap import weighted_auroc
from calibrate.stats.sweep.design import Bools, Floats, Ints


@dataclass(frozen=True)
class Picking:
    """Pick the `most` detectors with the highest AUROC where they have a score; those of `always` are among them."""

    most: int
    always: tuple[str, ...] = ()


def pick_members(training: TrainingData, picking: Picking) -> tuple[str, ...]:
    """The members by all labels, of which the ensemble is made in the end.

    Parameters
    ----------
    training : TrainingData
        Labelled traces of every candidate.
    picking : Picking
        How many, and which whatever they know.

    Returns
    -------
    tuple of str
        Names in alphabetical order; fewer than asked for where fewer can be picked.
    """
    return _best_of(training.names, _measure_areas(training, training.weights[None])[:, 0], picking)


def pick_in_folds(training: TrainingData, folds: Ints, picking: Picking) -> dict[tuple[str, ...], Bools]:
    """The members picked without each fold of each repeat.

    Parameters
    ----------
    training : TrainingData
        Labelled traces of every candidate.
    folds : array of int, shape (repeats, labels)
        The fold of every label in every repeat, numbered from 0.
    picking : Picking
        How many, and which whatever they know.

    Returns
    -------
    dict of tuple of str to array of bool, shape (repeats, folds)
        By members: where they were picked.

    References
    ----------
    Varma and Simon, BMC Bioinformatics 7 (2006).
    """
    many = int(folds.max()) + 1
    outside = np.stack([dealt != fold for dealt in folds for fold in range(many)]) * training.weights
    picked: dict[tuple[str, ...], Bools] = {}
    for place, areas in enumerate(_measure_areas(training, outside).T):
        members = _best_of(training.names, areas, picking)
        picked.setdefault(members, np.zeros((len(folds), many), dtype=bool))[divmod(place, many)] = True
    return picked


def count_picks(picked: Mapping[tuple[str, ...], Bools]) -> dict[str, int]:
    """In how many training folds each detector was picked, the most often picked first.

    Parameters
    ----------
    picked : mapping of tuple of str to array of bool
        What `pick_in_folds` gave.

    Returns
    -------
    dict of str to int
        By detector; those that were never picked are left out.
    """
    names = sorted({name for members in picked for name in members})
    times = {name: sum(int(where.sum()) for members, where in picked.items() if name in members) for name in names}
    return dict(sorted(times.items(), key=lambda pair: -pair[1]))


def _measure_areas(training: TrainingData, weights: Floats) -> Floats:
    """AUROC of each detector's scored labels by each row of weights, shape (detectors, rows); a half where one verdict
    has no score."""
    areas = []
    for name in training.names:
        scores = suspicion(training.scores[name], training.flag_when[name])
        scored = np.isfinite(scores)
        areas.append(weighted_auroc(training.labels[scored], scores[scored], weights[:, scored]))
    return np.nan_to_num(np.stack(areas), nan=0.5)


def _best_of(names: tuple[str, ...], areas: Floats, picking: Picking) -> tuple[str, ...]:
    ranked = [names[place] for place in np.argsort(-areas, kind="stable") if names[place] not in picking.always]
    return tuple(sorted([*picking.always, *ranked[: max(picking.most - len(picking.always), 0)]]))
