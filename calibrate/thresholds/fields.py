"""Between the fields of a dataclass and those of the document: one meaning, one spelling."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from calibrate.errors import BadInput
from calibrate.thresholds.canonical import plain
from calibrate.types import Interval


def number(value: float | None) -> float | None:
    """A float; + 0.0 turns -0.0 into 0.0, because JSON readers and the digest do not tell them apart."""
    return None if value is None else float(value) + 0.0


def figure(interval: Interval) -> dict[str, float | None]:
    return {"value": number(interval.value), "low": number(interval.low), "high": number(interval.high)}


def figures(measured: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Interval]:
    """The intervals of these names."""
    return {name: Interval(*(number(measured[name][end]) for end in ("value", "low", "high"))) for name in names}


def extra_of(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key.startswith("x-")}


def only_x(extra: Mapping[str, Any]) -> Any:
    for key in extra:
        if not key.startswith("x-"):
            raise BadInput(f"extra key {key!r} must begin with x-")
    return plain(extra, "extra")


def time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def utc(moment: datetime) -> datetime:
    """UTC in whole seconds: one instant, one spelling."""
    if moment.tzinfo is None:
        raise BadInput(f"{moment} has no time zone: give an aware time, best in UTC")
    return moment.astimezone(UTC).replace(microsecond=0)
