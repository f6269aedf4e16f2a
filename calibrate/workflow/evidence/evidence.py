"""The labelled scores of one detector, with the data of its charts and lists, each computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrate.stats.intervals.sweep_intervals import Band, band, simultaneous_band
from calibrate.stats.sampling.designs import must_speak_for_all
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.thresholds.model import label_set_digest
from calibrate.types import FlagWhen, Part, Sample, Stratum
from calibrate.workflow.evidence.basis import Caution
from db.scores import Config, Row

BINS = 40  # of the histogram
MOST_POINTS = 400
"""Points that a drawn curve keeps: a million look the same and take seconds to draw."""
MOST_STEPS = 2000
"""Thresholds that a handle on a chart can stop at: more than a screen has pixels."""


@dataclass(frozen=True)
class Histogram:
    """Labels counted by score: bin i holds edges[i] <= score < edges[i + 1], the last one its upper edge too."""

    edges: NDArray[np.float64]
    clean: NDArray[np.int64]
    hallucinated: NDArray[np.int64]


@dataclass(frozen=True)
class ScoreWeights:
    """What labels stand for by score, in the bins of a Histogram: sums of the weights that the sweep has."""

    edges: NDArray[np.float64]
    clean: NDArray[np.float64]
    hallucinated: NDArray[np.float64]


@dataclass(frozen=True)
class Steps:
    """The thresholds that a handle can stop at, with the pointwise 95% bounds there. Each is exact."""

    sweep: Sweep
    bounds: Band


@dataclass(frozen=True)
class Nearby:
    """The labelled traces whose scores are nearest to a threshold, nearest first."""

    flagged: tuple[Row, ...]
    passed: tuple[Row, ...]


@dataclass(frozen=True)
class Outline:
    """A sweep thinned for drawing, with its 95% bounds: pointwise, and for some 25 thresholds at once."""

    sweep: Sweep
    pointwise: Band
    together: Band


@dataclass(frozen=True)
class Evidence:
    """The definite gold labels of a sample (or of the whole store) beside one detector configuration's scores.

    `rows` are in labelling order: of a sample, those in the unbroken prefix of its queue (counted_labels). Figures are
    weighted by the sample's design; labels of no sample are taken as they are, and so are those with a `caution`, which
    do not describe the traffic (basis). Some labels are in no figure: `refused` are refusals, `undecided` are unsure or
    disputed, `waiting` labels lie behind the first member without a verdict, and `fitted` ones fitted the detector.
    Where only one segment of the traffic is meant (`part`), `elsewhere` are the labels of the rest.
    """

    config: Config
    flag_when: FlagWhen
    sample: Sample | None
    rows: tuple[Row, ...]
    refused: tuple[Row, ...] = ()
    undecided: tuple[Row, ...] = ()
    waiting: int = 0
    caution: Caution | None = None
    fitted: int = 0
    part: Part | None = None
    elsewhere: tuple[Row, ...] = ()

    @cached_property
    def labels(self) -> NDArray[np.bool_]:
        return np.array([row.gold == "hallucinated" for row in self.rows], dtype=bool)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        return np.array([np.nan if row.value is None else row.value for row in self.rows], dtype=float)

    @cached_property
    def design(self) -> Design | None:
        """How the rows were drawn; None for labels that are taken as they are."""
        drawn = None if self.caution else self.sample
        return design_of(drawn, self.rows, (*self.refused, *self.undecided, *self.elsewhere))

    @cached_property
    def sweep(self) -> Sweep:
        return sweep(self.labels, self.scores, design=self.design, groups=self.groups, flag_when=self.flag_when)

    @property
    def groups(self) -> list[str | None]:
        """The sources a trace shares with others; None for a trace on its own."""
        return [row.group for row in self.rows]

    @cached_property
    def outline(self) -> Outline:
        """The sweep as charts draw it."""
        thin = self.sweep.thin(MOST_POINTS)
        return Outline(thin, band(thin), simultaneous_band(thin))

    @cached_property
    def steps(self) -> Steps:
        """Every threshold where there are at most MOST_STEPS of them, else so many that keep the curve's shape."""
        thin = self.sweep.thin(MOST_STEPS)
        return Steps(thin, band(thin))

    @cached_property
    def score_weights(self) -> ScoreWeights:
        """The histogram of what the labels stand for; of labels that are taken as they are, their counts."""
        whole = self.sweep
        edges = np.histogram_bin_edges(whole.thresholds, bins=BINS)
        hallucinated, clean = (
            np.histogram(whole.thresholds, bins=edges, weights=np.diff(sums, prepend=0.0))[0]
            for sums in (whole.tp, whole.fp)
        )
        return ScoreWeights(edges, clean, hallucinated)

    @cached_property
    def histogram(self) -> Histogram:
        """The scores by label in bins of equal width. Labels are counted, not weighted; traces without a score are left
        out. Without any score the histogram has no bins."""
        values, labels = self.scores, self.labels
        has_score = ~np.isnan(values)
        if not has_score.any():
            empty = np.zeros(0, dtype=np.int64)
            return Histogram(np.zeros(1), empty, empty)
        edges = np.histogram_bin_edges(values[has_score], bins=BINS)
        clean, _ = np.histogram(values[has_score & ~labels], bins=edges)
        hallucinated, _ = np.histogram(values[has_score & labels], bins=edges)
        return Histogram(edges, clean, hallucinated)

    def nearby(self, threshold: float, *, most: int = 3) -> Nearby:
        """Up to `most` traces on each side of the threshold."""
        side: Literal["left", "right"] = "left" if self.flag_when == "above" else "right"
        place = int(np.searchsorted(self.scores, threshold, side=side, sorter=self._order))
        above = [self.rows[i] for i in self._ascending[place : place + most]]
        below = [self.rows[i] for i in self._ascending[max(0, place - most) : place][::-1]]
        flagged, passed = (above, below) if self.flag_when == "above" else (below, above)
        return Nearby(tuple(flagged), tuple(passed))

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The rows by score, lowest first, those without one last."""
        return np.argsort(self.scores, kind="stable")

    @cached_property
    def _ascending(self) -> NDArray[np.intp]:
        """The rows that have a score, lowest first."""
        return self._order[: np.count_nonzero(~np.isnan(self.scores))]

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Why traces have no score, with counts, most first; "not run yet" where the detector was not asked."""
        counts: dict[str, int] = {}
        for row in self.rows:
            if row.value is None:
                why = "not run yet" if row.status is None else f"{row.status}: {row.reason}"
                counts[why] = counts.get(why, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @cached_property
    def not_run(self) -> int:
        """Labelled traces that the detector was never run on."""
        return sum(row.value is None and row.status is None for row in self.rows)

    def digest(self) -> str:
        """Identifies the label set: the same labels on the same contents have the same digest."""
        return label_set_digest((row.content_hash, str(row.gold)) for row in self.rows)


def design_of(sample: Sample | None, rows: Sequence[Row], outside: Sequence[Row]) -> Design | None:
    """How the rows were drawn, as the estimates need it; None for labels of no sample.

    `outside` are members that were labelled like `rows` and are in no figure: refusals, unsure and disputed ones. The
    figures are of the rest of the traffic, whose size in each stratum is estimated from the labels. Raises BadInput for
    a sample that cannot stand for its traffic.
    """
    if sample is None or not rows:
        return None
    if not sample.parts:
        must_speak_for_all(sample)
    traffic = {
        Stratum(part.id, name): size for part in sample.parts or (sample,) for name, (size, _) in part.strata.items()
    }
    counts = Counter(row.strata for row in rows)
    labels: Counter[Stratum] = Counter()
    for strata, n in (counts + Counter(row.strata for row in outside)).items():
        labels.update({replace(stratum, share=1.0): n for stratum in strata})
    population: dict[tuple[Stratum, ...], int] = {
        (stratum,): size for stratum, size in traffic.items() if not labels[stratum]
    }
    shares = {}
    for strata, n in counts.items():
        shares[strata] = strata[0].share if len(strata) == 1 else 1.0
        # A label of one sample stands for its share of N_h / n_h; a label of several for their shares together.
        each = 0.0
        for stratum in strata:
            whole = replace(stratum, share=1.0)
            each += traffic[whole] / labels[whole] * stratum.share
        population[strata] = max(n, round(each * n / shares[strata]))
    return Design.of([row.strata for row in rows], population, shares)
