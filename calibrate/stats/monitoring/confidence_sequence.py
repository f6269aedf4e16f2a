"""Bounds of a precision that hold after every label at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from calibrate.stats.sweep.design import Bools, Floats


def confidence_sequence(k: ArrayLike, n: ArrayLike, *, alpha: float) -> tuple[Floats, Floats]:
    """Bounds of a precision that hold after every label at once with a probability of 1 - alpha.

    They are the q against which a flat mixture of bets both ways has not won 1 / alpha.

    Parameters
    ----------
    k : array of int
        Hallucinated labels.
    n : array of int
        Labels.
    alpha : float
        The error over all looks, between 0 and 1.

    Returns
    -------
    tuple of array of float
        Lower and upper bounds, 0 to 1.

    References
    ----------
    Robbins, Annals of Mathematical Statistics 41 (1970).
    """
    from scipy.special import betaln

    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    # What the mixture weighs, and the bar: q is outside where k log q + (n - k) log(1 - q) is below this.
    bar = betaln(k + 1, n - k + 1) + np.log(alpha)
    middle = np.divide(k, n, out=np.full(np.broadcast(k, n).shape, 0.5), where=n > 0)

    def inside(q: Floats) -> Bools:
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = np.where(k > 0, k * np.log(q), 0.0) + np.where(n > k, (n - k) * np.log1p(-q), 0.0)
        return np.asarray(likelihood >= bar)

    return _bisect_edge(inside, middle, np.zeros_like(middle)), _bisect_edge(inside, middle, np.ones_like(middle))


def _bisect_edge(inside: Callable[[Floats], Bools], good: Floats, bad: Floats) -> Floats:
    """Between a place inside and one that may be outside, the last inside; one bisection for all."""
    for _ in range(50):
        middle = (good + bad) / 2
        ok = inside(middle)
        good, bad = np.where(ok, middle, good), np.where(ok, bad, middle)
    return np.asarray(np.where(inside(bad), bad, (good + bad) / 2))
