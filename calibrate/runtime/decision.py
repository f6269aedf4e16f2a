"""Turn scores into a decision: a pure function that accepts missing scores and takes a few microseconds."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

from calibrate.errors import BadInput
from calibrate.orientation import reaches
from calibrate.runtime import rules
from calibrate.runtime.live import Live, current
from calibrate.runtime.validation import describe_type
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.ranges import describe_outside, is_outside
from calibrate.types import Segmented, Tier, attribute_text, segment_of

Outcome = Literal["ACCEPT", "REVIEW", "REJECT"]

OnMissing = Literal["accept", "review", "reject"]
"""The verdict on an answer of which nothing could be scored."""

log = logging.getLogger("touchstone")
_noticed: set[str] = set()
_UNSCORED: Mapping[object, Outcome] = {"accept": "ACCEPT", "review": "REVIEW", "reject": "REJECT"}


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
        For no flag, one flag, and two or more; what `on_missing` says for an unscored answer.
    reasons : tuple of str
        One for each flag: "citation_grounding 0.41 ≤ 0.52". One more if nothing was scored.
    version : int
        The release that decided.
    scored : tuple of str
        Detectors with a number.
    missing : tuple of str
        Detectors of the release without one. They do not flag: absence is not evidence.
    unknown : tuple of str
        Names among the scores that the release does not have. They are ignored.
    unscored : bool
        Whether nothing could be scored, although a detector was to. The verdict is then what `on_missing` says.
    """

    flags: tuple[str, ...]
    tier: Tier
    verdict: Outcome
    reasons: tuple[str, ...]
    version: int
    scored: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    unscored: bool = False


def decide(
    thresholds: ThresholdsFile | Live,
    scores: Mapping[str, float | None],
    *,
    on_missing: OnMissing = "review",
    skipped: Collection[str] = (),
    segments: Mapping[str, str | None] | None = None,
) -> Decision:
    """Apply a release to the scores of one answer.

    One score is enough for a decision: the detectors without one do not flag, and `missing` names them. An ensemble
    decides even if some of its members have no score; if none of them has one, it does not flag.

    Without any score nothing is known about the answer, and the verdict is what `on_missing` says.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    scores : mapping of str to float or None
        By detector, in its own units. None, NaN and infinities mean "could not score". A score outside the range that
        the release gives for its detector counts as it is, and is logged once.
    on_missing : {"review", "accept", "reject"}
        The verdict if nothing could be scored.
    skipped : collection of str
        Detectors that were not to score this answer, because the release samples or because the answer declines to
        answer. Where no others are missing, nothing failed: the answer is not unscored.
    segments : mapping of str to str or None, optional
        What the answer's trace says of itself: `{"operation": "qa", "attributes.tier": "gold"}`, as `segments_of` reads
        it from a trace. A detector with a threshold of its own for that segment decides by it; one without, or of
        which the trace does not say the segment, by its common threshold. That nothing was passed for a release with
        segments is logged once.

    Returns
    -------
    Decision

    Raises
    ------
    BadInput
        If a score is not a number: a wrong type is a mistake of the caller, not an abstention. If `on_missing` is none
        of the three. If a segment is no text.
    """
    check_on_missing(on_missing)
    if isinstance(thresholds, Live):
        thresholds = thresholds.current
    if type(scores) is not dict and not isinstance(scores, Mapping):
        raise BadInput(f"scores must map detector names to numbers, not be a {type(scores).__name__}")
    if segments is not None and type(segments) is not dict and not isinstance(segments, Mapping):
        raise BadInput(f"segments must map what tells them apart to texts, not be a {type(segments).__name__}")
    fired: list[str] = []
    reasons: list[str] = []
    scored: dict[str, float] = {}
    missing: list[str] = []
    tier: Tier = "off"
    for name, threshold, meets, rule_tier, before, after, low, high, by, own in thresholds.rules:
        value = scores.get(name)
        if type(value) is not float or value - value != 0.0:  # the common case pays for no call
            value = _number(name, value)
            if value is None:
                missing.append(name)
                continue
        scored[name] = value
        if not low <= value <= high:
            _notice_range(name, value, low, high)
        if own is not None:
            if segments is None:
                _notice_segments(name, by)
            elif (segment := segments.get(by)) is not None:  # type: ignore[arg-type]
                apart = own.get(segment if type(segment) is str else _text_of(by, segment))
                if apart is not None:
                    threshold, after = apart
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
    verdict: Outcome = "ACCEPT" if not fired else "REVIEW" if len(fired) == 1 else "REJECT"
    unscored = False
    if missing and not scored:
        owed = [name for name in missing if name not in skipped]
        unscored = bool(owed)
        if unscored:
            verdict = _UNSCORED[on_missing]
            reasons.append(f"nothing was scored: {', '.join(owed)} gave no number")
        else:
            reasons.append("nothing was to be scored")
    detectors = thresholds.detectors
    unknown = [str(name) for name in scores if name not in detectors]
    return Decision(
        tuple(fired), tier, verdict, tuple(reasons), thresholds.version,
        tuple(scored), tuple(missing), tuple(sorted(unknown)), unscored,
    )  # fmt: skip


def segments_of(thresholds: ThresholdsFile | Live, trace: Segmented) -> dict[str, str | None]:
    """Read from a trace what `decide` needs to know of its segment.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    trace : Trace
        Or anything else with its `operation`, `model` and `attributes`.

    Returns
    -------
    dict of str to str or None
        For each way in which the release tells segments apart, the segment; None where the trace does not say. Empty
        for a release without segments.
    """
    return {by: segment_of(trace, by) for by in current(thresholds).segmented_by}


def probability(thresholds: ThresholdsFile | Live, detector: str, score: float | None) -> float | None:
    """Map a detector's score to the probability of a hallucination.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    detector : str
        Name of a detector.
    score : float or None
        In the detector's own units. None, NaN and infinities mean "could not score".

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


def check_on_missing(value: object) -> None:
    """Raise BadInput unless the value is a verdict for unscored answers.

    Parameters
    ----------
    value : object
        What somebody passed as `on_missing`.
    """
    if not isinstance(value, str) or value not in _UNSCORED:
        raise BadInput(f"on_missing cannot be {value!r}; it is one of {', '.join(get_args(OnMissing))}")


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
            return None
    return value if math.isfinite(value) else None


def _text_of(by: str | None, segment: object) -> str:
    if not isinstance(segment, (str, int, float)):
        raise BadInput(f"the segment by {by} is {describe_type(segment)}: give a text, or null where it is not known")
    return attribute_text(segment) or ""


def _notice_range(name: str, value: float, low: float, high: float) -> None:
    """Log a score that its detector cannot give, once for each detector: every answer would meet it."""
    if name not in _noticed and is_outside(value, low, high):
        _noticed.add(name)
        log.warning("%s. This is logged once", describe_outside(name, value, low, high))


def _notice_segments(name: str, by: str | None) -> None:
    """Log that a caller says nothing of segments, once for each detector that has thresholds for some."""
    if (key := f"{name} by segment") not in _noticed:
        _noticed.add(key)
        log.warning(
            "%s has thresholds by %s, and decide was given no segments: its common threshold decides. Pass "
            "segments=segments_of(thresholds, trace). This is logged once", name, by,
        )  # fmt: skip
