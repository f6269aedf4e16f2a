"""Several detectors combined into one decision, as the thresholds file holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from calibrate.thresholds.canonical import copy_json
from calibrate.thresholds.fields import check_extra, interval_to_json, intervals_from_json, select_extra, to_number
from calibrate.types import FlagWhen, Interval

FIGURES = ("precision", "recall", "flag_rate")


@dataclass(frozen=True, slots=True)
class Cuts:
    """The score of the rule from which each tier flags; None means never. `page` is not below `signal`."""

    page: float | None = None
    signal: float | None = None


@dataclass(frozen=True)
class EnsembleMetrics:
    """Shares measured at the signal cut, 0 to 1, on `n` labels that the rule was not fitted on, `positives` of them
    hallucinated."""

    precision: Interval
    recall: Interval
    flag_rate: Interval
    n: int
    positives: int
    confidence: float = 0.95


@dataclass(frozen=True)
class EnsembleEntry:
    """A rule over detectors of the release.

    `rule` is what `calibrate.stats.ensembles.rules.to_json` returned: numbers only. `members` are the detectors that it
    reads, by name. `budget` is the share of the traffic, 0 to 1, that the signal cut was meant to flag.
    """

    rule: Mapping[str, Any]
    members: tuple[str, ...]
    cuts: Cuts
    metrics: EnsembleMetrics
    budget: float
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", copy_json(self.rule, "rule"))
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "cuts", Cuts(to_number(self.cuts.page), to_number(self.cuts.signal)))
        object.__setattr__(self, "extra", check_extra(self.extra))

    @property
    def live(self) -> bool:
        """Whether it can flag at all. If not, nothing evaluates it."""
        return self.cuts != Cuts()

    def to_json(self) -> dict[str, Any]:
        metrics = self.metrics
        return {
            "rule": dict(self.rule),
            "members": list(self.members),
            "cuts": {"page": self.cuts.page, "signal": self.cuts.signal},
            "metrics": {
                **{name: interval_to_json(getattr(metrics, name)) for name in FIGURES},
                "n": metrics.n,
                "positives": metrics.positives,
                "confidence": to_number(metrics.confidence),
            },
            "budget": to_number(self.budget),
            **self.extra,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> EnsembleEntry:
        measured = entry["metrics"]
        counts = {name: int(measured[name]) for name in ("n", "positives")}
        confidence = float(measured["confidence"])
        metrics = EnsembleMetrics(**intervals_from_json(measured, FIGURES), **counts, confidence=confidence)  # type: ignore[arg-type]
        return cls(
            rule=entry["rule"],
            members=tuple(entry["members"]),
            cuts=Cuts(entry["cuts"]["page"], entry["cuts"]["signal"]),
            metrics=metrics,
            budget=float(entry["budget"]),
            extra=select_extra(entry),
        )


class Member(NamedTuple):
    """A detector that a rule reads, and on which side the rule assumes it to flag."""

    detector: str
    flag_when: FlagWhen


def list_members(rule: Mapping[str, Any]) -> Iterator[Member]:
    """List the detectors that a rule reads, a cascade's expensive one last."""
    if rule["form"] == "cascade":
        yield from list_members(rule["filter"])
        yield Member(rule["expensive"], rule["standing"]["flag_when"])
    elif rule["form"] == "fixed":
        yield from (Member(name, member[0]) for name, member in rule["thresholds"].items())
    else:
        parts = rule["inputs"] if rule["form"] == "logistic" else rule["standings"]
        yield from (Member(name, member["flag_when"]) for name, member in parts.items())


def find_contradictions(where: str, entry: Mapping[str, Any], detectors: Mapping[str, Any]) -> Iterator[str]:
    """Find what is wrong with an ensemble beyond what a schema can express."""
    rule, cuts = entry["rule"], entry["cuts"]
    members = list(list_members(rule))
    if entry["members"] != sorted({member.detector for member in members}) or not members:
        yield f"{where}.members are not the detectors that its rule reads, sorted"
    for member in members:
        if member.detector not in detectors:
            yield f"{where} reads {member.detector}, which is not among the detectors"
        elif detectors[member.detector]["flag_when"] != member.flag_when:
            yield f"{where} reads {member.detector} as flagging {member.flag_when}, which the detector does not"
    yield from _contradictions_in_rule(f"{where}.rule", rule)
    if cuts["page"] is not None and cuts["signal"] is not None and cuts["page"] < cuts["signal"]:
        yield f"{where}.cuts.page is {cuts['page']}, below its signal ({cuts['signal']})"


def _contradictions_in_rule(where: str, rule: Mapping[str, Any]) -> Iterator[str]:
    parts = rule.get("standings", rule.get("thresholds", {}))
    if rule.get("k", 1) > len(parts) and "k" in rule:
        yield f"{where}.k is {rule['k']}, of {len(parts)} detectors"
    if rule["form"] == "weighted":
        if rule["weights"].keys() != parts.keys():
            yield f"{where}.weights are not of the detectors in its standings"
        if not any(rule["weights"].values()):
            yield f"{where}.weights are all 0"
    if rule["form"] == "cascade":
        yield from _contradictions_in_rule(f"{where}.filter", rule["filter"])
        yield from _contradictions_in_standing(f"{where}.standing", rule["standing"])
    for name, standing in rule.get("standings", {}).items():
        yield from _contradictions_in_standing(f"{where}.standings.{name}", standing)


def _contradictions_in_standing(where: str, standing: Mapping[str, Any]) -> Iterator[str]:
    knots = standing["knots"]
    if not len(knots) == len(standing["above"]) == len(standing["normals"]):
        yield f"{where} has lists of several lengths"
    if any(left >= right for left, right in pairwise(knots)):
        yield f"{where}.knots do not ascend"
