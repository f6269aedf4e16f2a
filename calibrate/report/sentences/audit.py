"""What the audit log's entries say of a change, in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from calibrate.report.numbers import UNKNOWN, number
from calibrate.sanitize import one_line

_WIDTH = 80  # characters of a value
HOW = {
    "oidc": "signed in",
    "header": "named by the proxy",
    "login": "login name",
    "typed": "unverified",
    "unstated": "not stated",
}


def change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Describe what stood there before and after: "threshold 0.31 → 0.4, n 200"."""
    old, new = before or {}, after or {}
    return ", ".join(f"{name} {_move(name, old, new)}" for name in dict.fromkeys((*old, *new)))


def _move(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if name not in old or old[name] == new.get(name):
        return _value(new.get(name))
    return f"{_value(old[name])} → {_value(new.get(name))}"


def _value(value: Any) -> str:
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, float):
        return number(value)
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _WIDTH)
