"""What the newest model, or value of an attribute, changed, and why a model has no baseline, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, share
from calibrate.workflow.detection.baselines import Skipped
from calibrate.workflow.upgrade.models_seen import NoStep, Seen, Step


def step(change: Step) -> str:
    """Say how often the newest value hallucinated against the one before it, and whether they differ."""
    text, difference = f"{_rate(change.newer)}; {_rate(change.older)}", change.difference
    if difference.value is None or difference.low is None or difference.high is None or not change.is_significant:
        return f"{text}. These labels do not tell them apart."
    word = "more" if difference.value > 0 else "fewer"
    size = round(100 * abs(difference.value))
    least, most = sorted(round(100 * abs(bound)) for bound in (difference.low, difference.high))
    return f"{text}: {size} points {word} (95% certain: {least} to {most})."


def _rate(seen: Seen) -> str:
    return f"{seen.name} hallucinated {share(seen.prevalence.value)} of {count(seen.labels, 'label')}"


def no_step(missing: NoStep) -> str:
    """Say what is missing before two values can be compared."""
    if missing.reason == "caution":
        return "these labels were not chosen to describe the traffic: label a sample, or name one"
    if missing.reason == "same day":
        newer, older = missing.names
        return f"neither is the newer one: {newer} and {older} first answered on the same day"
    return "once traces of two of them are labelled, this says whether the newer one hallucinates less"


def skipped(row: Skipped) -> str:
    """Say why a statistic has no baseline: "5 of 5 clean traces: no tokens were logged"."""
    if not row.traces:
        return "; ".join(reason for reason, _ in row.reasons)
    return "; ".join(f"{count(n)} of {count(row.traces, 'clean trace')}: {reason}" for reason, n in row.reasons)
