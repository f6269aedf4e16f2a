"""What a flag is. The sweep, the pages and the production runtime all ask here, so they cannot disagree."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from calibrate.types import FlagWhen

SIGNS: dict[FlagWhen, str] = {"above": "≥", "below": "≤"}

SLACK = 1e-12
"""Room for the last digits of an ensemble's score, which differ between two machines' arithmetic: a cut is a score that
was once computed."""

MEETS: dict[FlagWhen, Callable[[float, float], bool]] = {"above": operator.ge, "below": operator.le}
"""Whether a score meets a threshold, for a loop that cannot pay for a call of `flags`."""


def flags(value: float, threshold: float, flag_when: FlagWhen) -> bool:
    """Whether a score flags its trace. A score equal to the threshold does; NaN never does.

    Equality flags because thresholds are scores that were observed on labels: the figures measured at a threshold
    count the traces that score exactly there as flagged.
    """
    return MEETS[flag_when](value, threshold)


def reaches(score: Any, cut: float) -> Any:
    """Whether an ensemble's score, or each of an array of them, is at a cut or above it. NaN never is."""
    return score >= cut - SLACK
