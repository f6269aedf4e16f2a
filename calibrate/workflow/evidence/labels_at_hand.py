"""What stands beside every figure: how far labelling has come, and what the labels say of the traffic."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.types import Interval, Sample
from calibrate.workflow.evidence.basis import caution_of_sample, choose_basis
from calibrate.workflow.evidence.label_counts import LabelCounts, label_counts
from calibrate.workflow.evidence.prevalence import Prevalence, estimate_prevalence
from db import Store


@dataclass(frozen=True, slots=True)
class LabelsAtHand:
    """The labels of a sample, of several merged, or all, and how much of the traffic they call hallucinated: unknown
    where they do not describe it."""

    counts: LabelCounts
    prevalence: Prevalence


def labels_at_hand(store: Store, sample: Sample | None) -> LabelsAtHand:
    """Count the labels, and estimate the share hallucinated; without a sample, of what no name stands for (basis)."""
    if sample is None:
        basis = choose_basis(store, None)
        sample, describes = basis.sample, basis.caution is None
    else:
        describes = not any(caution_of_sample(store, part) for part in sample.parts or (sample,))
    prevalence = estimate_prevalence(store, sample) if describes else Prevalence(Interval(None))
    return LabelsAtHand(label_counts(store, sample), prevalence)
