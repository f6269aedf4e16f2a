"""The labels behind a release: which, how many, and how their traces were drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from calibrate.thresholds.fields import check_extra, format_time, parse_time, select_extra, to_utc


@dataclass(frozen=True)
class Window:
    """The time that the sample was drawn from: since <= t < until, UTC, whole seconds. None: open on that side."""

    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "since", self.since and to_utc(self.since))
        object.__setattr__(self, "until", self.until and to_utc(self.until))


@dataclass(frozen=True)
class Drawn:
    """How a sample was drawn: `size` traces from a `pool` of so many.

    `strata` maps each stratum to (traces in it, traces drawn); `by` names what the strata divide.
    """

    design: str
    by: str | None
    pool: int
    size: int
    strata: Mapping[str, tuple[int, int]]

    def __post_init__(self) -> None:
        strata = {name: (int(population), int(drawn)) for name, (population, drawn) in self.strata.items()}
        object.__setattr__(self, "strata", strata)

    def __str__(self) -> str:
        return f"{self.design}, {self.size:,} of {self.pool:,}"


@dataclass(frozen=True)
class Data:
    """The labels behind the figures: `n` of them, `positives` hallucinated.

    `models` are the model versions of the labelled traces, `samples` the samples by name. `sample` and `design` belong
    to the only sample; None if there are several or none.
    """

    sample: str | None
    design: str | None
    label_set_digest: str
    n: int
    positives: int
    window: Window | None = None
    models: tuple[str, ...] = ()
    samples: Mapping[str, Drawn] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))
        object.__setattr__(self, "extra", check_extra(self.extra))

    def to_json(self) -> dict[str, Any]:
        samples = {
            name: {**asdict(drawn), "strata": {stratum: list(sizes) for stratum, sizes in drawn.strata.items()}}
            for name, drawn in self.samples.items()
        }
        return {
            "sample": self.sample,
            "design": self.design,
            "label_set_digest": self.label_set_digest,
            "n": self.n,
            "positives": self.positives,
            "window": self.window
            and {"since": format_time(self.window.since), "until": format_time(self.window.until)},
            "models": list(self.models),
            **({"samples": samples} if samples else {}),
            **self.extra,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Data:
        window = data["window"] and Window(parse_time(data["window"]["since"]), parse_time(data["window"]["until"]))
        samples = {
            name: Drawn(drawn["design"], drawn["by"], int(drawn["pool"]), int(drawn["size"]), drawn["strata"])
            for name, drawn in data.get("samples", {}).items()
        }
        return cls(
            sample=data["sample"],
            design=data["design"],
            label_set_digest=data["label_set_digest"],
            n=int(data["n"]),
            positives=int(data["positives"]),
            window=window,
            models=tuple(data["models"]),
            samples=samples,
            extra=select_extra(data),
        )
