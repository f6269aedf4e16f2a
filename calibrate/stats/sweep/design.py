"""How the labelled traces were drawn, as the estimates need to know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrate.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Name = TypeVar("Name", bound="SupportsRichComparison")


@dataclass(frozen=True)
class Design:
    """A stratified draw: the stratum of every row, and how many traces each stratum holds in the traffic sampled.

    `strata` is a code 0..S-1 per row; `population` is N_h, one per code. Within a stratum the rows are taken as a
    simple random sample without replacement, so rows that were drawn but not labelled may be left out only when that
    is chance (labelling goes through the sample in random order). A stratum without a row cannot be estimated: it is
    left out of the population the figures speak of.

    `share`, one per code, is the part of the stratum's traces that these rows speak for where another sample, taken
    together with this one, speaks for the rest: above 0, up to 1, which is the default (workflow.evidence.merging).
    """

    strata: Ints
    population: Ints
    share: Floats | None = None

    def __post_init__(self) -> None:
        strata, population = np.asarray(self.strata), np.asarray(self.population)
        if strata.ndim != 1 or population.ndim != 1:
            raise BadInput("a design needs one stratum per row and one population per stratum, each a flat list")
        if len(strata) and (strata.min() < 0 or strata.max() >= len(population)):
            raise BadInput(f"strata must be codes 0 to {len(population) - 1}, one for each population given")
        object.__setattr__(self, "strata", strata.astype(np.int64))
        object.__setattr__(self, "population", population.astype(np.int64))
        rows = self.rows
        if np.any(rows > self.population):
            h = int(np.argmax(rows > self.population))
            raise BadInput(f"stratum {h} has {rows[h]} rows but holds {self.population[h]} traces: give what it holds")

    @classmethod
    def of(
        cls, strata: Sequence[Name], population: Mapping[Name, int], share: Mapping[Name, float] | None = None
    ) -> Design:
        """The design from the stratum of every row, and by stratum its population and the share the rows speak for.

        A stratum may go by anything that can be hashed and sorted: its name, or a record of where it was drawn.
        """
        names = sorted(population)
        codes = {name: code for code, name in enumerate(names)}
        unknown = sorted({*strata} - {*codes})
        if unknown:
            raise BadInput(f"no population is given for stratum {unknown[0]!r}: give the number of traces it holds")
        return cls(
            np.array([codes[name] for name in strata], dtype=np.int64),
            np.array([population[name] for name in names], dtype=np.int64),
            None if share is None else np.array([share.get(name, 1.0) for name in names], dtype=np.float64),
        )

    @property
    def rows(self) -> Ints:
        """n_h: rows per stratum."""
        return np.bincount(self.strata, minlength=len(self.population)).astype(np.int64)

    @property
    def weights(self) -> Floats:
        """N_h / n_h per row, times its share: how many traces of the traffic a row stands for."""
        each = self.population / np.maximum(self.rows, 1) * (1.0 if self.share is None else self.share)
        return np.asarray(each[self.strata], dtype=np.float64)


@dataclass(frozen=True)
class StratumCounts:
    """What the design-based variances need of every stratum: labels flagged at each point, by verdict.

    `tp` and `fp` have shape (strata, points). `weight` is what one row stands for. `ranked`: strata
    follow one another in the ranking of these very scores, so that a threshold lies in one of them.
    """

    tp: Ints
    fp: Ints
    rows: Ints
    positives: Ints
    weight: Floats
    ranked: bool


def check_weights(weights: ArrayLike | None, design: Design | None, n: int) -> Floats | None:
    """One positive weight per row, from the weights given or else from the design; None means all ones.

    Parameters
    ----------
    weights : array of float, shape (labels,), or None
        As given.
    design : Design or None
        How the labels were drawn.
    n : int
        How many labels there are.

    Returns
    -------
    array of float, shape (labels,), or None
        The weights to use; None for labels that are all alike.

    Raises
    ------
    BadInput
        For lengths that differ, and weights that are not finite and above 0.
    """
    if design is not None and len(design.strata) != n:
        raise BadInput(f"the design has {len(design.strata)} rows, the labels {n}: they must be the same traces")
    if weights is None:
        return None if design is None else design.weights
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n,):
        raise BadInput(f"{values.size} weights for {n} labels: give one per label")
    if n and not (np.all(np.isfinite(values)) and values.min() > 0):
        raise BadInput("every weight must be a finite number above 0: it is 1 / the chance that the trace was drawn")
    return values


def stratum_weights(design: Design, weights: Floats) -> Floats:
    """The one weight of each stratum's rows; the variance formulas of a stratified draw hold for nothing else.

    Parameters
    ----------
    design : Design
        How the labels were drawn.
    weights : array of float, shape (labels,)
        What each label stands for.

    Returns
    -------
    array of float, shape (strata,)
        What a label of each stratum stands for; 0 without a label.
    """
    each = np.ones(len(design.population))
    each[design.strata] = weights
    if not np.allclose(each[design.strata], weights, rtol=1e-9, atol=0):
        raise BadInput("rows of one stratum have different weights: leave the weights out, the design implies them")
    return each
