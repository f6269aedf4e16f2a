"""Labelled scores by segment, as the curves and their judging need them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.fitting.ridge import expit, fit_ridge, hinge, with_one
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.sweep.design import Bools, Design, Floats, Ints, check_weights
from calibrate.types import FlagWhen

LABELS, OF_EACH = 30, 5
"""Labels with a score, and of either verdict, without which a segment keeps the common threshold."""


@dataclass(frozen=True)
class SegmentRows:
    """Labels of several segments. `suspicious` scores are turned so that higher flags, NaN for none; `segment` is the
    code of each row, -1 for a trace of no segment; `units` are drawn together in a resample."""

    labels: Bools
    suspicious: Floats
    weights: Floats
    segment: Ints
    segments: int
    units: Units

    @classmethod
    def of(
        cls,
        labels: ArrayLike,
        scores: ArrayLike,
        segment: ArrayLike,
        *,
        segments: int,
        flag_when: FlagWhen = "above",
        design: Design | None = None,
        groups: Sequence[Hashable] | None = None,
    ) -> SegmentRows:
        """Rows from labels and raw scores.

        Parameters
        ----------
        labels : array of bool, shape (labels,)
            True for hallucinated.
        scores : array of float, shape (labels,)
            In the detector's units, NaN where it has none.
        segment : array of int, shape (labels,)
            0 to segments - 1, or -1 for none.
        segments : int
            How many there are.
        flag_when : {"above", "below"}
            The detector's suspicious side.
        design : Design, optional
            How the labels were drawn; default: at random.
        groups : sequence of hashable, optional
            The sources that a trace shares with others.

        Returns
        -------
        SegmentRows
            The rows.

        Raises
        ------
        BadInput
            For lengths that differ and unknown codes.
        """
        y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
        code = np.asarray(segment, dtype=np.int64)
        if not y.shape == values.shape == code.shape or y.ndim != 1:
            raise BadInput(
                f"{y.size} labels, {values.size} scores and {code.size} segments: give one of each per label"
            )
        if len(code) and (code.min() < -1 or code.max() >= segments):
            raise BadInput(f"segments must be codes 0 to {segments - 1}, or -1 for none")
        weights = check_weights(None, design, len(y))
        units = Units.among([None] * len(y) if groups is None else groups, None if design is None else design.strata)
        return cls(
            y, suspicion(values, flag_when), np.ones(len(y)) if weights is None else weights, code, segments, units
        )

    def weighted(self, weights: Floats) -> SegmentRows:
        """The same rows with other weights.

        Parameters
        ----------
        weights : array of float, shape (labels,)
            What each label stands for, above 0.

        Returns
        -------
        SegmentRows
            The rows.
        """
        return replace(self, weights=weights)

    @cached_property
    def scored(self) -> Bools:
        return ~np.isnan(self.suspicious)

    @cached_property
    def enough(self) -> Bools:
        """Which segments have enough labels for a threshold of their own, shape (segments,)."""
        rows = self.scored & (self.segment >= 0)
        n = np.bincount(self.segment[rows], minlength=self.segments)
        hits = np.bincount(self.segment[rows & self.labels], minlength=self.segments)
        return np.asarray((n >= LABELS) & (hits >= OF_EACH) & (n - hits >= OF_EACH))

    @cached_property
    def modelled(self) -> Bools:
        """Rows with a score, of segments with enough labels: those that curves are fitted to."""
        inside = self.segment >= 0
        inside[inside] = self.enough[self.segment[inside]]
        return np.asarray(inside & self.scored)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Weighted mean and spread of the modelled scores."""
        values, weights = self.suspicious[self.modelled], self.weights[self.modelled]
        centre = float(np.average(values, weights=weights))
        spread = float(np.sqrt(np.average((values - centre) ** 2, weights=weights)))
        return centre, spread if spread > 0 else 1.0

    def features(self, suspicious: Floats) -> Floats:
        """What a curve sees of scores, shape (scores, 2)."""
        centre, spread = self.scale
        return hinge((suspicious - centre) / spread)

    @cached_property
    def padded(self) -> Ints:
        """The modelled rows of each segment, shape (segments with enough, most rows), -1 for padding."""
        rows = [np.flatnonzero(self.modelled & (self.segment == code)) for code in np.flatnonzero(self.enough)]
        table = np.full((len(rows), max((len(row) for row in rows), default=0)), -1, dtype=np.int64)
        for place, row in enumerate(rows):
            table[place, : len(row)] = row
        return table

    @cached_property
    def information(self) -> Floats:
        """What each row counts in a fit, in labels: weights summing to Kish's effective number of labels in each
        segment, divided by the design effect of shared sources. Zero for rows that are not modelled."""
        counts = np.zeros(len(self.labels))
        for code in np.flatnonzero(self.enough):
            here = self.modelled & (self.segment == code)
            w = self.weights[here]
            counts[here] = w * w.sum() / (w @ w)
        return counts / self._design_effect(counts)

    def _design_effect(self, counts: Floats) -> float:
        """The variance of the scores (derivatives) of the common fit by whole groups, relative to that by rows."""
        rows = np.flatnonzero(self.modelled)
        unit = self.units.of[rows]
        if len(np.unique(unit)) == len(unit):
            return 1.0
        features, y, w = self.features(self.suspicious[rows]), self.labels[rows].astype(np.float64), counts[rows]
        fit = fit_ridge(features, y, w)
        residual = (w * (y - expit(with_one(features) @ fit.coefficients)))[:, None] * with_one(features)[:, :2]
        sums = np.zeros((int(unit.max()) + 1, 2))
        np.add.at(sums, unit, residual)
        alone = (residual**2).sum(0)
        return float(max(1.0, np.mean((sums**2).sum(0) / np.maximum(alone, 1e-12))))
