"""Scores that came with a trace: a mapping of names to numbers, or a list of objects with name, value and reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from calibrate.ingest.values import FieldError, finite
from calibrate.sanitize import visible
from calibrate.types import StatedScore

MOST = 100  # scores of one trace
MAX_NAME = 100
OURS = "touchstone."
"""What the names of scores begin with that Touchstone wrote itself."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.:@/+-]+")
Named = tuple[str, StatedScore]


def scores_of(value: Any, trace_id: str) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    """The scores by name, and the names of those that are none: their trace is taken without them.

    A value of null is no score, and says nothing.
    """
    if value is None:
        return (), ()
    scores: dict[str, StatedScore] = {}
    left_out: list[str] = []
    for place, (name, number, reason) in enumerate(_items(value)):
        if number is None and isinstance(name, str):
            continue
        try:
            if not isinstance(name, str) or not name.strip() or name in scores or place >= MOST:
                raise FieldError("scores")
            scores[name] = StatedScore(trace_id, finite(number, name), reason if isinstance(reason, str) else None)
        except FieldError:
            left_out.append(f"scores.{visible(name, 60)}".replace("\n", " ") if isinstance(name, str) else "scores")
    return tuple(scores.items()), tuple(dict.fromkeys(left_out))


def fit_name(name: str) -> str:
    """What another system calls a score, in letters that a thresholds file takes."""
    return _UNFIT.sub("_", name.strip())[:MAX_NAME]


def _items(value: Any) -> Iterable[tuple[Any, Any, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield (name, item.get("value"), item.get("reason")) if isinstance(item, dict) else (name, item, None)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item.get("name"), item.get("value"), item.get("reason")
            else:
                yield None, item, None
    else:
        yield None, value, None
