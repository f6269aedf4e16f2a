"""Whether thresholds per segment gain, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, exact_share, limit, points, share
from calibrate.sanitize import one_line
from calibrate.stats.segments.rows import LABELS, OF_EACH
from calibrate.types import FlagWhen, Segments
from calibrate.workflow.tuning.segments import Segmented, SegmentVerdict

MOST = 5  # segments that are named
OUT_OF_FOLD = (
    "Own figures are out of fold: each label is flagged by curves fitted without it. A segment's curve is "
    "drawn towards that of all segments as far as its labels are few"
)


def own_limits(segments: Segments, flag_when: FlagWhen) -> list[tuple[str, str]]:
    """The first segments by name, each with where it flags: ("≤ 0.7", "chat")."""
    names = sorted(segments.thresholds)[:MOST]
    return [(limit(segments.thresholds[name].threshold, flag_when), one_line(name, 60)) for name in names]


def common_limit(segments: Segments, threshold: float, flag_when: FlagWhen) -> str:
    """Where all other traffic is flagged, after how many more segments there are: "2 more; elsewhere ≤ 0.3"."""
    more = len(segments.thresholds) - MOST
    return f"{f'{count(more)} more; ' if more > 0 else ''}elsewhere {limit(threshold, flag_when)}"


def name_by(by: str) -> str:
    """ "attributes.tier" as people read it: "tier"."""
    return one_line(by.removeprefix("attributes."), 60)


def verdict(segmented: Segmented) -> str:
    """Whether thresholds per segment find more than one threshold at equal precision."""
    by, gain = name_by(segmented.by), segmented.gain
    if len(segmented.rows) == 1 and not segmented.outside:
        only = one_line(segmented.rows[0].segment, 60)
        return f"All labels are of one segment by {by}, {only}: one threshold serves it"
    if segmented.verdict == SegmentVerdict.FEW or gain is None:
        return (
            f"Fewer than two segments by {by} have enough labels for a threshold of their own ({LABELS} with a score, "
            f"{OF_EACH} of them hallucinated and {OF_EACH} clean): one threshold serves all"
        )
    if segmented.verdict == SegmentVerdict.UNMET:
        return f"No threshold meets {segmented.policy}, so thresholds by {by} are not offered"
    difference = points(gain.difference.value, gain.difference.low, gain.difference.high)
    at = f"at a precision of {exact_share(round(gain.precision, 4))}"
    figures = f"{share(gain.own)} of the hallucinations against {share(gain.common)}: {difference}, out of fold"
    if segmented.verdict == SegmentVerdict.OFFERED:
        return f"Thresholds by {by} find more {at}: {figures}"
    return f"Thresholds by {by} are not shown to find more than one threshold {at}: {figures}"


def fallback(segmented: Segmented) -> str | None:
    """Who keeps the common threshold; None where every label has a segment with one of its own."""
    few = sum(not row.enough for row in segmented.rows)
    if segmented.verdict == SegmentVerdict.FEW or not (few or segmented.outside):
        return None
    parts = [count(few, "segment") + " with too few labels"] if few else []
    parts += [f"traces of no segment ({count(segmented.outside, 'label')})"] if segmented.outside else []
    return f"The common threshold serves {' and '.join(parts)}"
