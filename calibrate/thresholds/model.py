"""A release of thresholds as frozen dataclasses, and its JSON document: `from_json(to_json(file)) == file`.

Mappings inside are copies; treat them as read-only, because what the runtime precomputes from them is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from calibrate.errors import BadInput
from calibrate.flagging import SIGNS
from calibrate.probability import JudgedMap
from calibrate.thresholds.canonical import digest_of, plain
from calibrate.thresholds.canonical import label_set_digest as label_set_digest
from calibrate.thresholds.checks import FORMAT, check
from calibrate.types import FlagWhen, Guarantee, Interval, OperatingPoint, Strength, Tier


class Rule(NamedTuple):
    """What a runtime needs of one detector. `limit` is the threshold in words: "≤ 0.52"."""

    detector: str
    threshold: float
    flag_when: FlagWhen
    tier: Tier
    limit: str


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
    is the share of labelled traces it could score; `guarantee` is what is more than measured about its precision;
    `probability_map` turns a score into P(hallucinated); `extra` holds `x-` keys, which never change a decision.
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
    guarantee: Guarantee | None = None
    probability_map: JudgedMap | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # + 0.0 turns -0.0 into 0.0: JSON readers and the digest do not tell them apart.
        object.__setattr__(self, "threshold", float(self.threshold) + 0.0)
        object.__setattr__(self, "params", plain(self.params, "params"))
        object.__setattr__(self, "extra", _only_x(self.extra))

    @property
    def limit(self) -> str:
        """The threshold in words: "≤ 0.52"."""
        return f"{SIGNS[self.flag_when]} {self.threshold:.4g}"

    @property
    def strength(self) -> Strength:
        """How sure its precision is; without a guarantee, `measured`."""
        return self.guarantee.strength if self.guarantee else "measured"

    @classmethod
    def from_point(
        cls, point: OperatingPoint, *, version: str, params: Mapping[str, Any], revision: str, tier: Tier = "signal"
    ) -> DetectorEntry:
        """The entry of a chosen operating point."""
        metrics = Metrics(point.precision, point.recall, point.fpr, point.flag_rate, point.n, point.positives)
        return cls(
            version, params, revision, point.flag_when, point.threshold, tier, point.policy, metrics,
            point.coverage, point.feasible, point.guarantee,
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
        return tuple(Rule(name, it.threshold, it.flag_when, it.tier, it.limit) for name, it in live)


def to_json(file: ThresholdsFile) -> dict[str, Any]:
    """The document, digest included. It is not checked here: `checks.check` and every write do that."""
    data = file.data
    document = {
        "touchstone_thresholds": FORMAT,
        "version": file.version,
        "released_at": _text(file.released_at),
        "released_by": file.released_by,
        "note": file.note,
        "replaces": file.replaces,
        "detectors": {name: _entry_to_json(entry) for name, entry in file.detectors.items()},
        "data": {
            "sample": data.sample,
            "design": data.design,
            "label_set_digest": data.label_set_digest,
            "n": data.n,
            "positives": data.positives,
            "window": data.window and {"since": _text(data.window.since), "until": _text(data.window.until)},
            "models": list(data.models),
            **data.extra,
        },
        "baselines": dict(file.baselines),
        **file.extra,
    }
    return {**document, "digest": digest_of(document)}


def from_json(document: Any, name: str = "thresholds file") -> ThresholdsFile:
    """The release a document holds. Raises BadThresholds, naming it, unless the document is whole and unchanged."""
    check(document, name)
    data = document["data"]
    window = data["window"] and Window(_time(data["window"]["since"]), _time(data["window"]["until"]))
    return ThresholdsFile(
        version=int(document["version"]),  # 3.0 is an integer in JSON
        released_at=datetime.fromisoformat(document["released_at"]),
        released_by=document["released_by"],
        note=document["note"],
        replaces=None if document["replaces"] is None else int(document["replaces"]),
        detectors={name: _entry_from_json(entry) for name, entry in document["detectors"].items()},
        data=Data(
            sample=data["sample"],
            design=data["design"],
            label_set_digest=data["label_set_digest"],
            n=int(data["n"]),
            positives=int(data["positives"]),
            window=window,
            models=tuple(data["models"]),
            extra=_extra(data),
        ),
        baselines=document["baselines"],
        extra=_extra(document),
    )


def _entry_to_json(entry: DetectorEntry) -> dict[str, Any]:
    metrics = entry.metrics
    figures = {name: getattr(metrics, name) for name in ("precision", "recall", "fpr", "flag_rate")}
    # Left out where there is none, never null: one meaning, one spelling, one digest.
    guarantee = {} if entry.guarantee is None else {"guarantee": _guarantee_to_json(entry.guarantee)}
    mapped = {} if entry.probability_map is None else {"probability_map": entry.probability_map.to_json()}
    return {
        "version": entry.version,
        "params": dict(entry.params),
        "revision": entry.revision,
        "flag_when": entry.flag_when,
        "threshold": entry.threshold,
        "tier": entry.tier,
        "policy": entry.policy,
        "metrics": {
            **{name: _figure(interval) for name, interval in figures.items()},
            "n": metrics.n,
            "positives": metrics.positives,
            "confidence": _float(metrics.confidence),
        },
        "coverage": _float(entry.coverage),
        "feasible": entry.feasible,
        **guarantee,
        **mapped,
        **entry.extra,
    }


def _entry_from_json(entry: Mapping[str, Any]) -> DetectorEntry:
    measured = entry["metrics"]
    figures = {
        name: Interval(*(_float(measured[name][end]) for end in ("value", "low", "high")))
        for name in ("precision", "recall", "fpr", "flag_rate")
    }
    counts = {"n": int(measured["n"]), "positives": int(measured["positives"])}
    metrics = Metrics(**figures, **counts, confidence=float(measured["confidence"]))  # type: ignore[arg-type]
    names = ("version", "params", "revision", "flag_when", "threshold", "tier", "policy", "feasible")
    known = {name: entry[name] for name in names}
    guarantee = _guarantee_from_json(entry["guarantee"]) if "guarantee" in entry else None
    mapped = JudgedMap.from_json(entry["probability_map"]) if "probability_map" in entry else None
    return DetectorEntry(
        **known,
        metrics=metrics,
        coverage=float(entry["coverage"]),
        guarantee=guarantee,
        probability_map=mapped,
        extra=_extra(entry),
    )


def _guarantee_to_json(given: Guarantee) -> dict[str, Any]:
    return {**asdict(given), **{name: _float(getattr(given, name)) for name in ("target", "confidence", "bound")}}


def _guarantee_from_json(given: Mapping[str, Any]) -> Guarantee:
    shares = {name: float(given[name]) for name in ("target", "confidence", "bound")}
    counts = {name: int(given[name]) for name in ("labels", "hallucinated")}
    return Guarantee(strength=given["strength"], sample=given["sample"], **shares, **counts)  # type: ignore[arg-type]


def _figure(interval: Interval) -> dict[str, float | None]:
    return {"value": _float(interval.value), "low": _float(interval.low), "high": _float(interval.high)}


def _extra(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key.startswith("x-")}


def _float(value: float | None) -> float | None:
    return None if value is None else float(value) + 0.0


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


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
