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
ABSENT = object()
OURS = "touchstone."
"""What the names of scores begin with that Touchstone wrote itself."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.:@/+-]+")
Named = tuple[str, StatedScore]


def scores_of(value: Any, trace_id: str) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    """The scores by name, and what was left out and why, like "scores.judge (text, no number)": the trace is taken
    without it.

    A value of null is no score, and says nothing.
    """
    if value is None:
        return (), ()
    scores: dict[str, StatedScore] = {}
    left_out: list[str] = []
    for place, (name, number, reason) in enumerate(_items(value)):
        if not isinstance(name, str) or not name.strip():
            left_out.append("scores (without a name)")
        elif number is None:
            continue
        elif place >= MOST:
            left_out.append(f"scores (beyond the first {MOST} of a trace)")
        elif (why := "a second value" if name in scores else _fault(number)) is not None:
            left_out.append(f"scores.{visible(name, 60)} ({why})".replace("\n", " "))
        else:
            scores[name] = StatedScore(trace_id, float(number), reason if isinstance(reason, str) else None)
    return tuple(scores.items()), tuple(dict.fromkeys(left_out))


def _fault(value: Any) -> str | None:
    """Why a value is no score; None where it is one."""
    if value is ABSENT:
        return 'without a "value"'
    if isinstance(value, bool):
        return "true or false, no number"
    if isinstance(value, str):
        return "text, no number"
    if not isinstance(value, (int, float)):
        return "no number"
    try:
        finite(value, "scores")
    except FieldError:
        return "not finite"
    return None


def fit_name(name: str) -> str:
    """What another system calls a score, in letters that a thresholds file takes."""
    return _UNFIT.sub("_", name.strip())[:MAX_NAME]


def _items(value: Any) -> Iterable[tuple[Any, Any, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield (
                (name, item.get("value", ABSENT), item.get("reason")) if isinstance(item, dict) else (name, item, None)
            )
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item.get("name"), item.get("value", ABSENT), item.get("reason")
            else:
                yield None, item, None
    else:
        yield None, value, None
