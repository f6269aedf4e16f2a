"""What to know of a planned sample, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import number
from calibrate.workflow.sampling.sizing import Doubt


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
