"""Detectors whose scores are computed elsewhere and imported: a class for each, as the registry hands it out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, make_dataclass
from functools import lru_cache
from typing import Any, ClassVar

from calibrate.detectors.base import Detector, abstained
from calibrate.types import ExternalDetector, FlagWhen, Score, Trace

UNIT = "as it was imported"


def imported(name: str) -> str:
    """Say that a detector's scores come from elsewhere, and how."""
    return f"its scores are imported: `scores import FILE --detector {name}`"


def undefined(name: str) -> str:
    """Say that nobody has told yet which values of a detector are suspicious."""
    return (
        f"{name} has imported scores, and nobody has said which of them are suspicious: "
        f"`scores define {name} --flag-when above`, or below"
    )


def is_external(detector: Detector | type[Detector]) -> bool:
    """Whether a detector's scores are imported."""
    kind = detector if isinstance(detector, type) else type(detector)
    return bool(getattr(kind, "external", False))


@dataclass(frozen=True)
class Imported:
    """Holds scores that were computed elsewhere and imported. It computes none."""

    definition: ClassVar[ExternalDetector]
    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    flag_when: ClassVar[FlagWhen]
    bounds: ClassVar[tuple[float, float]]
    usual_threshold: ClassVar[float]
    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset()
    external: ClassVar[bool] = True
    scores_refusals: ClassVar[bool] = True  # what was scored elsewhere counts, whatever the answer says

    def revision(self) -> str:
        return self.definition.revision

    def unavailable(self) -> str | None:
        return imported(self.name)

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        for trace in traces:
            yield abstained(trace, imported(self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.definition,)


@lru_cache(maxsize=512)
def make_class(definition: ExternalDetector) -> type[Detector]:
    """The detector that a definition with a direction describes; the same class for the same definition."""
    low = -math.inf if definition.low is None else definition.low
    high = math.inf if definition.high is None else definition.high
    described = {
        "definition": definition,
        "name": definition.name,
        "title": definition.name,
        "unit": definition.unit or UNIT,
        "flag_when": definition.flag_when,
        "bounds": (low, high),
        "usual_threshold": _between(definition.low, definition.high),
        "__doc__": Imported.__doc__,
        "__module__": __name__,
    }
    cls: type[Detector] = make_dataclass("Imported", [], bases=(Imported,), namespace=described, frozen=True)
    return cls


def _between(low: float | None, high: float | None) -> float:
    """Where a threshold may be looked for first: half-way, as no recipe is known."""
    if low is None or high is None:
        return low if low is not None else high if high is not None else 0.0
    return low / 2 + high / 2


def _make(definition: ExternalDetector) -> Detector:
    return make_class(definition)()
