"""Operating points: a chosen threshold with its figures, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

FlagWhen = Literal["above", "below"]
Tier = Literal["page", "signal", "off"]
Strength = Literal["measured", "bounded", "certified"]
STRENGTHS: tuple[Strength, ...] = ("measured", "bounded", "certified")


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its two-sided 95% interval; bounds are None where nothing can be said."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is more than measured about a threshold's precision: it is at least `target`, for the traffic that its
    labels were drawn from; at most 1 − `confidence` of such statements are wrong.

    `bounded`: a lower bound on the labels that chose the threshold, approximate. `certified`: an exact test on labels
    drawn after the threshold was fixed. `bound` is the lower bound itself, from `labels` flagged, of which
    `hallucinated` hit. `sample` is the one they were drawn in.
    """

    strength: Literal["bounded", "certified"]
    target: float
    confidence: float
    bound: float
    labels: int
    hallucinated: int
    sample: str | None = None


class UnmetReason(StrEnum):
    """Why no threshold meets a policy."""

    PRECISION = "precision"  # none reaches it
    RECALL = "recall"  # none reaches it
    COST = "cost"  # flagging nothing is cheaper
    ALERTS = "alerts"  # the strictest flags more a day
    FEW_FLAGGED = "few flagged"  # none flags enough labels for a bound
    BOUND = "bound"  # the lower bound stays below the target
    POLICY = "policy"  # an older store kept no figures


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why no threshold meets a policy. `best`: what the nearest one reaches, where the point does not say it: its cost
    a trace, its flags a day, its bound. `instead`: the cost a trace of flagging nothing."""

    reason: UnmetReason
    best: float | None = None
    instead: float | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """How many of the window's `traffic` traces are `flagged`; what has no score, and refusals, are not."""

    flagged: int
    traffic: int


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A chosen threshold with its measured figures, and with a guarantee where there is one.

    `feasible` is False when no threshold meets the policy; the point is then the nearest one and `why` says so.
    `n` labels were used, `positives` of them hallucinated; the four counts are unweighted labels at the threshold
    (scored traces only). `flag_rate` is the share of the traffic that is flagged: `counted` where nearly all of the
    window has a score, with the binomial interval of traffic to come; else estimated from the labels.
    """

    detector: str
    flag_when: FlagWhen
    threshold: float
    policy: str
    feasible: bool
    precision: Interval
    recall: Interval
    fpr: Interval
    flag_rate: Interval
    n: int
    positives: int
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    coverage: float
    why: Unmet | None = None
    guarantee: Guarantee | None = None
    counted: Counted | None = None

    @property
    def flag_rate_from(self) -> Literal["counted", "labels"]:
        return "labels" if self.counted is None else "counted"

    @property
    def strength(self) -> Strength:
        return self.guarantee.strength if self.guarantee else "measured"


class PointVerdict(StrEnum):
    """Whether a threshold may go out."""

    HOLDS = "holds"
    NOT_SHOWN = "not shown yet"
    DO_NOT_RELEASE = "do not release"


class StateReason(StrEnum):
    """Why a threshold does not hold, or is not shown to."""

    RECHECK_FELL = "recheck fell"  # a recheck of this threshold found it below its target
    UNSTATED = "unstated"  # every trace was labelled then; now nobody said how the labelled ones were chosen
    NOT_OF_TRAFFIC = "not of the traffic"  # by what is known now of how its labels were chosen
    OVERTURNED = "overturned"  # labels behind its certificate have changed
    UNMET = "unmet"  # no threshold meets its policy
    FINDS_NOTHING = "finds nothing"  # it flags no labelled hallucination
    BELOW_TARGET = "below target"  # its labels, as they stand now, put it below
    MOSTLY_BELOW = "mostly below"  # thresholds chosen so are below the target in most cases
    FEW_FLAGGED = "few flagged"  # too few flagged labels to know anything
    WIDE = "wide"  # its precision may be nearly anything
    NO_BETTER = "no better"  # it flags clean traces as often as hallucinated ones
    WORSE_THAN_SINGLE = "worse than single"  # an ensemble that finds less than its best detector alone
    NO_GAIN = "no gain"  # an ensemble that is not shown to find more than its best detector alone
    DISPUTED = "disputed"  # disputed labels among the flagged could turn it
    UNPROVEN = "unproven"  # measured on the labels that chose it


@dataclass(frozen=True, slots=True)
class PointState:
    """What is known against a threshold; `why` is None where it holds.

    `target` is what its policy asks of `figure`: the precision, or for a recall policy the recall. `flagged` labels are
    counted, `hits` of them hallucinated: those at the threshold, or those of the recheck or certificate that `why` is
    about. `chance` is that a threshold chosen so is truly below its target; `disputed` labels are flagged.
    `moved_from`: the policy with a target that a threshold was moved away from by hand; it is judged by that.
    `unlabelled` of `traces` have no label now, where that is why. `part`: the segment that those labels are of, "tier
    gold"; None for all traffic.
    """

    verdict: PointVerdict
    why: StateReason | None = None
    target: float | None = None
    figure: Interval = Interval(None)
    flagged: int = 0
    hits: int = 0
    chance: float | None = None
    disputed: int = 0
    moved_from: str | None = None
    unlabelled: int = 0
    traces: int = 0
    part: str | None = None

    @property
    def known_bad(self) -> bool:
        return self.verdict == PointVerdict.DO_NOT_RELEASE

    def to_json(self) -> dict[str, Any]:
        """What is not known is left out."""
        figure = {name: getattr(self.figure, name) for name in ("value", "low", "high")}
        fields = {
            "verdict": str(self.verdict),
            "why": self.why and str(self.why),
            "target": self.target,
            **figure,
            "flagged": self.flagged,
            "hits": self.hits,
            "chance": self.chance,
            "disputed": self.disputed or None,
            "moved_from": self.moved_from,
            "unlabelled": self.unlabelled or None,
            "traces": self.traces or None,
            "part": self.part,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PointState:
        why = document.get("why")
        return cls(
            PointVerdict(document["verdict"]),
            None if why is None else StateReason(why),
            document.get("target"),
            Interval(document.get("value"), document.get("low"), document.get("high")),
            document.get("flagged", 0),
            document.get("hits", 0),
            document.get("chance"),
            document.get("disputed", 0),
            document.get("moved_from"),
            document.get("unlabelled", 0),
            document.get("traces", 0),
            document.get("part"),
        )
