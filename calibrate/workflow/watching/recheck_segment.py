"""A recheck of one segment: its threshold, its traffic, and which segment to look at next."""

from __future__ import annotations

from dataclasses import replace

from calibrate.errors import BadInput
from calibrate.thresholds.model import DetectorEntry
from calibrate.thresholds.segments import describe_segments
from calibrate.types import Part, TraceFilter


def in_segment(detector: str, entry: DetectorEntry, segment: str | None) -> DetectorEntry:
    """The entry as it decides in a segment: one threshold, of its own, and what is guaranteed there.

    Raises BadInput without a segment where the entry has segments, and for one that has no threshold of its own.
    """
    if entry.segments is None:
        if segment is not None:
            raise BadInput(f"{detector} has one threshold for all, {entry.limit}: leave out --segment {segment}")
        return entry
    own = None if segment is None else entry.segments.thresholds.get(segment)
    if own is not None:
        return replace(entry, threshold=own.threshold, guarantee=own.guarantee, segments=None)
    named = describe_segments(entry.segments)
    if segment is None:
        raise BadInput(
            f"{detector} has thresholds for segments ({named}), and a recheck is of one: name it with --segment, or "
            f"label a sample of new traffic and test it with `gate`, which takes each trace at its own threshold"
        )
    raise BadInput(
        f"{detector} has no threshold of its own for {segment!r}, only for {named}: name one of these with --segment, "
        f"or label a sample of new traffic and test it with `gate`, which takes each trace at its own threshold"
    )


def only_segment(entry: DetectorEntry, segment: str | None) -> TraceFilter:
    """The traffic of a segment; all traffic where there is none."""
    if entry.segments is None or segment is None:
        return TraceFilter()
    return Part(entry.segments.by, segment).within(TraceFilter())
