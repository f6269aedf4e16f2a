"""What to know of the labels that figures are made from, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count
from calibrate.workflow.evidence.loading import Uneven


def uneven(labels: Uneven | None) -> str | None:
    """Say that labels are taken as if drawn at random, and were not; None where there are none."""
    if labels is None:
        return None
    return (
        f"These labels are taken as if drawn at random, but {count(labels.chosen)} of {count(labels.total)} were not "
        f"(designs: {', '.join(labels.designs)}): shares of the traffic, recall and flag rate among them, may be far "
        "off. Name the samples that are meant"
    )
