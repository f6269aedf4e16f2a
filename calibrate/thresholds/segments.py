"""Thresholds per segment, as the thresholds file holds them and as a runtime reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrate.thresholds.fields import (
    guarantee_from_json,
    guarantee_to_json,
    interval_to_json,
    intervals_from_json,
)
from calibrate.types import ATTRIBUTE, Segments, SegmentThreshold

Own = Mapping[str, tuple[float, str]]
"""Segment -> its threshold, and what follows the score in a reason: " ≤ 0.52 (operation qa)"."""

LONGEST = 60
MOST = 5


def tidy(segments: Segments) -> Segments | None:
    """The same segments with -0.0 as 0.0, which JSON readers and the digest do not tell apart; None for none."""
    thresholds = {name: replace(own, threshold=float(own.threshold) + 0.0) for name, own in segments.thresholds.items()}
    return Segments(segments.by, thresholds) if thresholds else None


def own_thresholds(segments: Segments, sign: str) -> Own:
    """What the runtime needs to decide by them. `sign` is the comparison as text."""
    return {
        name: (own.threshold, f" {sign} {own.threshold:.4g} ({name_segment(segments.by, name)})")
        for name, own in segments.thresholds.items()
    }


def name_segment(by: str, segment: str) -> str:
    """Name a segment for people, cut short: "operation qa", "tier gold"."""
    return cut_short(f"{by.removeprefix(ATTRIBUTE)} {segment}")


def describe_segments(segments: Segments) -> str:
    """Name the first few segments with their thresholds: "operation qa 0.52, summary 0.61"."""
    names = sorted(segments.thresholds)
    parts = [f"{cut_short(name)} {segments.thresholds[name].threshold:.4g}" for name in names[:MOST]]
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"{cut_short(segments.by.removeprefix(ATTRIBUTE))} {', '.join(parts)}{more}"


def cut_short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def segments_to_json(segments: Segments) -> dict[str, Any]:
    return {"by": segments.by, "thresholds": {name: _to_json(own) for name, own in segments.thresholds.items()}}


def segments_from_json(document: Mapping[str, Any]) -> Segments:
    return Segments(document["by"], {name: _from_json(own) for name, own in document["thresholds"].items()})


def _to_json(own: SegmentThreshold) -> dict[str, Any]:
    return {
        "threshold": own.threshold,
        "n": own.n,
        "positives": own.positives,
        "precision": interval_to_json(own.precision),
        "recall": interval_to_json(own.recall),
        **({} if own.guarantee is None else {"guarantee": guarantee_to_json(own.guarantee)}),
    }


def _from_json(document: Mapping[str, Any]) -> SegmentThreshold:
    return SegmentThreshold(
        float(document["threshold"]),
        int(document["n"]),
        int(document["positives"]),
        **intervals_from_json(document, ("precision", "recall")),
        guarantee=guarantee_from_json(document["guarantee"]) if "guarantee" in document else None,
    )
