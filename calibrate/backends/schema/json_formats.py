"""Checks of JSON Schema formats that the jsonschema package checks only with further packages. Each takes any value."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.I | re.A)
_DURATION = re.compile(r"P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)", re.A)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)", re.I | re.A)
_EMAIL = re.compile(r"[^\s@\"(),:;<>\[\]\\]{1,64}@[^\s@]{1,255}|\"[^\"\r\n]{1,62}\"@[^\s@]{1,255}")
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_URI_CHARACTERS = re.compile(r"([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")


def _date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None


def _date_time(text: str) -> bool:
    return len(text) > 11 and text[10] in "Tt" and _date(text[:10]) and _time(text[11:])


def _hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def _email(text: str) -> bool:
    if not _EMAIL.fullmatch(text):
        return False
    local, _, host = text.rpartition("@")
    if not local.startswith('"') and (local.startswith(".") or local.endswith(".") or ".." in local):
        return False
    return host.startswith("[") or _hostname(host)


def _uri_reference(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return _URI_CHARACTERS.fullmatch(text) is not None


def _uri(text: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", text) is not None and _uri_reference(text)


_TEXTS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "hostname": _hostname,
    "email": _email,
    "uri": _uri,
    "uri-reference": _uri_reference,
    "json-pointer": lambda text: _POINTER.fullmatch(text) is not None,
}


def _any_value(check: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or check(value)


CHECKS: dict[str, Callable[[object], bool]] = {name: _any_value(check) for name, check in _TEXTS.items()}
