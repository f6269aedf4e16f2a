"""Several detectors as one decision, as the thresholds file has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from calibrate.thresholds.canonical import plain
from calibrate.thresholds.fields import extra_of, figure, figures, number, only_x
from calibrate.types import FlagWhen, Interval

FIGURES = ("precision", "recall", "flag_rate")


@dataclass(frozen=True, slots=True)
class Cuts:
    """From which score of the rule on each tier fires; None: never. `page` is not below `signal`."""

    page: float | None = None
    signal: float | None = None


@dataclass(frozen=True)
class EnsembleMetrics:
    """What was measured at the signal cut, on `n` labels the rule was not fitted on, `positives` hallucinated."""

    precision: Interval
    recall: Interval
    flag_rate: Interval
    n: int
    positives: int
    confidence: float = 0.95


@dataclass(frozen=True)
class EnsembleEntry:
    """A rule over detectors of the release.

    `rule` is the document that calibrate.stats.ensembles.rules.to_json gives: numbers only, all that a runtime needs.
    `members` are the detectors it reads, by name. `budget` is the share of the traffic that the signal cut was to flag.
    """

    rule: Mapping[str, Any]
    members: tuple[str, ...]
    cuts: Cuts
    metrics: EnsembleMetrics
    budget: float
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", plain(self.rule, "rule"))
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "cuts", Cuts(number(self.cuts.page), number(self.cuts.signal)))
        object.__setattr__(self, "extra", only_x(self.extra))

    @property
    def live(self) -> bool:
        """Whether it may fire at all; if not, it is not asked."""
        return self.cuts != Cuts()

    def to_json(self) -> dict[str, Any]:
        metrics = self.metrics
        return {
            "rule": dict(self.rule),
            "members": list(self.members),
            "cuts": {"page": self.cuts.page, "signal": self.cuts.signal},
            "metrics": {
                **{name: figure(getattr(metrics, name)) for name in FIGURES},
                "n": metrics.n,
                "positives": metrics.positives,
                "confidence": number(metrics.confidence),
            },
            "budget": number(self.budget),
            **self.extra,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> EnsembleEntry:
        measured = entry["metrics"]
        counts = {name: int(measured[name]) for name in ("n", "positives")}
        confidence = float(measured["confidence"])
        metrics = EnsembleMetrics(**figures(measured, FIGURES), **counts, confidence=confidence)  # type: ignore[arg-type]
        return cls(
            rule=entry["rule"],
            members=tuple(entry["members"]),
            cuts=Cuts(**entry["cuts"]),
            metrics=metrics,
            budget=float(entry["budget"]),
            extra=extra_of(entry),
        )


class Read(NamedTuple):
    """One detector as a rule reads it."""

    detector: str
    flag_when: FlagWhen


def reads(rule: Mapping[str, Any]) -> Iterator[Read]:
    """The detectors that a rule reads, a cascade's last one last."""
    if rule["form"] == "cascade":
        yield from reads(rule["filter"])
        yield Read(rule["expensive"], rule["standing"]["flag_when"])
    elif rule["form"] == "fixed":
        yield from (Read(name, one[0]) for name, one in rule["thresholds"].items())
    else:
        parts = rule["inputs"] if rule["form"] == "logistic" else rule["standings"]
        yield from (Read(name, one["flag_when"]) for name, one in parts.items())


def impossible(where: str, entry: Mapping[str, Any], detectors: Mapping[str, Any]) -> Iterator[str]:
    """What a schema cannot say against an ensemble."""
    rule, cuts = entry["rule"], entry["cuts"]
    found = list(reads(rule))
    if entry["members"] != sorted({one.detector for one in found}) or not found:
        yield f"{where}.members are not the detectors that its rule reads, sorted"
    for one in found:
        if one.detector not in detectors:
            yield f"{where} reads {one.detector}, which is not among the detectors"
        elif detectors[one.detector]["flag_when"] != one.flag_when:
            yield f"{where} reads {one.detector} as flagging {one.flag_when}, which the detector does not"
    yield from _impossible_rule(f"{where}.rule", rule)
    if cuts["page"] is not None and cuts["signal"] is not None and cuts["page"] < cuts["signal"]:
        yield f"{where}.cuts.page is {cuts['page']}, below its signal ({cuts['signal']})"


def _impossible_rule(where: str, rule: Mapping[str, Any]) -> Iterator[str]:
    parts = rule.get("standings", rule.get("thresholds", {}))
    if rule.get("k", 1) > len(parts) and "k" in rule:
        yield f"{where}.k is {rule['k']}, of {len(parts)} detectors"
    if rule["form"] == "weighted":
        if rule["weights"].keys() != parts.keys():
            yield f"{where}.weights are not of the detectors in its standings"
        if not any(rule["weights"].values()):
            yield f"{where}.weights are all 0"
    if rule["form"] == "cascade":
        yield from _impossible_rule(f"{where}.filter", rule["filter"])
        yield from _impossible_standing(f"{where}.standing", rule["standing"])
    for name, one in rule.get("standings", {}).items():
        yield from _impossible_standing(f"{where}.standings.{name}", one)


def _impossible_standing(where: str, standing: Mapping[str, Any]) -> Iterator[str]:
    knots = standing["knots"]
    if not len(knots) == len(standing["above"]) == len(standing["normals"]):
        yield f"{where} has lists of several lengths"
    if any(one >= other for one, other in pairwise(knots)):
        yield f"{where}.knots do not ascend"
