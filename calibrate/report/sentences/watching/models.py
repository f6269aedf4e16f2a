"""What the newest model, or value of an attribute, changed, and why a model has no baseline, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, estimate, period, points_apart
from calibrate.workflow.detection.baselines import Skipped
from calibrate.workflow.upgrade.models_seen import NoStep, Seen, Step

NO_DIFFERENCE = "no significant difference on these labels"


def step(change: Step) -> str:
    """Say how often the newest value hallucinated against the one before it, and whether they differ."""
    difference, verdict = change.difference, NO_DIFFERENCE
    low, high = difference.low, difference.high
    if change.is_significant and difference.value is not None and low is not None and high is not None:
        verdict = points_apart(difference.value, low, high)
    return f"{_rate(change.newer)}; {_rate(change.older)}: {verdict}.{_periods(change)}"


def _rate(seen: Seen) -> str:
    share = seen.prevalence
    return f"{seen.name} hallucinated {estimate(share.value, share.low, share.high)} of {count(seen.labels, 'label')}"


def _periods(change: Step) -> str:
    """A caution where the two did not answer in the same weeks."""
    newer, older = change.newer, change.older
    if newer.first is None or newer.last is None or older.first is None or older.last is None:
        return ""
    weeks = [[moment.isocalendar()[:2] for moment in (seen.first, seen.last) if moment] for seen in (newer, older)]
    if weeks[0] == weeks[1]:
        return ""
    of = f"{period(newer.first, newer.last)} against {period(older.first, older.last)}"
    return f" Their times differ ({of}), and so may what was asked."


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
