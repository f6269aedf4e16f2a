"""What to know of the labels that figures and plans are made from, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, number
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
