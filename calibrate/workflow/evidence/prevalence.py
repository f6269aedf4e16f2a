"""How much of the traffic is hallucinated by the labels that count, how well that is known, and what undecided labels
could make of it: one function, so that no two pages differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.stats.intervals.prevalence_interval import prevalence_interval
from calibrate.stats.labels.undecided import Reach, settle
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.stats.sweep.design import Floats
from calibrate.types import Interval, Sample
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.evidence.evidence import design_of
from db import Store
from db.scores import Row


@dataclass(frozen=True, slots=True)
class Prevalence:
    """The `share` hallucinated in the traffic of a sample, by its definite labels and weighted by its design. `settled`
    is how far it could go with the undecided labels settled, all clean to all hallucinated; None where none is."""

    share: Interval
    settled: Reach | None = None


def estimate_prevalence(store: Store, sample: Sample | None) -> Prevalence:
    """Estimate the share hallucinated in a sample's traffic, in that of several merged, or among all labels.

    Of a sample that cannot speak for all traffic it is the share of what that was drawn from.
    """
    counted = count_labels(store, NOBODY, sample)
    rows, every = counted.rows, (*counted.rows, *counted.undecided)
    drawn = sample if sample is None or sample.parts or speaks_for_all(sample) else None
    weights = weights_of(drawn, every)
    settled = None
    if counted.undecided:
        undecided = np.arange(len(every)) >= len(rows)
        settled = settle([row.gold == "hallucinated" for row in every], undecided, weights=weights).prevalence
    if not rows:
        return Prevalence(Interval(None), settled)
    labels = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    value = float(np.average(labels, weights=weights[: len(rows)]))
    design = design_of(drawn, rows, counted.undecided)
    bounds = prevalence_interval(labels, design=design, groups=[row.group for row in rows])
    low, high = (value if bound is None else bound for bound in (bounds.low, bounds.high))
    # The design holds whole traces, so its own share may differ in a far digit.
    return Prevalence(Interval(value, min(low, value), max(high, value)), settled)


def weights_of(sample: Sample | None, rows: Sequence[Row], outside: Sequence[Row] = ()) -> Floats:
    """How many traces of the traffic each row stands for; all 1 for labels of no sample. `outside` as for design_of."""
    design = design_of(sample, rows, outside)
    return np.ones(len(rows)) if design is None else design.weights
