"""What became of imported scores, and what external detectors are, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.detectors.shared.external import undefined
from calibrate.ingest.base import Rejected
from calibrate.report.numbers import count, listed
from calibrate.sanitize import visible
from calibrate.types import ExternalDetector
from calibrate.workflow.detection.external import TakenScores
from calibrate.workflow.detection.score_files import Error, Outside

SIDES = {"above": "high scores are suspicious", "below": "low scores are suspicious"}
QUESTION = "Which scores are suspicious?"


def taken(scores: TakenScores) -> str:
    """Say what became of a detector's scores: "ragas: 80 new, 3 changed (now revision 2), 17 as before"."""
    parts = [f"{count(scores.new)} new"]
    parts += [f"{count(scores.changed)} changed (now revision {scores.revision})"] if scores.changed else []
    parts += [f"{count(scores.same)} as before"] if scores.same else []
    return f"{scores.name}: {', '.join(parts)}"


def undefined_all(names: Sequence[str]) -> str:
    """Say that detectors wait for their direction."""
    example = f"`scores define {names[0]} --flag-when above`, or below"
    return f"{listed(names, 8)}: nobody has said which scores are suspicious: {example}"


def differing(n: int) -> str:
    """Say that scores were left out because the same content had another one first."""
    return (
        f"{count(n, 'score differs', 'scores differ')} from the first of the same content, or from what the stated "
        "revision holds, and stayed out"
    )


def rejected(error: Error, low: float | None = None, high: float | None = None) -> str:
    """Say why a row's score was not taken."""
    if isinstance(error, Rejected):
        return error.reason
    if isinstance(error, Outside):
        return f"the score {error.value:g} is not {_span(low, high)}"
    if error.traces:
        return (
            f"{count(error.traces)} traces of different content have the quoted answer: give trace_id, or quote "
            "question and sources too"
        )
    if error.trace_id is None:
        return "no trace in the store is as quoted"
    return f"no trace {visible(error.trace_id, 80)!r} in the store"


def direction(detector: ExternalDetector) -> str:
    """Say which scores are suspicious, or how to say it."""
    return undefined(detector.name) if detector.flag_when is None else SIDES[detector.flag_when]


def turned(detector: ExternalDetector, before: ExternalDetector | None) -> str:
    """Say which scores are suspicious now, and which were before, where that is another side."""
    if before is None or before.flag_when in (None, detector.flag_when):
        return direction(detector)
    return f"now {direction(detector)} (before: {direction(before)})"


def without_scores(detector: ExternalDetector) -> str:
    """Say that nothing was imported for a detector, and how to."""
    return f"{detector.name} has no scores yet: `scores import FILE --detector {detector.name}`"


def next_step(detector: ExternalDetector) -> str:
    """Say what to do with a detector's scores now."""
    if detector.flag_when is None:
        return f"Say which scores are suspicious: `scores define {detector.name} --flag-when above`, or below."
    return f"Next: `sweep {detector.name}`."


def _span(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    return f"{low:g} or more" if low is not None else f"{high:g} or less"
