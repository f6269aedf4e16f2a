"""Exact binomial tests of a precision against its target, in fixed order, and the error that each attempt may make."""

from __future__ import annotations

import numpy as np

from calibrate.stats.sweep.design import Bools, Floats, Ints

ALPHA = 0.05
FIRST_SHARE, RATIO = 0.8, 0.2
"""The first attempt spends 80% of alpha, every further one a fifth of the one before: all of them together spend it."""


def level(attempt: int, alpha: float = ALPHA) -> float:
    """The error that attempt 1, 2, ... at one certificate may make; summed over all of them it is `alpha`.

    Parameters
    ----------
    attempt : int
        Which attempt at this certificate it is, from 1.
    alpha : float
        The error over all attempts, between 0 and 1.

    Returns
    -------
    float
        The error of this attempt.

    Examples
    --------
    >>> [round(level(attempt), 4) for attempt in (1, 2, 3)]
    [0.04, 0.008, 0.0016]
    """
    return alpha * FIRST_SHARE * RATIO ** (attempt - 1)


def left_after(attempts: int, alpha: float = ALPHA) -> float:
    """Compute how much of `alpha` is left after some attempts.

    Parameters
    ----------
    attempts : int
        How many were made, 0 or more.
    alpha : float
        The error over all attempts, between 0 and 1.

    Returns
    -------
    float
        The error that all further attempts together may spend.

    Examples
    --------
    >>> [round(left_after(attempts), 4) for attempts in (0, 1, 2)]
    [0.05, 0.01, 0.002]
    """
    return alpha * RATIO**attempts


def walk_down(p_values: Floats, eligible: Bools, level: Floats | float) -> Ints:
    """The last cut passed before the first eligible one that fails, -1 for none.

    Parameters
    ----------
    p_values : array of float, shape (R, cuts)
        Strict to loose.
    eligible : array of bool, shape (R, cuts)
        Cuts that are tested; others are passed over.
    level : float or array of float
        The error of each test.

    Returns
    -------
    array of int, shape (R,)
        Positions of cuts.
    """
    stopped = np.cumsum(eligible & (p_values > level), axis=-1) > 0
    passed = eligible & ~stopped
    last = p_values.shape[-1] - 1 - np.argmax(passed[..., ::-1], axis=-1)
    return np.where(passed.any(-1), last, -1)


def lower_bound(k: Ints, m: Ints, level: float) -> Floats:
    """Clopper and Pearson's one-sided lower bound of a share: k of m; 0 for k = 0.

    Parameters
    ----------
    k : array of int
        Hallucinated labels.
    m : array of int
        Labels.
    level : float
        One-sided error, between 0 and 1.

    Returns
    -------
    array of float
        Shares, 0 to 1.

    References
    ----------
    Clopper and Pearson, Biometrika 26 (1934).
    """
    from scipy.special import betaincinv

    k, m = np.asarray(k), np.asarray(m)
    return np.where(k > 0, betaincinv(np.maximum(k, 1), np.maximum(m - k + 1, 1), level), 0.0)


def critical(most: int, target: float, level: float) -> Ints:
    """The fewest hallucinated of m = 0..`most` labels with P[Bin(m, target) >= k] <= level; m + 1 where none has.

    Parameters
    ----------
    most : int
        The largest number of labels.
    target : float
        The precision to meet, between 0 and 1.
    level : float
        The error that this attempt may make, between 0 and 1.

    Returns
    -------
    array of int, shape (most + 1,)
        Hallucinated labels that pass, by number of labels.
    """
    m = np.arange(most + 1)
    low, high = np.zeros(most + 1, dtype=np.int64), m + 1
    while np.any(low < high):
        middle = (low + high) // 2
        enough = binomial_p(middle, m, target) <= level
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return high


def binomial_p(k: Ints, m: Ints, target: float) -> Floats:
    """P[Bin(m, target) >= k], exact: the chance of so many hits in m labels if the precision were only `target`.

    Parameters
    ----------
    k : array of int
        Hallucinated labels.
    m : array of int
        Labels.
    target : float
        The precision to meet, between 0 and 1.

    Returns
    -------
    array of float
        One-sided p-values, 0 to 1.
    """
    from scipy.special import betainc

    inside = (k > 0) & (k <= m)
    tail = betainc(np.where(inside, k, 1), np.where(inside, m - k + 1, 1), target)
    return np.where(k <= 0, 1.0, np.where(k > m, 0.0, tail))
