"""What a detector finds of each kind of error."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.stats.labels.by_kind import KindRecall, recall_by_kind
from calibrate.workflow.evidence.evidence import Evidence
from db import Store


@dataclass(frozen=True, slots=True)
class KindFigures:
    """Recall by kind at a threshold, of `hallucinated` labels, `without` of which have no kind."""

    threshold: float
    kinds: tuple[KindRecall, ...]
    hallucinated: int
    without: int


def figures_by_kind(store: Store, data: Evidence, threshold: float) -> KindFigures:
    """Measure a detector's recall by kind of error, on the labels that count and as their sample was drawn.

    A trace has the kinds of its labels and of their spans (`db.labels.Labels.kinds`), and counts in each.
    """
    positives = [row.pk for row in data.rows if row.gold == "hallucinated"]
    stored = store.labels.kinds(positives)
    kinds = recall_by_kind(
        [stored.get(row.pk, ()) for row in data.rows],
        data.labels,
        data.scores,
        threshold,
        design=data.design,
        groups=data.groups,
        flag_when=data.flag_when,
    )
    without = sum(row.labels for row in kinds if row.kind is None)
    return KindFigures(threshold, kinds, len(positives), without)
