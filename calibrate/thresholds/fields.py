"""Convert between fields of a dataclass and fields of the document: one meaning has one spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from calibrate.errors import BadInput
from calibrate.thresholds.canonical import copy_json
from calibrate.types import Guarantee, Interval


def to_number(value: float | None) -> float | None:
    """Convert to a float. + 0.0 turns -0.0 into 0.0: JSON readers and the digest do not distinguish them."""
    return None if value is None else float(value) + 0.0


def interval_to_json(interval: Interval) -> dict[str, float | None]:
    return {"value": to_number(interval.value), "low": to_number(interval.low), "high": to_number(interval.high)}


def intervals_from_json(measured: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Interval]:
    """Read the intervals of these names."""
    return {name: Interval(*(to_number(measured[name][end]) for end in ("value", "low", "high"))) for name in names}


def guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    return {
        **asdict(guarantee),
        **{name: to_number(getattr(guarantee, name)) for name in ("target", "confidence", "bound")},
    }


def guarantee_from_json(document: Mapping[str, Any]) -> Guarantee:
    shares = {name: float(document[name]) for name in ("target", "confidence", "bound")}
    counts = {name: int(document[name]) for name in ("labels", "hallucinated")}
    return Guarantee(strength=document["strength"], sample=document["sample"], **shares, **counts)  # type: ignore[arg-type]


def select_extra(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key.startswith("x-")}


def check_extra(extra: Mapping[str, Any]) -> Any:
    for key in extra:
        if not key.startswith("x-"):
            raise BadInput(f"extra key {key!r} must begin with x-")
    return copy_json(extra, "extra")


def parse_time(format_time: str | None) -> datetime | None:
    return None if format_time is None else datetime.fromisoformat(format_time)


def format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def to_utc(moment: datetime) -> datetime:
    """Convert to UTC in whole seconds: one instant has one spelling."""
    if moment.tzinfo is None:
        raise BadInput(f"{moment} has no time zone: give an aware time, best in UTC")
    return moment.astimezone(UTC).replace(microsecond=0)
