"""Wilson's interval as Brown, Cai and DasGupta (2001) mend it, from scipy's two halves."""

from __future__ import annotations

from scipy.stats import binomtest, chi2

Bounds = tuple[float, float]


def mended(k: int, n: int, confidence: float = 0.95) -> Bounds:
    """Up to three labels on the rarer side: its bound is half a chi-square quantile with twice as many degrees."""
    theirs = binomtest(k, n).proportion_ci(confidence, method="wilson")
    low, high = theirs.low, theirs.high
    if 0 < k <= 3 and 2 * k < n:
        low = min(low, chi2.ppf(1 - confidence, 2 * k) / 2 / n)
    if 0 < n - k <= 3 and 2 * (n - k) < n:
        high = max(high, 1 - chi2.ppf(1 - confidence, 2 * (n - k)) / 2 / n)
    return low, high
