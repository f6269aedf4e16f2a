"""Checking single values of a record: text, numbers, time, JSON. Each refusal says the field, what it is, what it
should be."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, NoReturn

# The store indexes ids and names, and PostgreSQL refuses an index entry beyond 2.7 kB: a character may take 4 bytes.
LONGEST_ID = 500
LONGEST_NAME = 200

DEEPEST = 100
"""Levels of nesting a schema may have. Deeper, and whoever walks it next meets Python's recursion limit."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# No database holds these: NUL ends a C string, a lone surrogate has no UTF-8.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAY_BE_UNSTORABLE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_NUMBER = re.compile(r"\d{9,}(\.\d+)?|\d+\.\d+")


class FieldError(ValueError):
    """A value that cannot be used; the message is for the person whose file it is."""


class Repaired(NamedTuple):
    value: Any
    characters: int


def shown(value: object) -> str:
    """What was found, short enough for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {value[:40] + '…' if len(value) > 40 else value!r}"
        case int() | float():
            return f"the number {value:.6g}" if abs(value) < 1e300 else "a number too large"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def expected(name: str, what: str, value: object) -> FieldError:
    return FieldError(f"{name}: expected {what}, found {shown(value)}")


def decode_json(text: str) -> Any:
    """The JSON value; NaN and Infinity, which are not JSON, are refused."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise FieldError(f"not JSON: {error.msg} at column {error.pos + 1}") from None
    except RecursionError:
        raise FieldError("not usable JSON: it is nested too deeply") from None
    except FieldError:
        raise
    except ValueError:
        raise FieldError("not usable JSON: it holds a number with thousands of digits") from None


def _refuse_constant(name: str) -> NoReturn:
    raise FieldError(f"not JSON: {name} is not a JSON number; write null where there is no value")


# strict=False takes raw control characters (a tab in a text), which many loggers forget to escape.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)


def may_need_repair(line: bytes) -> bool:
    """Cheap and never wrongly False: most lines have no escape that could spell an unstorable character."""
    return b"\x00" in line or _MAY_BE_UNSTORABLE.search(line) is not None


def repair(value: Any) -> Repaired:
    """The value with U+FFFD for each NUL and lone surrogate: one for one, so offsets into the text still hold."""
    if isinstance(value, str):
        if "\x00" not in value and (value.isascii() or _encodes(value)):
            return Repaired(value, 0)
        return Repaired(*_UNSTORABLE.subn("\ufffd", value))
    if isinstance(value, dict):
        pairs = [(repair(key), repair(item)) for key, item in value.items()]
        count = sum(key.characters + item.characters for key, item in pairs)
        return Repaired({key.value: item.value for key, item in pairs}, count)
    if isinstance(value, (list, tuple)):
        items = [repair(item) for item in value]
        return Repaired([item.value for item in items], sum(item.characters for item in items))
    return Repaired(value, 0)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_or_none(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise expected(name, "text or null", value)


def name_or_none(value: Any, name: str, longest: int) -> str | None:
    """A short text that the store indexes; an empty one says nothing and is None. Whole numbers become text."""
    if value is None or value == "":
        return None
    if type(value) is int and abs(value) < 10**longest:
        value = str(value)
    if not isinstance(value, str):
        raise expected(name, "text", value)
    if len(value) > longest:
        raise FieldError(f"{name}: {len(value):,} characters, at most {longest} are possible")
    return value


def finite(value: Any, name: str) -> float:
    if type(value) is float and -math.inf < value < math.inf:
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise expected(name, "a finite number", value)


def utc(value: Any) -> datetime | None:
    """The moment in UTC. Text is ISO 8601 (taken as UTC without an offset); a number is time since 1970.

    The number's magnitude tells its unit: below 1e11 seconds (until the year 5138), below 1e14 milliseconds, below
    1e17 microseconds, else nanoseconds.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _from_epoch(float(value))
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if not isinstance(moment, datetime):
            raise ValueError
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        what = "a time (ISO 8601 such as 2026-01-31T12:00:00Z, or seconds since 1970)"
        raise expected("timestamp", what, value) from None


def _from_epoch(number: float) -> datetime:
    if not 0 <= number < 1e20:
        raise ValueError
    for limit, per_second in ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000)):
        if number < limit:
            return _EPOCH + timedelta(seconds=number / per_second)
    return _EPOCH + timedelta(seconds=number / 1_000_000_000)


def check_tree(value: Any, name: str) -> None:
    """Refuse a JSON value that is nested too deeply or holds a number out of range (1e999 decodes to infinity)."""
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, float) and not math.isfinite(item):
                raise FieldError(f"{name}: holds a number out of range")
        if not below:
            return
        level = below
    raise FieldError(f"{name}: nested deeper than {DEEPEST} levels")
