"""A release of thresholds as frozen dataclasses, and its JSON document: `from_json(to_json(file)) == file`.

Mappings inside are copies; treat them as read-only, because what the runtime precomputes from them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from calibrate.orientation import MEETS, SIGNS
from calibrate.probability import JudgedMap
from calibrate.thresholds.canonical import digest_of, plain
from calibrate.thresholds.canonical import label_set_digest as label_set_digest
from calibrate.thresholds.checks import FORMAT, check
from calibrate.thresholds.data import Data as Data
from calibrate.thresholds.data import Drawn as Drawn
from calibrate.thresholds.data import Window as Window
from calibrate.thresholds.ensembles import EnsembleEntry
from calibrate.thresholds.fields import extra_of, figure, figures, number, only_x, text, utc
from calibrate.types import FlagWhen, Guarantee, Interval, OperatingPoint, Strength, Tier

_FIGURES = ("precision", "recall", "fpr", "flag_rate")


class Rule(NamedTuple):
    """What a runtime needs of one detector. `meets` is the comparison of its `flag_when`; a reason is `before`, the
    score, `after`: "citation_grounding 0.41 ≤ 0.52". Tier `off`: it does not flag, and is asked for an ensemble."""

    detector: str
    threshold: float
    meets: Callable[[float, float], bool]
    tier: Tier
    before: str
    after: str


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
class Sampling:
    """On which traces production runs a detector: a `rate` (0, 1] of those that have all the attributes `only_when`,
    compared as text. It says what to run, and changes no decision: a score that was not made is missing."""

    rate: float = 1.0
    only_when: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", float(self.rate))
        object.__setattr__(self, "only_when", plain(self.only_when, "only_when"))

    def __str__(self) -> str:
        where = ", ".join(f"{name}={value}" for name, value in sorted(self.only_when.items()))
        return f"{100 * self.rate:.10g}% of {where or 'all traces'}"


@dataclass(frozen=True)
class DetectorEntry:
    """One detector's threshold with all that is needed to score and to defend it.

    `threshold` is in the detector's own units; `revision` names the models behind the score ("" for none); `coverage`
    is the share of labelled traces it could score; `guarantee` is what is more than measured about its precision;
    `probability_map` turns a score into P(hallucinated); `sampling` says on which traces production runs it (None: on
    all); `extra` holds `x-` keys, which never change a decision.
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
    sampling: Sampling | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # + 0.0 turns -0.0 into 0.0: JSON readers and the digest do not tell them apart.
        object.__setattr__(self, "threshold", float(self.threshold) + 0.0)
        object.__setattr__(self, "params", plain(self.params, "params"))
        if self.sampling == Sampling():  # all of all: as if none were given
            object.__setattr__(self, "sampling", None)
        object.__setattr__(self, "extra", only_x(self.extra))

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
class ThresholdsFile:
    """One release. `baselines` maps model, then detector, to the statistics that detector normalises by; `ensembles`
    are several detectors as one decision, by name."""

    version: int
    released_at: datetime
    released_by: str
    note: str
    replaces: int | None
    detectors: Mapping[str, DetectorEntry]
    data: Data
    baselines: Mapping[str, Any] = field(default_factory=dict)
    ensembles: Mapping[str, EnsembleEntry] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "released_at", utc(self.released_at))
        object.__setattr__(self, "detectors", dict(self.detectors))
        object.__setattr__(self, "baselines", plain(self.baselines, "baselines"))
        object.__setattr__(self, "ensembles", dict(self.ensembles))
        object.__setattr__(self, "extra", only_x(self.extra))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The detectors that are asked, by name: those that may flag, and the members of ensembles that may."""
        members = {name for _, entry in self.live_ensembles for name in entry.members}
        asked = (item for item in sorted(self.detectors.items()) if item[1].tier != "off" or item[0] in members)
        return tuple(
            Rule(name, it.threshold, MEETS[it.flag_when], it.tier, f"{name} ", f" {it.limit}") for name, it in asked
        )

    @cached_property
    def live_ensembles(self) -> tuple[tuple[str, EnsembleEntry], ...]:
        """The ensembles that may fire, by name."""
        return tuple((name, entry) for name, entry in sorted(self.ensembles.items()) if entry.live)


def to_json(file: ThresholdsFile) -> dict[str, Any]:
    """The document, digest included. It is not checked here: `checks.check` and every write do that."""
    # Left out where there is none, never empty: one meaning, one spelling, one digest.
    ensembles = {name: entry.to_json() for name, entry in file.ensembles.items()}
    document = {
        "touchstone_thresholds": FORMAT,
        "version": file.version,
        "released_at": text(file.released_at),
        "released_by": file.released_by,
        "note": file.note,
        "replaces": file.replaces,
        "detectors": {name: _entry_to_json(entry) for name, entry in file.detectors.items()},
        **({"ensembles": ensembles} if ensembles else {}),
        "data": file.data.to_json(),
        "baselines": dict(file.baselines),
        **file.extra,
    }
    return {**document, "digest": digest_of(document)}


def from_json(document: Any, name: str = "thresholds file") -> ThresholdsFile:
    """The release a document holds. Raises BadThresholds, naming it, unless the document is whole and unchanged."""
    check(document, name)
    return ThresholdsFile(
        version=int(document["version"]),  # 3.0 is an integer in JSON
        released_at=datetime.fromisoformat(document["released_at"]),
        released_by=document["released_by"],
        note=document["note"],
        replaces=None if document["replaces"] is None else int(document["replaces"]),
        detectors={name: _entry_from_json(entry) for name, entry in document["detectors"].items()},
        data=Data.from_json(document["data"]),
        baselines=document["baselines"],
        ensembles={name: EnsembleEntry.from_json(one) for name, one in document.get("ensembles", {}).items()},
        extra=extra_of(document),
    )


def _entry_to_json(entry: DetectorEntry) -> dict[str, Any]:
    metrics = entry.metrics
    # Left out where there is none, never null: one meaning, one spelling, one digest.
    guarantee = {} if entry.guarantee is None else {"guarantee": _guarantee_to_json(entry.guarantee)}
    mapped = {} if entry.probability_map is None else {"probability_map": entry.probability_map.to_json()}
    sampling = {} if entry.sampling is None else {"sampling": asdict(entry.sampling)}
    return {
        "version": entry.version,
        "params": dict(entry.params),
        "revision": entry.revision,
        "flag_when": entry.flag_when,
        "threshold": entry.threshold,
        "tier": entry.tier,
        "policy": entry.policy,
        "metrics": {
            **{name: figure(getattr(metrics, name)) for name in _FIGURES},
            "n": metrics.n,
            "positives": metrics.positives,
            "confidence": number(metrics.confidence),
        },
        "coverage": number(entry.coverage),
        "feasible": entry.feasible,
        **sampling,
        **guarantee,
        **mapped,
        **entry.extra,
    }


def _entry_from_json(entry: Mapping[str, Any]) -> DetectorEntry:
    measured = entry["metrics"]
    counts = {"n": int(measured["n"]), "positives": int(measured["positives"])}
    metrics = Metrics(**figures(measured, _FIGURES), **counts, confidence=float(measured["confidence"]))  # type: ignore[arg-type]
    names = ("version", "params", "revision", "flag_when", "threshold", "tier", "policy", "feasible")
    known = {name: entry[name] for name in names}
    guarantee = _guarantee_from_json(entry["guarantee"]) if "guarantee" in entry else None
    mapped = JudgedMap.from_json(entry["probability_map"]) if "probability_map" in entry else None
    sampling = Sampling(**entry["sampling"]) if "sampling" in entry else None
    return DetectorEntry(
        **known,
        metrics=metrics,
        coverage=float(entry["coverage"]),
        guarantee=guarantee,
        probability_map=mapped,
        sampling=sampling,
        extra=extra_of(entry),
    )


def _guarantee_to_json(given: Guarantee) -> dict[str, Any]:
    return {**asdict(given), **{name: number(getattr(given, name)) for name in ("target", "confidence", "bound")}}


def _guarantee_from_json(given: Mapping[str, Any]) -> Guarantee:
    shares = {name: float(given[name]) for name in ("target", "confidence", "bound")}
    counts = {name: int(given[name]) for name in ("labels", "hallucinated")}
    return Guarantee(strength=given["strength"], sample=given["sample"], **shares, **counts)  # type: ignore[arg-type]
