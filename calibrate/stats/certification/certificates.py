"""What certification hands over: the plan of its second stage, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from calibrate.stats.certification.ladder import Ladder
from calibrate.stats.sweep.design import Floats
from calibrate.types import FlagWhen, Interval


@dataclass(frozen=True)
class Evidence:
    """What the labels so far say, as the fit sees it: kept so that a further attempt can be planned on all of them."""

    ladder: Ladder
    features: Floats
    labels: Floats
    weights: Floats
    flag_when: FlagWhen


@dataclass(frozen=True)
class Plan:
    """Stage B, to be fixed before any of its labels is known.

    `cuts`: thresholds to test, strict to loose, in the detector's units; `shares` of traffic flagged at each.
    `labels` test traces are to be drawn, each equally likely, from what `deepest`, the last of the cuts, flags.
    `precision`: what stage A expects at every cut, with a 90% range. `chance`: the predicted probability that a cut
    will be certified, 0 to 1, and `chance_unsure` that where a tenth of the labels are unsure; `recall`: of the
    certified cut among scored traffic, if one is (None in an older store). `level`: the error this attempt may make;
    all attempts together, `alpha`.
    """

    target: float
    cuts: tuple[float, ...]
    shares: tuple[float, ...]
    precision: tuple[tuple[float, float, float], ...]
    labels: int
    chance: float
    alpha: float
    level: float
    attempt: int
    flag_when: FlagWhen
    recall: float | None = None
    chance_unsure: float | None = None
    evidence: Evidence | None = None

    @property
    def deepest(self) -> float:
        return self.cuts[-1]


@dataclass(frozen=True)
class Step:
    """One cut of the walk: `hallucinated` of the `labels` it flags, and `first_hallucinated` of the first labels of the
    `sources` they share (None in an older store, which tested these alone and kept them as `labels`).

    `p_value` is the larger and `bound` the smaller of both: the exact one-sided lower bound of the precision (Clopper
    and Pearson 1934) at this attempt's level, above the target exactly when the cut passes."""

    cut: float
    labels: int
    hallucinated: int
    p_value: float
    bound: float
    outcome: Literal["passed", "failed", "not tested"]
    sources: int | None = None
    first_hallucinated: int | None = None


@dataclass(frozen=True)
class Certified:
    """`cut` has a precision of at least `target`, with an error of at most `alpha`: `k` of its `m` labels hit.

    `bound`: the exact one-sided lower bound of its precision at `level`, by all labels and by one a source, whichever
    is lower. `share` of the pool's traffic is flagged.
    """

    cut: float
    m: int
    k: int
    p_value: float
    alpha: float
    level: float
    bound: float
    target: float
    share: float
    walk: tuple[Step, ...]


class ShortfallReason(StrEnum):
    """Why no cut is certified."""

    FAILED = "failed"  # the first cut failed, and nothing is known of another attempt
    OUT_OF_REACH = "out of reach"  # the detector's best cut is not so precise
    TOO_MANY = "too many"  # it would take more labels than are worth trying
    NO_TRAFFIC = "no traffic"  # more labels would do, and the window has not so many flagged traces left
    MORE_LABELS = "more labels"  # another attempt with more labels is likely to do


@dataclass(frozen=True)
class Shortfall:
    """Why no cut is certified: `best` is the likely precision of the best cut with a 90% range, where that is out of
    reach; `fresh` how many traces are left to draw from, where all that they give would not do; `labels` how many
    flagged ones would, where traffic is what lacks; `chance` that the labels asked for had."""

    reason: ShortfallReason
    best: Interval | None = None
    fresh: int | None = None
    labels: int | None = None
    chance: float | None = None


@dataclass(frozen=True)
class Offer:
    """What a number of test labels is likely to buy: the `chance` of a certificate (`chance_unsure` where a tenth of
    the answers are unsure) and the `recall` that its cut then has among scored traffic."""

    labels: int
    chance: float
    recall: float
    chance_unsure: float


@dataclass(frozen=True)
class NotCertifiable:
    """No cut passed. `needed`: how many more flagged labels would do, None when this detector cannot reach the target
    (or not with any number worth labelling); `next`: the plan to draw them by. Never a threshold."""

    why: Shortfall
    needed: int | None
    next: Plan | None
    target: float
    alpha: float
    walk: tuple[Step, ...]
