"""What ensembles are fitted to: labelled traces beside the traffic they stand for, and each score's place in it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.ensembles.rules import Standing
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints
from calibrate.types import FlagWhen

KNOTS = 201  # of a detector's distribution in the traffic


@dataclass(frozen=True)
class TrainingData:
    """Labelled traces beside the traffic they stand for; one array per detector, in its units, NaN for no score.

    `weights` say how many traces a label stands for, `design` how they were drawn (None: at random). `groups` name
    traces that share their sources (None: alone). `traffic` is unlabelled, `traffic_weights` as for labels.
    """

    labels: Bools
    weights: Floats
    groups: Sequence[Hashable]
    design: Design | None
    scores: Mapping[str, Floats]
    traffic: Mapping[str, Floats]
    traffic_weights: Floats
    flag_when: Mapping[str, FlagWhen]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.scores))

    @property
    def strata(self) -> Ints | None:
        return None if self.design is None else self.design.strata

    @property
    def positives(self) -> int:
        return int(np.count_nonzero(self.labels))

    @cached_property
    def standings(self) -> dict[str, Standing]:
        return {
            name: standing(self.traffic[name], self.traffic_weights, flag_when=self.flag_when[name])
            for name in self.names
        }

    def select(self, names: Sequence[str]) -> TrainingData:
        """Keep only these detectors, on the same traces."""
        scores, traffic = ({name: columns[name] for name in sorted(names)} for columns in (self.scores, self.traffic))
        return replace(self, scores=scores, traffic=traffic)


def standing(scores: Floats, weights: Floats, *, flag_when: FlagWhen) -> Standing:
    """Each score's place in the traffic, at KNOTS of its scores: the ends, and equal steps of traffic between.

    Parameters
    ----------
    scores : array of float, shape (traces,)
        Of the traffic, NaN for none.
    weights : array of float, shape (traces,)
        What each trace stands for.
    flag_when : {"above", "below"}
        The detector's suspicious side.

    Returns
    -------
    Standing
        Knots of the traffic's distribution.
    """
    from scipy.special import ndtri

    values, w = scored(scores, weights)
    if not len(values):
        return Standing(flag_when, (), (), ())
    knots, code = np.unique(suspicion(values, flag_when), return_inverse=True)
    here = np.bincount(code, weights=w)
    below = np.cumsum(here) - here / 2
    place = below / here.sum()
    keep = np.arange(len(knots))
    if len(knots) > KNOTS:
        keep = np.unique(np.r_[np.searchsorted(place, np.linspace(place[0], place[-1], KNOTS)), len(knots) - 1])
    above = (here.sum() - below) / weights.sum()
    return Standing(flag_when, *(tuple(map(float, heights[keep])) for heights in (knots, above, ndtri(place))))


def scored(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Leave out the traces without a score.

    Parameters
    ----------
    values : array of float, shape (traces,)
        Scores, NaN for none.
    weights : array of float, shape (traces,)
        What each trace stands for.

    Returns
    -------
    tuple of array of float
        Scores and weights of the traces that have a score.
    """
    finite = np.isfinite(values)
    return values[finite], weights[finite]
