"""What a draw will take and tell, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, duration, plus_minus, share
from calibrate.sanitize import one_line
from calibrate.workflow.sampling.pace import Pace

FAVOUR = "Favour suspicious traces, weighted back"
AT_RANDOM = "At random"


def pace(pace: Pace) -> str:
    """Say how long a label takes, and how that is known: "21 s a label, the pace of your team's last 200 labels"."""
    each = f"{max(1, round(pace.seconds))} s a label"
    if not pace.is_measured:
        return f"{each}, which is assumed: too few labels have been timed here to know your pace"
    who = "one person" if pace.labellers == 1 else f"{count(pace.labellers)} people"
    return f"{each}, the pace of the last {count(pace.labels)} labels here, by {who}"


def pace_of(labeller: str, pace: Pace) -> str:
    """Say how long somebody takes: "ann 21 s a label (200 labels)"."""
    return f"{one_line(labeller, 40)} {max(1, round(pace.seconds))} s a label ({count(pace.labels, 'label')})"


def precision_known(halfwidth: float) -> str:
    """Say how well the labels will know a precision: "then precision is known to about ±9 points"."""
    return f"then precision is known to about {plus_minus(halfwidth)}"


def time_needed(traces: int, pace: Pace) -> str:
    """Say how long one person takes for these traces: "about 55 min"."""
    return f"about {duration(traces * pace.seconds)}"


def shared(mode: str, overlap: float) -> str:
    """Say how a sample is shared: "split: each trace is for whoever comes first, and 20% of them for two people"."""
    if mode == "everyone":
        return "everyone labels every trace"
    if not overlap:
        return "split: each trace is for whoever comes first"
    return f"split: each trace is for whoever comes first, and {share(overlap)} of them for two people"
