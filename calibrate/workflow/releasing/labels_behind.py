"""The labels that saved points were measured on, as they stand now: how many, what is open, what that could change."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.errors import BadInput
from calibrate.stats.labels.undecided import Settled
from calibrate.types import merged_name
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.evidence.undecided import settled_at
from db import Store
from db.points import SavedPoint


@dataclass(frozen=True, slots=True)
class LabelsBehind:
    """The labels of a point, of `samples` (none: of no sample), and what undecided ones could make of its figures."""

    samples: tuple[str, ...]
    evidence: LabelsAtHand
    settled: Settled | None

    @property
    def sample(self) -> str | None:
        """The samples as people name them."""
        return merged_name(self.samples) if self.samples else None


def labels_behind(store: Store, saved: SavedPoint) -> LabelsBehind | None:
    """Look at the labels of a saved point; None where its samples are no longer in the store, or cannot be merged."""
    names, point = saved.data.samples, saved.point
    try:
        config = store.scores.get_config(saved.config_id)
        data = loading.load_evidence(store, saved.detector, sample=names, config=config)
    except (BadInput, KeyError):
        return None
    samples = data.sample.names if data.sample else ()
    return LabelsBehind(samples, labels_at_hand(store, data.sample), settled_at(data, point.threshold))
