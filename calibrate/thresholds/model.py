"""A release of thresholds as frozen dataclasses.

Mappings inside are copies; treat them as read-only, because what the runtime precomputes from them is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from calibrate.errors import BadInput
from calibrate.thresholds.canonical import plain
from calibrate.types import FlagWhen, Interval, OperatingPoint, Tier


class Rule(NamedTuple):
    """What a runtime needs of one detector."""

    detector: str
    threshold: float
    flag_when: FlagWhen
    tier: Tier


@dataclass(frozen=True)
class Metrics:
    """What was measured at the threshold, on `n` labels of which `positives` are hallucinated."""

    precision: Interval
    recall: Interval
    fpr: Interval
    flag_rate: Interval
    n: int
    positives: int
    confidence: float = 0.95


@dataclass(frozen=True)
class DetectorEntry:
    """One detector's threshold with all that is needed to score and to defend it.

    `threshold` is in the detector's own units; `revision` names the models behind the score ("" for none); `coverage`
    is the share of labelled traces it could score; `extra` holds `x-` keys, which never change a decision.
    """

    version: str
    params: Mapping[str, Any]
    revision: str
    flag_when: FlagWhen
    threshold: float
    tier: Tier
    policy: str
    metrics: Metrics
    coverage: float
    feasible: bool
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # + 0.0 turns -0.0 into 0.0: JSON readers and the digest do not tell them apart.
        object.__setattr__(self, "threshold", float(self.threshold) + 0.0)
        object.__setattr__(self, "params", plain(self.params, "params"))
        object.__setattr__(self, "extra", _only_x(self.extra))

    @classmethod
    def from_point(
        cls, point: OperatingPoint, *, version: str, params: Mapping[str, Any], revision: str, tier: Tier = "signal"
    ) -> DetectorEntry:
        """The entry of a chosen operating point."""
        metrics = Metrics(point.precision, point.recall, point.fpr, point.flag_rate, point.n, point.positives)
        return cls(
            version, params, revision, point.flag_when, point.threshold, tier, point.policy, metrics,
            point.coverage, point.feasible,
        )  # fmt: skip


@dataclass(frozen=True)
class Window:
    """The time the sample was drawn from: since <= t < until, UTC, whole seconds. None: open on that side."""

    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "since", self.since and _utc(self.since))
        object.__setattr__(self, "until", self.until and _utc(self.until))


@dataclass(frozen=True)
class Data:
    """The labels behind the figures. `models` are the model versions seen among the labelled traces."""

    sample: str | None
    design: str | None
    label_set_digest: str
    n: int
    positives: int
    window: Window | None = None
    models: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))
        object.__setattr__(self, "extra", _only_x(self.extra))


@dataclass(frozen=True)
class ThresholdsFile:
    """One release. `baselines` maps model, then detector, to the statistics that detector normalises by."""

    version: int
    released_at: datetime
    released_by: str
    note: str
    replaces: int | None
    detectors: Mapping[str, DetectorEntry]
    data: Data
    baselines: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "released_at", _utc(self.released_at))
        object.__setattr__(self, "detectors", dict(self.detectors))
        object.__setattr__(self, "baselines", plain(self.baselines, "baselines"))
        object.__setattr__(self, "extra", _only_x(self.extra))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The detectors that may flag, by name. Tier `off` is left out: such a detector is not asked."""
        live = (item for item in sorted(self.detectors.items()) if item[1].tier != "off")
        return tuple(Rule(name, entry.threshold, entry.flag_when, entry.tier) for name, entry in live)


def _only_x(extra: Mapping[str, Any]) -> Any:
    for key in extra:
        if not key.startswith("x-"):
            raise BadInput(f"extra key {key!r} must begin with x-")
    return plain(extra, "extra")


def _utc(moment: datetime) -> datetime:
    """UTC in whole seconds: one instant, one spelling."""
    if moment.tzinfo is None:
        raise BadInput(f"{moment} has no time zone: give an aware time, best in UTC")
    return moment.astimezone(UTC).replace(microsecond=0)
