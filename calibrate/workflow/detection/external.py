"""External detectors: those whose scores a team computes elsewhere. What takes them in stands beside the import of
traces, which may bring some along."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.types import ExternalDetector
from calibrate.workflow.traces.external_scores import (
    Bound,
    Fate,
    Intake,
    TakenScores,
    define_external,
    name_of,
    plan_external,
    remove_external,
    take_scores,
)
from db import Store

__all__ = [
    "Bound", "Fate", "Intake", "TakenScores", "Undefined", "count_scored", "define_external", "name_of",
    "plan_external", "remove_external", "take_scores", "undefined_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Undefined:
    """An external detector of which nobody has said which scores are suspicious: `scored` traces have one, and their
    lowest, middle and highest value."""

    detector: ExternalDetector
    scored: int
    low: float | None
    median: float | None
    high: float | None


def undefined_of(store: Store) -> tuple[Undefined, ...]:
    """The external detectors that wait for their direction, by name."""
    rows = []
    for detector in store.external.all():
        if detector.flag_when is None:
            values = store.external.spread(detector.name, detector.revision)
            rows.append(Undefined(detector, count_scored(store, detector), *(values or (None, None, None))))
    return tuple(rows)


def count_scored(store: Store, detector: ExternalDetector) -> int:
    """How many traces have a score of the detector's newest revision."""
    configs = [config for config in store.scores.configs(detector.name) if config.revision == detector.revision]
    return sum(store.scores.count_outcomes(config.id) for config in configs)
