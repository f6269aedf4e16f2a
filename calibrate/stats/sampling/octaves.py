"""Strata by rank: the top 1/256, 1/128, … 1/2 of a ranking and the rest, told apart by values that can be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HALVINGS = 8
LEAST = 4  # traces of an octave; the few above belong to the next one down
REST, NO_SCORE = "rest", "no score"


@dataclass(frozen=True)
class Scale:
    """How one detector's scores are put beside others': sign x (score - mean) / sd, high where it is suspicious."""

    sign: float
    mean: float
    sd: float


@dataclass(frozen=True)
class Octaves:
    """Nested intervals of a ranking's values, the narrowest first: `bounds[name]` is [lowest, highest], both in.

    A value belongs to the first interval that holds it, else to the rest; NaN to "no score".
    """

    bounds: Mapping[str, tuple[float, float]]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.bounds, REST, NO_SCORE)

    def codes(self, values: Floats) -> Ints:
        """The stratum of every value, an index into `names`."""
        codes = np.where(np.isnan(values), len(self.bounds) + 1, len(self.bounds)).astype(np.int64)
        for code, (low, high) in reversed(list(enumerate(self.bounds.values()))):
            codes[(values >= low) & (values <= high)] = code
        return codes


def scale_of(scores: Floats, sign: float) -> Scale | None:
    """Mean and standard deviation of a detector's scores, NaN left out; None where they are all the same.

    Parameters
    ----------
    scores : array of float, shape (traces,)
        One detector's scores in its units, NaN for none.
    sign : float
        1 where high is suspicious, -1 where low is.

    Returns
    -------
    Scale or None
        None where scores do not differ.
    """
    scored = scores[~np.isnan(scores)]
    if not len(scored) or scored.min() == scored.max():
        return None
    return Scale(sign, float(scored.mean()), float(scored.std()))


def mean_z(scores: Floats, scales: Sequence[Scale]) -> Floats:
    """The mean standardised score of every trace over the detectors that scored it; NaN where none did.

    Parameters
    ----------
    scores : array of float, shape (traces, detectors)
        In the detectors' units, NaN for none.
    scales : sequence of Scale
        One a detector.

    Returns
    -------
    array of float, shape (traces,)
        In standard deviations, higher is more suspicious.
    """
    total, count = np.zeros(len(scores)), np.zeros(len(scores))
    for column, scale in zip(scores.T, scales, strict=True):
        scored = ~np.isnan(column)
        total[scored] += scale.sign * (column[scored] - scale.mean) / scale.sd
        count += scored
    return np.asarray(np.divide(total, count, out=np.full(len(scores), np.nan), where=count > 0))


def octaves(values: Floats) -> Octaves:
    """The octaves of a ranking, the highest values first.

    Parameters
    ----------
    values : array of float, shape (traces,)
        Higher is more suspicious, NaN for none.

    Returns
    -------
    Octaves
        Strata by interval of values.
    """
    return _octaves(values, values, "top")


def octaves_around(values: Floats, at: float) -> Octaves:
    """The octaves of nearness to the value `at`, in ranks: how many traces lie between.

    Parameters
    ----------
    values : array of float, shape (traces,)
        Scores, NaN for none.
    at : float
        A threshold in the same unit.

    Returns
    -------
    Octaves
        Strata by interval of values.
    """
    scored = np.sort(values[~np.isnan(values)])
    # From above and from below the threshold alike; equal values are equally far, as far as the furthest of them.
    above = np.searchsorted(scored, values, side="right") - np.searchsorted(scored, at, side="left")
    below = np.searchsorted(scored, at, side="right") - np.searchsorted(scored, values, side="left")
    distance = np.where(values == at, 0, np.where(values > at, above, below)).astype(np.float64)
    return _octaves(values, np.where(np.isnan(values), np.nan, -distance), "nearest")


def _octaves(values: Floats, ranking: Floats, word: str) -> Octaves:
    """Intervals of `values` that hold the highest 1/256, 1/128, … 1/2 of `ranking`.

    A tie that lies across a boundary goes whole to the looser side. An octave that would hold fewer than LEAST traces
    more than the one above it is left out.
    """
    ranked = ~np.isnan(ranking)
    ordered = np.sort(ranking[ranked])[::-1]
    if len(ordered) and not np.isfinite(ordered[[0, -1]]).all():
        raise BadInput("a score is infinite: a detector that cannot score must abstain")
    bounds: dict[str, tuple[float, float]] = {}
    held = 0
    for halvings in range(HALVINGS, 0, -1):
        rank = len(ordered) >> halvings
        inside = ranked & (ranking > ordered[rank]) if rank else np.zeros(len(values), dtype=bool)
        if (many := int(np.count_nonzero(inside))) >= held + LEAST:
            bounds[f"{word} 1/{2**halvings}"] = (float(values[inside].min()), float(values[inside].max()))
            held = many
    return Octaves(bounds)
