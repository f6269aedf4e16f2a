"""From scores to a decision: pure, total over missing scores, a few microseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from calibrate.errors import BadInput
from calibrate.orientation import reaches
from calibrate.runtime import rules
from calibrate.runtime.given import kind_of
from calibrate.runtime.live import Live, current
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Tier

Outcome = Literal["ACCEPT", "REVIEW", "REJECT"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one answer, and why.

    flags      detectors that flagged, by name, then ensembles that did
    tier       the most severe tier among them; "off" when none flagged
    verdict    no flag ACCEPT, one REVIEW, two or more REJECT
    reasons    one sentence a flag: "citation_grounding 0.41 ≤ 0.52"; one more when nothing could be scored
    version    of the release that decided
    scored     detectors that gave a number
    missing    detectors of the release that gave none (they do not flag: absence is not evidence)
    unknown    names among the scores that the release does not have; they are ignored

    A detector of tier "off" does not flag. It is in none of these, unless an ensemble asks for its score.
    """

    flags: tuple[str, ...]
    tier: Tier
    verdict: Outcome
    reasons: tuple[str, ...]
    version: int
    scored: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


def decide(thresholds: ThresholdsFile | Live, scores: Mapping[str, float | None]) -> Decision:
    """Apply a release to the scores of one answer. None and NaN mean "could not score"; infinities compare as numbers.

    An ensemble answers whatever its members could not score; where none of them has a score, it does not flag.
    Raises BadInput for a score that is not a number, because a wrong type is a fault in the caller, not an abstention.
    """
    if isinstance(thresholds, Live):
        thresholds = thresholds.current
    if type(scores) is not dict and not isinstance(scores, Mapping):
        raise BadInput(f"scores must map detector names to numbers, not be a {type(scores).__name__}")
    fired: list[str] = []
    reasons: list[str] = []
    scored: dict[str, float] = {}
    missing: list[str] = []
    tier: Tier = "off"
    for name, threshold, meets, rule_tier, before, after in thresholds.rules:
        value = scores.get(name)
        if type(value) is not float or value != value:  # the common case pays for no call
            value = _number(name, value)
            if value is None:
                missing.append(name)
                continue
        scored[name] = value
        if meets(value, threshold) and rule_tier != "off":
            fired.append(name)
            reasons.append(f"{before}{value:.4g}{after}")
            if tier != "page":
                tier = rule_tier
    for name, entry in thresholds.live_ensembles:
        if not any(member in scored for member in entry.members):
            continue
        score = rules.score(entry.rule, scored)
        for level, cut in (("page", entry.cuts.page), ("signal", entry.cuts.signal)):
            if cut is not None and reaches(score, cut):
                fired.append(name)
                reasons.append(f"{name} {score:.4g} ≥ {cut:.4g}")
                tier = "page" if "page" in (tier, level) else "signal"
                break
    if missing and not scored:
        reasons.append(f"nothing was scored: {', '.join(missing)} gave no number")
    verdict: Outcome = "ACCEPT" if not fired else "REVIEW" if len(fired) == 1 else "REJECT"
    detectors = thresholds.detectors
    unknown = [str(name) for name in scores if name not in detectors]
    return Decision(
        tuple(fired), tier, verdict, tuple(reasons), thresholds.version,
        tuple(scored), tuple(missing), tuple(sorted(unknown)),
    )  # fmt: skip


def probability(thresholds: ThresholdsFile | Live, detector: str, score: float | None) -> float | None:
    """P(hallucinated), 0 to 1, that the release's map gives to a detector's score; None without a score or a map."""
    entry, value = current(thresholds).detectors.get(detector), _number(detector, score)
    return entry.probability_map.map.probability(value) if entry and entry.probability_map else None


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise BadInput(f"the score of {name} is {kind_of(value)}: give a number, or null where it could not score")
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    return None if math.isnan(value) else value
