"""What became of the labels that an import brought, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.report.numbers import count
from calibrate.sanitize import visible
from calibrate.types import Sample
from calibrate.workflow.traces.membership import InSample, Membership

QUESTION = "How were these traces chosen?"
"""What the Import page asks."""
OPTION = "with --design random, flagged or feedback"
ANSWER = f"with an answer to “{QUESTION}”"


def unstated(labels: Membership, how: str = OPTION) -> list[str]:
    """Say where labels count that came without a statement: as members of samples, or nowhere yet. `how` one states
    it: by an option of the command, or by the ANSWER on the page."""
    lines = [_in_sample(each) for each in labels.samples]
    if labels.outside and not labels.samples:
        lines.append(
            "labels outside samples choose no threshold unless every trace has one: import the file again "
            f"{how}, to say how its labelled traces were chosen"
        )
    elif labels.outside:
        lines.append(
            f"{count(labels.outside, 'label is', 'labels are')} of traces in no sample: such labels choose no "
            f"threshold unless every trace has one; import them again in a file of their own {how}, to say how these "
            "traces were chosen"
        )
    return lines


def replaced(redacted: Mapping[str, int]) -> str:
    """Say what was replaced by placeholders before anything was stored."""
    kinds = ", ".join(f"{count(n)} × {visible(kind, 40)}" for kind, n in sorted(redacted.items()))
    return f"replaced by placeholders before anything was stored: {kinds}"


def restated(before: str, sample: Sample) -> str:
    """Say what is known of a sample's design now, and what that changes."""
    if sample.design == before:
        return f"its design was stated as {before} already"
    change = f"its design was stated as {before}, and is now {sample.design}"
    if sample.design == "random":
        return f"{change}: its labels stand for the {count(sample.pool, 'trace')} of their window"
    return f"{change}: its labels describe no traffic, and what was chosen on them is known to be bad until chosen anew"


def left_purged(n: int) -> str:
    """Say that traces stayed out because they were purged."""
    return f"{count(n, 'trace was purged and stays', 'traces were purged and stay')} out"


def _in_sample(labels: InSample) -> str:
    n = labels.counted + labels.waiting
    members = f"{count(n, 'label is of a member', 'labels are of members')} of the sample {labels.sample!r}"
    if not labels.waiting:
        return f"{members}: {'it counts' if n == 1 else 'all of them count'}"
    return (
        f"{members}: {count(labels.counted)} {'counts' if labels.counted == 1 else 'count'}, "
        f"{count(labels.waiting)} {'waits' if labels.waiting == 1 else 'wait'} behind a trace that nobody has labelled"
        ". Go through the sample in its order, and label what was skipped ('unsure' is a verdict)"
    )


def stated(sample: Sample) -> str:
    """Say which sample imported labels have become, and what that is good for."""
    name = f"the sample {sample.name!r}: {count(sample.size, 'labelled trace')}"
    if sample.design == "random":
        return f"they are {name}, drawn at random from the {count(sample.pool, 'trace')} of their window"
    how = "flagged" if sample.design == "flagged" else "picked or complained of"
    return f"they are {name} that were {how}; they can be read and detectors compared on them, no threshold is chosen"
