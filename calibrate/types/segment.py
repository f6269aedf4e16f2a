"""Segments: parts of the traffic, by what a trace says of itself, that may have thresholds of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from calibrate.errors import BadInput
from calibrate.types.point import Guarantee, Interval
from calibrate.types.sample import TraceFilter

ATTRIBUTE = "attributes."
"""What tells the segments apart by a logged attribute begins so: "attributes.tier"."""


class Segmented(Protocol):
    """What a segment is read from: a trace, or anything that holds the same of one."""

    @property
    def operation(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class SegmentThreshold:
    """A detector's threshold in one segment, in its own units, with what was measured there.

    `n` labels of the segment were used, `positives` of them hallucinated. `precision` and `recall` are of the segment;
    `Interval(None)` where nothing was measured.
    """

    threshold: float
    n: int
    positives: int
    precision: Interval
    recall: Interval
    guarantee: Guarantee | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One segment of the traffic: `by` what segments are told apart, and its name."""

    by: str
    name: str

    def within(self, where: TraceFilter) -> TraceFilter:
        """The traces of this segment among those that are meant."""
        if self.by == "operation":
            return replace(where, operations=(self.name,))
        if self.by == "model":
            return replace(where, models=(self.name,))
        return replace(where, attributes={**where.attributes, self.by.removeprefix(ATTRIBUTE): self.name})


@dataclass(frozen=True)
class Segments:
    """A detector's thresholds per segment: `by` what the segments are told apart, and each one's threshold.

    A trace of another segment, or of none, is decided by the detector's common threshold. The figures of a detector
    that has segments are those of all its traffic, each trace decided by the threshold of its segment.
    """

    by: str
    thresholds: Mapping[str, SegmentThreshold]


def names_segments(by: str) -> bool:
    """Whether segments can be told apart so: "operation", "model", "language" or "attributes.NAME"."""
    return by in ("operation", "model", "language") or (by.startswith(ATTRIBUTE) and by != ATTRIBUTE)


def segment_of(trace: Segmented, by: str) -> str | None:
    """The segment of a trace; None where it does not say.

    "language" is the logged attribute of this name. Attributes count as text: true is "true", 3 is "3".
    """
    if by == "operation":
        return trace.operation or None
    if by == "model":
        return trace.model or None
    if names_segments(by):
        return attribute_text(trace.attributes.get(by.removeprefix(ATTRIBUTE))) or None
    raise BadInput(f"segments cannot be told apart by {by!r}; use operation, model, language or attributes.NAME")


def attribute_text(value: object) -> str | None:
    """The text that an attribute is compared as; None for none."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
