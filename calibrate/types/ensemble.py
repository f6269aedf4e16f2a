"""An ensemble as it is saved: what a runtime needs of it, and what was known when it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibrate.types.point import Interval, Strength


@dataclass(frozen=True)
class EnsembleMember:
    """Which scores of a detector an ensemble was made from."""

    version: str
    params: Mapping[str, Any]
    revision: str


@dataclass(frozen=True)
class EnsembleCut:
    """From which score on an ensemble flags for a tier, and which `share` of the traffic that is; None: nothing.

    `why` says what keeps the tier without a cut.
    """

    threshold: float | None
    share: float
    strength: Strength = "measured"
    target: float | None = None
    bound: float | None = None
    why: str | None = None


@dataclass(frozen=True)
class EnsembleCuts:
    page: EnsembleCut
    signal: EnsembleCut


@dataclass(frozen=True)
class Shares:
    """What flags find, as shares from 0 to 1 with their 95% intervals."""

    recall: Interval
    precision: Interval
    flag_rate: Interval


@dataclass(frozen=True)
class EnsembleFigures(Shares):
    auroc: Interval


@dataclass(frozen=True)
class BestSingle:
    """The detector that ranks best by itself."""

    detector: str
    figures: Shares


@dataclass(frozen=True)
class EnsembleData:
    """The labels that an ensemble was judged on: of these samples, or every label there was.

    `sample` names the samples together. `traffic` counts the traces that the cut was read from; None: the labels. Of
    the `n` labels `flagged` are flagged out of fold, and `hits` of these are hallucinated: both on average over the
    dealings of the folds. None in an older store.
    """

    sample: str | None
    samples: tuple[str, ...]
    n: int
    positives: int
    traffic: int | None
    label_set_digest: str
    flagged: float | None = None
    hits: float | None = None


@dataclass(frozen=True)
class Ensemble:
    """Several detectors as one decision. `rule` is the rule as the thresholds file has it; `difference` is its recall
    minus the best single detector's; `sentence` and `notes` are what people read of it; `reason` is why it was saved
    though known to be bad."""

    kind: str
    rule: Mapping[str, Any]
    detectors: Mapping[str, EnsembleMember]
    budget: float
    cuts: EnsembleCuts
    figures: EnsembleFigures
    best_single: BestSingle
    difference: Interval
    data: EnsembleData
    sentence: str = ""
    notes: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class SavedEnsemble:
    """An ensemble that somebody saved under a name."""

    id: int
    name: str
    ensemble: Ensemble
    saved_by: str
    saved_at: datetime
