"""What the figures would be if labellers err: a sensitivity analysis, not an estimate.

Rogan and Gladen, American Journal of Epidemiology 107 (1978): a labeller who misses a share m of the hallucinated
traces and calls a share f of the clean ones hallucinated makes a share p into p (1 - m) + (1 - p) f; undo that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput

AT_LEAST = 20
"""Settled traces of each verdict before a labeller's error rates are worth a number."""


@dataclass(frozen=True, slots=True)
class Errors:
    """How a labeller errs: the share of hallucinated traces that is missed, and of clean ones called hallucinated."""

    misses: float
    false_calls: float

    def __post_init__(self) -> None:
        for name, rate in (("a miss rate", self.misses), ("a false-call rate", self.false_calls)):
            if not 0 <= rate <= 1:
                raise BadInput(f"{name} lies between 0 and 1, not at {rate:g}")

    @property
    def told_apart(self) -> float:
        """Sensitivity + specificity - 1: 1 for labels without error, 0 for a coin, below 0 for labels upside down."""
        return 1 - self.misses - self.false_calls


class Impossible(StrEnum):
    """Why error rates cannot have made the labels."""

    UNINFORMATIVE = "uninformative"  # such a labeller tells nothing apart
    FALSE_CALLS = "false calls"  # they alone would make more hallucinated labels
    MISSES = "misses"  # so many missed would leave fewer hallucinated labels
    NOTHING_LEFT = "nothing left"  # nothing would be hallucinated
    MORE_FLAGGED = "more flagged"  # more hallucinated traces would be flagged than there are


@dataclass(frozen=True, slots=True)
class Corrected:
    """A share as the labels show it, and as it would be. `value` is None, or cut off at 0 or 1, where these error rates
    cannot have made these labels, as `why` says."""

    apparent: float
    value: float | None
    why: Impossible | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Figures of an operating point with labellers' errors undone, each 0 to 1."""

    prevalence: Corrected
    precision: Corrected
    recall: Corrected


def rogan_gladen(share: float, errors: Errors) -> Corrected:
    """The true share of hallucinated traces behind an apparent one: (share - f) / (1 - m - f).

    Parameters
    ----------
    share : float
        The apparent share, 0 to 1.
    errors : Errors
        How the labeller errs.

    Returns
    -------
    Corrected
        The true share, 0 to 1, or why these errors cannot have made it.

    References
    ----------
    Rogan and Gladen, American Journal of Epidemiology 107 (1978).
    """
    if errors.told_apart <= 0:
        return Corrected(share, None, Impossible.UNINFORMATIVE)
    value = (share - errors.false_calls) / errors.told_apart
    if value < 0:
        return Corrected(share, 0.0, Impossible.FALSE_CALLS)
    if value > 1:
        return Corrected(share, 1.0, Impossible.MISSES)
    return Corrected(share, value)


def what_if(*, prevalence: float, precision: float, flag_rate: float, errors: Errors) -> WhatIf:
    """Prevalence, precision and recall of a threshold with errors undone, from the shares (0 to 1) the labels show.

    Holds where labellers err alike on flagged traces and on others, for they do not see the flags. Then the flagged are
    a group like all traffic, and recall = flag rate x precision / prevalence, each corrected.

    Parameters
    ----------
    prevalence, precision, flag_rate : float
        Shares that the labels show, 0 to 1.
    errors : Errors
        How the labellers err.

    Returns
    -------
    WhatIf
        The shares with errors undone.
    """
    of_all, of_flagged = rogan_gladen(prevalence, errors), rogan_gladen(precision, errors)
    apparent = min(1.0, flag_rate * precision / prevalence) if prevalence else 0.0
    return WhatIf(of_all, of_flagged, _correct_recall(apparent, flag_rate, of_all, of_flagged))


def _correct_recall(apparent: float, flag_rate: float, of_all: Corrected, of_flagged: Corrected) -> Corrected:
    if of_all.value is None or of_flagged.value is None:
        return Corrected(apparent, None, Impossible.UNINFORMATIVE)
    if of_all.value == 0:
        return Corrected(apparent, None, Impossible.NOTHING_LEFT)
    value = flag_rate * of_flagged.value / of_all.value
    why = Impossible.MORE_FLAGGED if value > 1 + 1e-9 else of_all.why or of_flagged.why
    return Corrected(apparent, min(1.0, value), why)


@dataclass(frozen=True, slots=True)
class Measured:
    """A labeller's error rates on settled traces. `hallucinated` and `clean` count these by gold; `errors` is None with
    fewer than AT_LEAST of either."""

    labeller: str
    hallucinated: int
    clean: int
    errors: Errors | None


def measure_errors(labeller: str, verdicts: Sequence[bool], gold: Sequence[bool], weights: ArrayLike) -> Measured:
    """Error rates of one labeller against gold.

    Where a trace came to be labelled twice because of its first label, rates without weights would be those of the
    draw.

    Parameters
    ----------
    labeller : str
        Who labelled.
    verdicts : sequence of bool, length traces
        True where the labeller called it hallucinated.
    gold : sequence of bool, length traces
        True where it is.
    weights : array of float, shape (traces,)
        1 / the chance that a trace came to be labelled twice.

    Returns
    -------
    Measured
        Error rates, if there are enough settled traces of either verdict.
    """
    calls, truth, w = np.asarray(verdicts, dtype=bool), np.asarray(gold, dtype=bool), np.asarray(weights, dtype=float)
    positives, negatives = int(truth.sum()), int(np.sum(~truth))
    if min(positives, negatives) < AT_LEAST:
        return Measured(labeller, positives, negatives, None)
    misses = float(w[truth & ~calls].sum() / w[truth].sum())
    false_calls = float(w[~truth & calls].sum() / w[~truth].sum())
    return Measured(labeller, positives, negatives, Errors(misses, false_calls))
