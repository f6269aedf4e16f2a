"""What a statistic looks like on clean answers: a centre and a spread that a few odd answers cannot move."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.types import Baseline

MINIMUM = 10
"""Answers without which there is no baseline: the spread of ten normal values is off by a third, as a rule."""

ENOUGH = 30
"""Answers from which on the spread is off by a fifth (1.17 / sqrt(n), as for normal data)."""

CONSISTENT = 1.4826
"""Makes the median absolute deviation a standard deviation, for normal data: 1 / the normal's 75th percentile."""


class NoBaseline(BadInput):
    """These values give no baseline; the message says why and what would."""


def fit_baseline(values: ArrayLike, *, statistic: str, model: str, now: datetime) -> Baseline:
    """Fit the centre and spread of a statistic on clean answers.

    Median and 1.4826 times the median absolute deviation: half of the answers may be anything before either of them is.

    Parameters
    ----------
    values : array of float, shape (answers,)
        The statistic of clean answers, in its unit.
    statistic : str
        Its name.
    model : str
        The model that answered.
    now : datetime
        When the baseline is made.

    Returns
    -------
    Baseline
        Median and scaled median absolute deviation.

    Raises
    ------
    NoBaseline
        For too few answers, and where half of them have one value.
    BadInput
        For values that are not finite.

    References
    ----------
    Rousseeuw and Croux, Journal of the American Statistical Association 88 (1993).
    """
    answers = np.asarray(values, dtype=np.float64)
    if answers.ndim != 1 or not np.isfinite(answers).all():
        raise BadInput(f"a baseline of {statistic} needs a flat list of finite numbers")
    if len(answers) < MINIMUM:
        raise NoBaseline(f"{len(answers)} clean answers with it: at least {MINIMUM} are needed, {ENOUGH} are better")
    centre = float(np.median(answers))
    spread = CONSISTENT * float(np.median(np.abs(answers - centre)))
    # Of values that differ by rounding only, the spread would be noise.
    if spread <= 1e-9 * max(1.0, abs(centre)):
        raise NoBaseline(f"at least half of its {len(answers)} clean answers have one value, {centre:.4g}: no spread")
    return Baseline(statistic, model, centre, spread, len(answers), now)
