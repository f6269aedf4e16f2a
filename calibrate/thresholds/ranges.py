"""What a release says of the lowest and highest value that each detector's score can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

RANGE = "x-range"
SLACK = 1e-6  # a score may have passed through single precision

EVERYWHERE = (-math.inf, math.inf)


def range_to_json(low: float, high: float) -> dict[str, Any]:
    """Write a range as an entry keeps it. An end that is infinite is left out, and so is a range without an end."""
    ends = {name: end for name, end in (("low", low), ("high", high)) if math.isfinite(end)}
    return {RANGE: ends} if ends else {}


def range_in(extra: Mapping[str, Any]) -> tuple[float, float]:
    """The lowest and highest possible score by the keys of an entry that begin with x-; infinite where it says none.

    Those keys are anybody's: what is not ours is passed over.
    """
    ends = extra.get(RANGE)
    if not isinstance(ends, Mapping):
        return EVERYWHERE
    low, high = (_end(ends.get(name), other) for name, other in zip(("low", "high"), EVERYWHERE, strict=True))
    return (low, high) if low <= high else EVERYWHERE


def is_outside(score: float, low: float, high: float) -> bool:
    """Whether a detector cannot give this score."""
    return not low - SLACK * max(abs(low), 1.0) <= score <= high + SLACK * max(abs(high), 1.0)


def describe_outside(name: str, score: float, low: float, high: float) -> str:
    """Say that a score comes from elsewhere, or is in another unit, and what becomes of it."""
    span = f"from {low:g} to {high:g}" if math.isfinite(high) else f"from {low:g} on"
    span = span if math.isfinite(low) else f"up to {high:g}"
    return (
        f"the score {score:.6g} of {name} cannot be, it is {span}: is it in another unit? It is compared with the "
        "threshold all the same"
    )


def _end(value: object, otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return otherwise
    return float(value)
