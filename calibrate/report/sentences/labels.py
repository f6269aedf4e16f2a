"""What to know of the labels that figures and plans are made from, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, number
from calibrate.workflow.evidence.label_counts import LabelCounts
from calibrate.workflow.evidence.loading import Uneven
from calibrate.workflow.sampling.sizing import Doubt


def uneven(labels: Uneven | None) -> str | None:
    """Say that labels are taken as if drawn at random, and were not; None where there are none."""
    if labels is None:
        return None
    return (
        f"These labels are taken as if drawn at random, but {count(labels.chosen)} of {count(labels.total)} were not "
        f"(designs: {', '.join(labels.designs)}): shares of the traffic, recall and flag rate among them, may be far "
        "off. Name the samples to use"
    )


def doubt(labels: Doubt | None) -> str | None:
    """Say that labels know of no threshold like the one a plan reckons with; None where they do."""
    if labels is None:
        return None
    if labels.of_everything is None:
        return (
            f"by the labels of {labels.sample} no threshold is known to reach a precision of {number(labels.precision)}"
        )
    return (
        f"by the labels of {labels.sample} flagging everything has a precision of {number(labels.of_everything, 2)} "
        f"already: no threshold is around {number(labels.precision)}"
    )


def labelled(counts: LabelCounts) -> str:
    """Say which labels a figure stands on: "80 of 80 labelled · 3 unsure · 19 disputed"."""
    parts = [f"{count(counts.labelled)} of {count(counts.total)} labelled"]
    parts += [f"{count(counts.unsure)} unsure"] if counts.unsure else []
    parts += [f"{count(counts.disputed)} disputed"] if counts.disputed else []
    return " · ".join(parts)


def waiting(counts: LabelCounts) -> str | None:
    """Say that labels lie behind a gap, and what to do; None where none does."""
    if not counts.waiting:
        return None
    labels = count(counts.waiting, "label waits", "labels wait")
    they = "it counts" if counts.waiting == 1 else "they count"
    return (
        f"{labels} behind a trace that nobody has labelled: {they} once every trace before has a verdict. Go through "
        "the sample in its order, and label what was skipped ('unsure' is a verdict)"
    )
