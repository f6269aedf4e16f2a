"""What a flag is. The sweep, the pages and the production runtime all ask here, so they cannot disagree."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from calibrate.types import FlagWhen

if TYPE_CHECKING:  # the runtime has no numpy
    import numpy as np
    from numpy.typing import NDArray

Scores = TypeVar("Scores", float, "NDArray[np.float64]")

SIGNS: dict[FlagWhen, str] = {"above": "≥", "below": "≤"}

SLACK = 1e-12
"""Tolerance for an ensemble's score. A cut is a score that some machine computed; another's last digits may differ."""

MEETS: dict[FlagWhen, Callable[[Any, Any], Any]] = {"above": operator.ge, "below": operator.le}
"""The comparison of a score with a threshold, for a loop in which a call of `flags` costs too much."""


SIGN: dict[FlagWhen, float] = {"above": 1.0, "below": -1.0}


def sign(flag_when: FlagWhen) -> float:
    """1 where a high score is suspicious, -1 where a low one is."""
    return SIGN[flag_when]


def suspicion(scores: Scores, flag_when: FlagWhen) -> Scores:
    """Scores, or thresholds, turned so that higher is more suspicious; turned once more they are as before."""
    return scores if SIGN[flag_when] > 0 else -scores


@overload
def flags(value: float, threshold: float, flag_when: FlagWhen) -> bool: ...
@overload
def flags(
    value: NDArray[np.float64], threshold: float | NDArray[np.float64], flag_when: FlagWhen
) -> NDArray[np.bool_]: ...
def flags(value: Any, threshold: Any, flag_when: FlagWhen) -> Any:
    """Whether a score, or each of an array, flags its trace. A score equal to the threshold does; NaN never does.

    An array of scores may have an array of thresholds. Equality flags because thresholds are scores that were observed
    on labels: the figures measured at a threshold count the traces that score exactly there as flagged.
    """
    return MEETS[flag_when](value, threshold)


def reaches(score: Any, cut: float) -> Any:
    """Whether an ensemble's score, or each of an array of them, is at a cut or above it. NaN never is."""
    return score >= cut - SLACK
