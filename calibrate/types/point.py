"""Operating points: a chosen threshold with its figures, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

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
class OperatingPoint:
    """A chosen threshold with its measured figures, and with a guarantee where there is one.

    `feasible` is False when no threshold meets the policy; the point is then the nearest one and `why` says so.
    `n` labels were used, `positives` of them hallucinated; the four counts are unweighted labels at the threshold
    (scored traces only). `flag_rate` is the estimated share of the sampled traffic that is flagged.
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

    @property
    def strength(self) -> Strength:
        return self.guarantee.strength if self.guarantee else "measured"
