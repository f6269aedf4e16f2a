"""Resamples of a stratified draw that reckon with what it has not seen.

Where one label stands for a hundred traces, the few hallucinated labels of the low strata decide how good a ranking is,
and a bootstrap, which draws only what was seen, takes "none seen" for "there is none" (docs/adr/0006 has what its
percentiles hold). Here rows get weights of the Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981), whole groups
within the strata they lie in, and half a hallucinated label is added in the heaviest stratum, at the scores of any
clean label there: what Jeffreys' interval adds to a count, and `stratified_intervals` to recall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrate.stats.intervals.bootstrap import BLOCK, Units
from calibrate.stats.sweep.design import Bools, Floats, Ints


@dataclass(frozen=True)
class Unseen:
    """Column j of a resample is the labelled trace `rows[j]` with the verdict `labels[j]`: first the labelled traces as
    they are, then those that lend their scores to a label that was not seen. `units` and `weights` are those of the
    labelled traces, `lent` is what a label that was not seen stands for."""

    rows: Ints
    labels: Bools
    units: Units
    weights: Floats
    lent: float

    @classmethod
    def of(cls, labels: Bools, weights: Floats | None, units: Units, strata: Ints | None) -> Unseen | None:
        """`weights` as of the design, one value in a stratum; `units` are drawn whole, within the strata they were made
        with. None where all labels weigh the same: one that they are like has been seen."""
        if strata is None or weights is None or not len(weights) or np.ptp(weights) == 0:
            return None
        heaviest = strata == strata[np.argmax(weights)]
        lend = np.flatnonzero(heaviest & ~labels)
        lend = lend if len(lend) else np.flatnonzero(heaviest)
        rows, verdicts = np.append(np.arange(len(labels)), lend), np.append(labels, np.ones(len(lend), dtype=bool))
        return cls(rows, verdicts, units, weights, float(weights.max()))

    def added(self) -> Iterator[Floats]:
        """The weights with each label that was not seen added whole, shape (lenders, columns), some at a time."""
        many, step = len(self.weights), max(1, BLOCK // len(self.rows))
        for begun in range(many, len(self.rows), step):
            column = np.arange(begun, min(begun + step, len(self.rows)))
            block = np.zeros((len(column), len(self.rows)))
            block[:, :many] = self.weights
            block[np.arange(len(column)), column] = self.lent
            yield block

    def drawn(self, count: int, rng: np.random.Generator) -> Iterator[Floats]:
        """How many traces each column stands for in every resample, shape (resamples, columns), some at a time."""
        sizes = self.units.sizes[self.units.sizes > 0]
        starts, lenders = np.cumsum(sizes) - sizes, len(self.rows) - len(self.weights)
        step = max(1, BLOCK // len(self.rows))
        for begun in range(0, count, step):
            block = min(step, count - begun)
            each = rng.standard_gamma(1.0, (block, int(sizes.sum())))
            each *= np.repeat(sizes / np.add.reduceat(each, starts, axis=1), sizes, axis=1)
            half = np.zeros((block, lenders))
            half[np.arange(block), rng.integers(0, lenders, block)] = rng.standard_gamma(0.5, block) * self.lent
            yield np.concatenate([each[:, self.units.of] * self.weights, half], axis=1)
