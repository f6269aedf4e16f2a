"""What a detector was measured to be worth, in the words of the Detect page and of docs/reference/results.md."""

from __future__ import annotations

from calibrate.report.names import title_of
from calibrate.report.numbers import count, difference
from calibrate.workflow.tuning.worth import Measured, Worth

WORDS = {
    Worth.RUN: "worth running",
    Worth.SOMETIMES: "sometimes",
    Worth.UNMEASURED: "not measured",
    Worth.NOTHING: "adds nothing",
}
MEANS = {  # the public data was compared with token overlap alone, not with length or the answering model
    Worth.RUN: "better than every baseline on your labels; on public data, gains over token overlap, or over chance "
    "where that cannot score",
    Worth.SOMETIMES: "ahead within its interval on your labels; on public data, one gain over token overlap",
    Worth.UNMEASURED: "not compared on enough public data yet, and too few labels of yours to say",
    Worth.NOTHING: "not ahead of the strongest baseline on your labels; on public data, no gain over token overlap",
}


ORDER = (
    "Under each heading, what your labels measured comes first, by AUROC over the strongest baseline; the rest by the "
    "public data sets on which it is better or adds, less those on which it is worse."
)


def heading(worth: Worth) -> str:
    """Name a rank: "Worth running"."""
    words = WORDS[worth]
    return words[:1].upper() + words[1:]


def because(measured: Measured) -> str:
    """Say what a detector's worth was measured by."""
    if measured.over is not None and measured.baseline is not None:
        over = difference(measured.over.value, measured.over.low, measured.over.high, 2)
        return f"AUROC {over} over {title_of(measured.baseline).lower()} on {count(measured.n, 'label')} of yours"
    if measured.worth == Worth.UNMEASURED:
        return MEANS[Worth.UNMEASURED]
    return f"{_gain(measured)} on {count(measured.gains)} of {count(measured.sets, 'public data set')}"


def _gain(measured: Measured) -> str:
    if not measured.by_chance:
        return "a gain over token overlap"
    if measured.by_chance < measured.sets:
        return "a gain over token overlap, or over chance where that cannot score,"
    return "better than chance"
