"""How a sample was drawn: what a store remembers, so that the same pool can be drawn from again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of the store: traces, labels and samples up to these keys, scores up to this time. A pool ignores what is
    newer, so that a sample is topped up from the traces it was drawn from."""

    trace: int
    label: int
    sample: int
    time: datetime

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "time": self.time.isoformat()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Moment:
        time = datetime.fromisoformat(document["time"])
        return cls(int(document["trace"]), int(document["label"]), int(document["sample"]), time)


@dataclass(frozen=True, slots=True)
class DrawnCut:
    """The threshold that a sample was drawn by, of one stored configuration of the detector `name`. Members of the
    samples `apart` (their keys) were not drawn again."""

    config_id: int
    name: str
    threshold: float
    apart: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedBy:
    """One detector of the ranking that a sample was drawn by, with the scale its scores were put on."""

    id: int
    name: str
    sign: float
    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class TopUp:
    more: int
    seed: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody said of how imported traces were chosen: "random", "flagged", "feedback", or that it is unknown."""

    design: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """How a design told its strata apart.

    `at` is None for samples drawn before it was kept: they cannot be topped up. `bands` are the strata of a ranking,
    each with the lowest and the highest value in it. `fresh`: only traces without a label and in no sample were drawn.
    `of` is the sample that members were chosen from to be labelled a second time. `stated` is what was said of an
    imported sample's design, the newest last; none for one that was drawn here.
    """

    at: Moment | None = None
    cut: DrawnCut | None = None
    fresh: bool = False
    configs: tuple[RankedBy, ...] = ()
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    top_ups: tuple[TopUp, ...] = ()
    of: str | None = None
    stated: tuple[Statement, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As a store keeps it: without what the design has no use for."""
        document = {
            "at": self.at and self.at.to_json(),
            "cut": self.cut and {**asdict(self.cut), "apart": list(self.cut.apart)},
            "fresh": self.fresh,
            "configs": [asdict(config) for config in self.configs],
            "bands": {name: list(bounds) for name, bounds in self.bands.items()},
            "top_ups": [{**asdict(top_up), "at": top_up.at.isoformat()} for top_up in self.top_ups],
            "of": self.of,
            "stated": [{**asdict(statement), "at": statement.at.isoformat()} for statement in self.stated],
        }
        return {name: value for name, value in document.items() if value}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SampleOptions:
        at, cut = document.get("at"), document.get("cut")
        return cls(
            at=Moment.from_json(at) if at else None,
            cut=DrawnCut(**{**cut, "apart": tuple(cut.get("apart", ()))}) if cut else None,
            fresh=bool(document.get("fresh", False)),
            configs=tuple(RankedBy(**config) for config in document.get("configs", ())),
            bands={name: (low, high) for name, (low, high) in document.get("bands", {}).items()},
            top_ups=tuple(
                TopUp(top_up["more"], top_up["seed"], datetime.fromisoformat(top_up["at"]))
                for top_up in document.get("top_ups", ())
            ),
            of=document.get("of"),
            stated=tuple(
                Statement(row["design"], row["by"], datetime.fromisoformat(row["at"]))
                for row in document.get("stated", ())
            ),
        )
