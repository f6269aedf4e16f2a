"""How well the figures of a sweep are known: two-sided intervals from the sample's design.

Precision and false-positive rate are ratios with a Wilson interval at an effective sample size: the linearised
(Taylor) variance of a ratio under stratified sampling (Cochran, Sampling Techniques, 3rd ed., 1977, sections 5A and
6.11), Wilson (JASA 22, 1927), Kish's effective size. All are of traffic to come, like that which was sampled.
Recall and flag rate of a stratified draw have intervals of their own (`stratified_intervals`); without strata they are
Jeffreys' and Wilson's at an effective size. Where something else than the score ranked the strata, all four are shares
of two counts: a label that was not seen may be anywhere. Intervals are pointwise: each holds at its own threshold, not
all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrate.stats.intervals.binomial_intervals import Range, jeffreys, wilson, z_value
from calibrate.stats.intervals.stratified_intervals import (
    count_caught_and_missed,
    count_flagged_and_passed,
    count_right_and_wrong,
    flag_rate_interval,
    share_interval,
)
from calibrate.stats.intervals.variance import (
    Ratio,
    false_positive_ratio,
    flag_rate_ratio,
    precision_ratio,
    recall_ratio,
    sampled_strata,
    variance,
)
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import Interval

AT_ONCE = 25


@dataclass(frozen=True)
class Band:
    """Pointwise bounds of every figure, one per point of the sweep they belong to."""

    precision_low: Floats
    precision_high: Floats
    recall_low: Floats
    recall_high: Floats
    fpr_low: Floats
    fpr_high: Floats
    flag_rate_low: Floats
    flag_rate_high: Floats


@dataclass(frozen=True)
class Figures:
    """What was measured at one threshold. The four counts are labels, unweighted, of scored traces only."""

    threshold: float
    precision: Interval
    recall: Interval
    recall_scored: float | None
    fpr: Interval
    flag_rate: Interval
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int


def band(sweep: Sweep, *, confidence: float = 0.95) -> Band:
    """The bounds at every point of the sweep, each for itself.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Band
        Bounds of every figure at every point.
    """
    of_flagged = _precision_range(sweep, confidence)
    of_hallucinated = _recall_range(sweep, confidence)
    of_clean, of_all = _false_positive_range(sweep, confidence), _flag_rate_range(sweep, confidence)
    return Band(
        precision_low=of_flagged.low,
        precision_high=of_flagged.high,
        recall_low=of_hallucinated.low,
        recall_high=of_hallucinated.high,
        fpr_low=of_clean.low,
        fpr_high=of_clean.high,
        flag_rate_low=of_all.low,
        flag_rate_high=of_all.high,
    )


def simultaneous_band(sweep: Sweep, *, confidence: float = 0.95) -> Band:
    """Bounds that hold at AT_ONCE thresholds together (Bonferroni).

    About as many truly differ on a curve of a few hundred labels. Pointwise bounds cover such a whole curve only about
    7 times in 10.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Band
        Bounds of every figure at every point, wider than pointwise.
    """
    return band(sweep, confidence=1 - (1 - confidence) / AT_ONCE)


def figures(sweep: Sweep, threshold: float, *, confidence: float = 0.95) -> Figures:
    """What was measured at any threshold, observed or not, with the intervals.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    threshold : float
        Any number, in the detector's units.
    confidence : float
        Two-sided, between 0 and 1.

    Returns
    -------
    Figures
        Shares with intervals, and counts of labels.

    Raises
    ------
    BadInput
        For a threshold that is not finite.
    """
    # A threshold that flags nothing is a point too: no hallucination found, precision unknown.
    point = sweep.point(sweep.at(threshold))
    bounds = band(point, confidence=confidence)
    tp, fp = int(point.tp_count[0]), int(point.fp_count[0])
    return Figures(
        threshold=threshold,
        precision=_interval(point.precision, bounds.precision_low, bounds.precision_high),
        recall=_interval(point.recall, bounds.recall_low, bounds.recall_high),
        recall_scored=_float_or_none(point.recall_scored),
        fpr=_interval(point.fpr, bounds.fpr_low, bounds.fpr_high),
        flag_rate=_interval(point.flag_rate, bounds.flag_rate_low, bounds.flag_rate_high),
        true_positives=tp,
        false_positives=fp,
        false_negatives=sweep.scored_positives - tp,
        true_negatives=sweep.scored - sweep.scored_positives - fp,
    )


def _ratio_range(sweep: Sweep, ratio: Ratio, confidence: float, *, capped: bool = False) -> Range:
    """Wilson at n_eff = P (1 - P) / V, or `capped` at the labels there are: of few flagged labels V itself is not well
    known. Where V is 0 (all or none) at Kish's effective size."""
    effective = _effective(sweep, ratio, confidence)
    return wilson(ratio.value, np.minimum(effective, ratio.labels) if capped else effective, confidence=confidence)


def _precision_range(sweep: Sweep, confidence: float) -> Range:
    ratio, strata = precision_ratio(sweep), sampled_strata(sweep)
    if strata is None or strata.ranked:
        return _ratio_range(sweep, ratio, confidence, capped=True)
    counts = count_right_and_wrong(strata, _worth(sweep, ratio, confidence))
    return _around(ratio, share_interval(*counts, confidence=confidence))


def _recall_range(sweep: Sweep, confidence: float) -> Range:
    ratio, strata = recall_ratio(sweep), sampled_strata(sweep)
    if strata is None:
        return jeffreys(ratio.value, _effective(sweep, ratio, confidence), confidence=confidence)
    counts = count_caught_and_missed(strata, _worth(sweep, ratio, confidence))
    return _around(ratio, share_interval(*counts, confidence=confidence))


def _false_positive_range(sweep: Sweep, confidence: float) -> Range:
    ratio, strata = false_positive_ratio(sweep), sampled_strata(sweep)
    if strata is None:
        return _ratio_range(sweep, ratio, confidence)
    worth = _worth(sweep, ratio, confidence)
    if not strata.ranked:
        counts = count_flagged_and_passed(strata, worth, clean=True)
        return _around(ratio, share_interval(*counts, confidence=confidence))
    plain, clean = _ratio_range(sweep, ratio, confidence), strata.rows - strata.positives
    if not clean.any():
        return plain
    # Where a cut lies between two strata, each seen whole on its side of it, the variance sees nothing uncertain.
    clean_only = replace(strata, tp=np.zeros_like(strata.tp), rows=clean)
    ranked = flag_rate_interval(clean_only, worth, confidence=confidence)
    return _around(ratio, Range(np.fmin(plain.low, ranked.low), np.fmax(plain.high, ranked.high)))


def _flag_rate_range(sweep: Sweep, confidence: float) -> Range:
    ratio, strata = flag_rate_ratio(sweep), sampled_strata(sweep)
    if strata is None:
        return _ratio_range(sweep, ratio, confidence)
    worth = _worth(sweep, ratio, confidence)
    if not strata.ranked:
        counts = count_flagged_and_passed(strata, worth, clean=False)
        return _around(ratio, share_interval(*counts, confidence=confidence))
    return _around(ratio, flag_rate_interval(strata, worth, confidence=confidence))


def _around(ratio: Ratio, bounds: Range) -> Range:
    """Rounding must not push a bound past the figure."""
    return Range(np.minimum(bounds.low, ratio.value), np.maximum(bounds.high, ratio.value))


def _effective(sweep: Sweep, ratio: Ratio, confidence: float) -> Floats:
    """How many labels of a random sample know a ratio as well."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread, inside = variance(sweep, ratio), ratio.value * (1 - ratio.value)
        effective = np.where((spread > 0) & (inside > 0), inside / spread, ratio.kish)
        return np.asarray(effective / _few_clusters(sweep, ratio, confidence) ** 2)


def _worth(sweep: Sweep, ratio: Ratio, confidence: float) -> Floats:
    """What a label is worth, 0 to 1, beside one whose trace shares its sources with none."""
    return np.asarray(1 / (ratio.shared * _few_clusters(sweep, ratio, confidence) ** 2))


def _few_clusters(sweep: Sweep, ratio: Ratio, confidence: float) -> Floats | float:
    """Student's t over the normal quantile, at as many degrees of freedom as there are clusters: a variance of few
    clusters is itself uncertain. 1 where no traces share their sources."""
    if not sweep.clusters:
        return 1.0
    from scipy.special import stdtrit

    freedom = np.maximum(np.nan_to_num(ratio.kish, nan=2.0) - 1, 1.0)
    return np.asarray(stdtrit(freedom, 0.5 + confidence / 2) / z_value(confidence))


def _interval(value: Floats, low: Floats, high: Floats) -> Interval:
    return Interval(_float_or_none(value), _float_or_none(low), _float_or_none(high))


def _float_or_none(figure: Floats) -> float | None:
    return None if np.isnan(figure[0]) else float(figure[0])
