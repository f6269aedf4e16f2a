"""Read the fields of an export: ids, times, objects that may be JSON in a text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrate.ingest.spans.logged.chat import decode
from calibrate.ingest.values import FieldError, name_or_none, utc

MAX_ID = 200
"""Longest id, in characters: two of them name an answer."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(value: Any) -> int:
    """Read a moment as nanoseconds of the epoch; 0 where there is none."""
    moment = utc(value)
    return 0 if moment is None else (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def identity(value: Any, name: str) -> str:
    """Read an id. Raises FieldError where there is none."""
    text = name_or_none(value if value is None or isinstance(value, (str, int)) else str(value), name, MAX_ID)
    if text is None:
        raise FieldError(f"{name}: missing")
    return text


def mapping(value: Any) -> Mapping[str, Any]:
    """Read an object, {} for anything else."""
    decoded = decode(value)
    return decoded if isinstance(decoded, Mapping) else {}


def items(value: Any) -> list[Any]:
    """Read a list, [] for anything else."""
    decoded = decode(value)
    return decoded if isinstance(decoded, list) else []


def scalars(value: Any) -> dict[str, str | int | float | bool]:
    """The values of an object that can be attributes."""
    return {str(key): each for key, each in mapping(value).items() if isinstance(each, (str, int, float, bool))}
