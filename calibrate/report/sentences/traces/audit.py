"""What the audit log's entries say of a change, in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from calibrate.report.numbers import listed, number
from calibrate.sanitize import one_line

_WIDTH = 80  # characters of a value
HOW = {
    "oidc": "signed in",
    "header": "named by the proxy",
    "login": "login name",
    "environment": "TOUCHSTONE_USER",
    "typed": "unverified",
    "unstated": "not stated",
}


def change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Describe what stood there before and after: "threshold 0.31 → 0.4, n 200"."""
    old, new = _stated(before), _stated(after)
    return ", ".join(f"{name} {_move(name, old, new)}" for name in dict.fromkeys((*old, *new)))


def _stated(side: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (side or {}).items() if value is not None and value != ""}


def _move(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    before, after = old.get(name), new.get(name)
    return _value(after) if before is None or before == after else f"{_value(before)} → {_value(after)}"


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return one_line(listed([str(each) for each in value], most=5), _WIDTH)
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _WIDTH)
