"""Samples: which traces are meant, and which of them were drawn for labelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from calibrate.types.drawing import SampleOptions

LabelState = Literal["any", "unlabelled", "labelled", "clean", "hallucinated", "unsure", "disputed"]


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces are meant. Times are aware UTC, `since` inclusive, `until` exclusive.

    Undated traces are outside every time window; they are in only when `undated` is true. Attribute values are
    compared as text. `text` is looked for in question and answer, ignoring case. With `unpurged_at`, traces that were
    purged by then are left out: a sample is drawn from those that somebody can read.
    """

    since: datetime | None = None
    until: datetime | None = None
    undated: bool = True
    models: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    label: LabelState = "any"
    text: str | None = None
    unpurged_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
            "undated": self.undated,
            "models": list(self.models),
            "operations": list(self.operations),
            "attributes": dict(self.attributes),
            "label": self.label,
            "text": self.text,
            **({"unpurged_at": self.unpurged_at.isoformat()} if self.unpurged_at else {}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TraceFilter:
        times = {
            key: datetime.fromisoformat(document[key]) if document.get(key) else None
            for key in ("since", "until", "unpurged_at")
        }
        return cls(
            since=times["since"],
            until=times["until"],
            undated=bool(document.get("undated", True)),
            models=tuple(document.get("models", ())),
            operations=tuple(document.get("operations", ())),
            attributes=dict(document.get("attributes", {})),
            label=document.get("label", "any"),
            text=document.get("text"),
            unpurged_at=times["unpurged_at"],
        )


@dataclass(frozen=True, slots=True)
class Member:
    """One trace of a sample: its place in the labelling order, its stratum and inclusion probability (0, 1]."""

    trace_pk: int
    inclusion_probability: float
    stratum: str


@dataclass(frozen=True, slots=True, order=True)
class Stratum:
    """A stratum of a drawn sample (by its key), and the share of its traces that a label speaks for.

    The share is below 1 where the label of another sample, taken together with this one, speaks for the rest.
    """

    sample: int
    name: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A set of traces drawn for labelling. `strata` maps a stratum to [population, drawn]; `options` says how its
    design told the strata apart, so that it can be topped up.

    Several samples taken as one are `parts` of a sample that is not stored: its `id` is 0, it has no strata of its own.
    """

    id: int
    name: str
    design: str
    by: str | None
    size: int
    seed: int
    pool: int
    undated: int
    filter: TraceFilter
    strata: Mapping[str, tuple[int, int]]
    created_at: datetime
    options: SampleOptions = field(default_factory=SampleOptions)
    parts: tuple[Sample, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the stored samples that it consists of."""
        return tuple(part.name for part in self.parts) or (self.name,)


def merged_name(names: Sequence[str]) -> str:
    """What people call several samples as one: "W46 + W47". To show, never to be split again."""
    return " + ".join(names)
