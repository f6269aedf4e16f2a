"""Turn scores into a decision: a pure function that accepts missing scores and takes a few microseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from calibrate.errors import BadInput
from calibrate.orientation import reaches
from calibrate.runtime import rules
from calibrate.runtime.live import Live, current
from calibrate.runtime.validation import describe_type
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Tier

Outcome = Literal["ACCEPT", "REVIEW", "REJECT"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one answer, and why.

    A detector of tier "off" does not flag. It is listed nowhere here, unless an ensemble reads its score.

    Attributes
    ----------
    flags : tuple of str
        Names of the detectors that flagged, then of the ensembles that did.
    tier : {"page", "signal", "off"}
        The most severe tier among the flags; "off" without a flag.
    verdict : {"ACCEPT", "REVIEW", "REJECT"}
        For no flag, one flag, and two or more.
    reasons : tuple of str
        One for each flag: "citation_grounding 0.41 ≤ 0.52". One more if nothing could be scored.
    version : int
        The release that decided.
    scored : tuple of str
        Detectors with a number.
    missing : tuple of str
        Detectors of the release without one. They do not flag: absence is not evidence.
    unknown : tuple of str
        Names among the scores that the release does not have. They are ignored.
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
    """Apply a release to the scores of one answer.

    An ensemble decides even if some of its members have no score; if none of them has one, it does not flag.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    scores : mapping of str to float or None
        By detector, in its own units. None and NaN mean "could not score"; infinities compare as numbers.

    Returns
    -------
    Decision

    Raises
    ------
    BadInput
        If a score is not a number: a wrong type is a mistake of the caller, not an abstention.
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
    """Map a detector's score to the probability of a hallucination.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    detector : str
        Name of a detector.
    score : float or None
        In the detector's own units.

    Returns
    -------
    float or None
        P(hallucinated), 0 to 1. None without a score, or if the release has no map for the detector.

    Raises
    ------
    BadInput
        If the score is not a number.
    """
    entry, value = current(thresholds).detectors.get(detector), _number(detector, score)
    return entry.probability_map.map.probability(value) if entry and entry.probability_map else None


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise BadInput(
                f"the score of {name} is {describe_type(value)}: give a number, or null where it could not score"
            )
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    return None if math.isnan(value) else value
