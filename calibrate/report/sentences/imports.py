"""What became of the labels that an import brought, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count
from calibrate.types import Sample

UNSTATED = (
    "labels outside samples choose no threshold unless every trace has one: import the file again with --design "
    "random, flagged or feedback to say how its labelled traces were chosen"
)


def stated(sample: Sample) -> str:
    """Say which sample imported labels have become, and what that is good for."""
    name = f"the sample {sample.name!r}: {count(sample.size, 'labelled trace')}"
    if sample.design == "random":
        return f"they are {name}, drawn at random from the {count(sample.pool, 'trace')} of their window"
    how = "flagged" if sample.design == "flagged" else "picked or complained of"
    return f"they are {name} that were {how}; they can be read and detectors compared on them, no threshold is chosen"
