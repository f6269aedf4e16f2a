"""Precision, recall, false-positive rate and flag rate at every distinct score of a detector."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrate.errors import BadInput
from calibrate.orientation import SIGNS, suspicion
from calibrate.stats.sweep.clusters import Clusters, cluster_codes, sum_clusters
from calibrate.stats.sweep.cumulative import auroc, average_precision, by_stratum, corners, count_sums, weighted_sums
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints, StratumCounts, check_weights
from calibrate.types import FlagWhen

RANKABLE = 5  # labels of either verdict: below that an area says nothing


class Missing(StrEnum):
    """What labels and scores lack for a sweep."""

    NO_LABELS = "no labels"
    ALL_CLEAN = "all clean"
    ALL_HALLUCINATED = "all hallucinated"
    NO_SCORES = "no scores"
    HALLUCINATED_SCORED = "hallucinated not scored"
    CLEAN_SCORED = "clean not scored"
    FEW_TO_RANK = "few to rank"  # a sweep there is, but fewer than RANKABLE of a verdict


@dataclass(frozen=True)
class Sweep:
    """What a detector would have done at every threshold. Arrays have one entry per distinct score, strict to loose.

    `thresholds` are in the detector's raw units; a trace is flagged at score >= threshold (`above`) or <= threshold
    (`below`). `tp` and `fp` are weighted sums of the flagged, `tp_count` and `fp_count` the labels themselves,
    `tp_squared` and `fp_squared` sums of squared weights (for effective sample sizes). A NaN in a rate says that its
    denominator is empty. `n`, `positives`, `scored` and `scored_positives` count labels; the `weighted_` fields are the
    same with weights. `clusters` is there where traces share their sources. `auroc` and `average_precision` are over
    the scored labels and None where a class is missing; `missing` then says which.
    """

    flag_when: FlagWhen
    thresholds: Floats
    tp: Floats
    fp: Floats
    tp_count: Ints
    fp_count: Ints
    tp_squared: Floats
    fp_squared: Floats
    n: int
    positives: int
    scored: int
    scored_positives: int
    weighted_n: float
    weighted_positives: float
    weighted_scored: float
    weighted_scored_positives: float
    squared_n: float
    squared_positives: float
    auroc: float | None
    average_precision: float | None
    missing: Missing | None
    strata: StratumCounts | None = None
    clusters: Clusters | None = None

    def __len__(self) -> int:
        """The number of distinct thresholds."""
        return len(self.thresholds)

    @property
    def negatives(self) -> int:
        """Clean labels, scored or not."""
        return self.n - self.positives

    @property
    def can_rank(self) -> bool:
        """Whether the labels with a score are enough to say how well the scores rank."""
        return enough_to_rank(self.scored_positives, self.scored - self.scored_positives)

    @property
    def prevalence(self) -> float | None:
        """The estimated share of traffic that is hallucinated, 0 to 1."""
        return self.weighted_positives / self.weighted_n if self.n else None

    @property
    def coverage(self) -> float | None:
        """The estimated share of traffic that the detector can score, 0 to 1."""
        return self.weighted_scored / self.weighted_n if self.n else None

    @cached_property
    def precision(self) -> Floats:
        """Of what is flagged, the share that is hallucinated."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.tp / (self.tp + self.fp))

    @cached_property
    def recall(self) -> Floats:
        """Of all hallucinations, the share that is flagged. End to end: a trace without a score is not flagged."""
        return _share(self.tp, self.weighted_positives)

    @cached_property
    def recall_scored(self) -> Floats:
        """Of the hallucinations the detector could score, the share that is flagged."""
        return _share(self.tp, self.weighted_scored_positives)

    @cached_property
    def fpr(self) -> Floats:
        """Of all clean traces, the share that is flagged. End to end."""
        return _share(self.fp, self.weighted_n - self.weighted_positives if self.negatives else 0.0)

    @cached_property
    def flag_rate(self) -> Floats:
        """Of all traffic, the share that is flagged."""
        return _share(self.tp + self.fp, self.weighted_n)

    def at(self, threshold: float) -> int | None:
        """The index of the point that flags what `threshold` would flag; None when that is nothing.

        Any number will do, not only an observed score: between two scores the stricter of them decides.
        """
        if not np.isfinite(threshold):
            raise BadInput(f"{threshold} is no threshold: give a finite number in the detector's units")
        keys = -suspicion(self.thresholds, self.flag_when)  # ascending
        flagged = int(np.searchsorted(keys, -suspicion(threshold, self.flag_when), side="right"))
        return flagged - 1 if flagged else None

    def point(self, index: int | None) -> Sweep:
        """The sweep at one of its points only; None is the point that flags nothing, whose threshold is NaN."""
        if index is not None:
            return self._take(np.array([index]))
        # The threshold is no score of anyone, the counts of every stratum are 0.
        nothing, none = np.zeros(1), np.zeros(1, dtype=np.int64)
        empty = None if self.strata is None else np.zeros((len(self.strata.rows), 1), dtype=np.int64)
        return replace(
            self,
            thresholds=np.full(1, np.nan),
            tp=nothing,
            fp=nothing,
            tp_count=none,
            fp_count=none,
            tp_squared=nothing,
            fp_squared=nothing,
            strata=None if self.strata is None or empty is None else replace(self.strata, tp=empty, fp=empty),
            clusters=None if self.clusters is None else self.clusters.nothing(),
        )

    def thin(self, max_points: int = 400) -> Sweep:
        """At most `max_points` of the points, the corners of every chart among them. For drawing, not for choosing."""
        if max_points < 10:
            raise BadInput(f"a curve of {max_points} points has no shape: keep at least 10")
        if len(self) <= max_points:
            return self
        return self._take(corners(self.precision, (self.tp, self.thresholds), max_points))

    def _take(self, points: NDArray[np.intp]) -> Sweep:
        strata = self.strata
        return replace(
            self,
            thresholds=self.thresholds[points],
            tp=self.tp[points],
            fp=self.fp[points],
            tp_count=self.tp_count[points],
            fp_count=self.fp_count[points],
            tp_squared=self.tp_squared[points],
            fp_squared=self.fp_squared[points],
            strata=None if strata is None else replace(strata, tp=strata.tp[:, points], fp=strata.fp[:, points]),
            clusters=None if self.clusters is None else self.clusters.at(points),
        )


def sweep(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
    flag_when: FlagWhen = "above",
) -> Sweep:
    """Sweep a detector's threshold over every distinct score it gave to labelled traces.

    A trace without a score counts as not flagged. With a design a label weighs N_h / n_h; groups change no figure, only
    how well it is known. The curve is scikit-learn's `precision_recall_curve(labels, scores, sample_weight=weights)`
    read backwards, without its final point (precision 1, recall 0), which no threshold reaches.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    weights : array of float, shape (labels,), optional
        How many traces each label stands for, instead of a design.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The sources that a trace shares with others; default: none shares any.
    flag_when : {"above", "below"}
        The detector's suspicious side.

    Returns
    -------
    Sweep
        Figures at every distinct score, strict to loose.

    Raises
    ------
    BadInput
        For lengths that differ, infinite scores, and another side.
    """
    y, values = _check(labels, scores, flag_when)
    w = check_weights(weights, design, len(y))
    has_score = ~np.isnan(values)
    # Most sweeps miss no score; a million rows are then not copied.
    scored = slice(None) if has_score.all() else has_score
    y_scored = y[scored]
    # The one place where scores are oriented: ascending keys are strict to loose.
    keys = -suspicion(values[scored], flag_when)
    sums = count_sums(keys, y_scored) if w is None else weighted_sums(keys, y_scored, w[scored])
    missing = missing_of(len(y), int(np.count_nonzero(y)), len(y_scored), int(np.count_nonzero(y_scored)))
    squares = None if w is None else w * w
    cluster = None if groups is None else cluster_codes(groups)
    return Sweep(
        flag_when=flag_when,
        # Adding 0 turns the -0.0 of a negated zero into 0.
        thresholds=suspicion(-sums.keys, flag_when) + 0.0,
        tp=sums.tp,
        fp=sums.fp,
        tp_count=sums.tp_count,
        fp_count=sums.fp_count,
        tp_squared=sums.tp_squared,
        fp_squared=sums.fp_squared,
        n=len(y),
        positives=int(np.count_nonzero(y)),
        scored=len(y_scored),
        scored_positives=int(np.count_nonzero(y_scored)),
        weighted_n=_total(w, y | True),
        weighted_positives=_total(w, y),
        weighted_scored=_total(w, has_score),
        weighted_scored_positives=_total(w, y & has_score),
        squared_n=_total(squares, y | True),
        squared_positives=_total(squares, y),
        auroc=None if missing else auroc(sums.tp, sums.fp),
        average_precision=None if missing else average_precision(sums.tp, sums.fp),
        missing=missing,
        strata=None if design is None or w is None else by_stratum(keys, y, has_score, design, w, sums.keys),
        clusters=None if cluster is None else sum_clusters(keys, y, has_score, cluster, w, sums.keys),
    )


def _check(labels: ArrayLike, scores: ArrayLike, flag_when: str) -> tuple[Bools, Floats]:
    given, values = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or given.shape != values.shape:
        raise BadInput(f"{given.size} labels and {values.size} scores: give one score per label, NaN for none")
    y = given.astype(bool)
    if given.dtype != bool and not np.array_equal(y, given):
        raise BadInput("labels must be 0 (clean) or 1 (hallucinated); leave `unsure` ones out")
    if np.isinf(values).any():
        raise BadInput(f"{np.isinf(values).sum()} scores are infinite: a detector that cannot score must abstain")
    if flag_when not in SIGNS:
        raise BadInput(f"flag_when is {flag_when!r}: it must be 'above' or 'below'")
    return y, values


def _total(weights: Floats | None, where: Bools) -> float:
    return float(np.count_nonzero(where) if weights is None else weights[where].sum())


def _share(part: Floats, whole: float) -> Floats:
    # Sums taken in different orders differ in the last digit; a share above 1 would be nonsense to everyone after us.
    return np.minimum(part / whole, 1.0) if whole else np.full(len(part), np.nan)


def enough_to_rank(hallucinated: int, clean: int) -> bool:
    """Whether AUROC and average precision of so many labels say anything. Where not, nothing shows them.

    Parameters
    ----------
    hallucinated, clean : int
        Labels with a score.

    Returns
    -------
    bool
        True from RANKABLE labels of either verdict on.
    """
    return min(hallucinated, clean) >= RANKABLE


def missing_of(n: int, positives: int, scored: int, scored_positives: int) -> Missing | None:
    """What is missing for a sweep; None where labels of both classes have scores.

    Parameters
    ----------
    n, positives : int
        Labels, and the hallucinated ones among them.
    scored, scored_positives : int
        The same of the labels with a score.

    Returns
    -------
    Missing or None
        The first thing that is missing.
    """
    if not n:
        return Missing.NO_LABELS
    if positives in (0, n):
        return Missing.ALL_HALLUCINATED if positives else Missing.ALL_CLEAN
    if not scored:
        return Missing.NO_SCORES
    if scored_positives in (0, scored):
        return Missing.CLEAN_SCORED if scored_positives else Missing.HALLUCINATED_SCORED
    return None
