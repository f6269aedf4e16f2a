"""Check single values of a record: text, numbers, time, JSON. Errors name the field, its value and the expectation."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from calibrate.sanitize import visible

# The store indexes ids and names, and PostgreSQL refuses an index entry beyond 2.7 kB: a character may take 4 bytes.
MAX_ID_LENGTH = 500
MAX_NAME_LENGTH = 200

MAX_DEPTH = 100
"""Levels of nesting a schema may have. Code that walks deeper ones would hit Python's recursion limit."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# No database can store these: NUL ends a C string, and a lone surrogate has no UTF-8.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAY_BE_UNSTORABLE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_NUMBER = re.compile(r"\d{9,}(\.\d+)?|\d+\.\d+")


class FieldError(ValueError):
    """A value that cannot be used. The message is for the author of the file."""


class Repaired(NamedTuple):
    value: Any
    characters: int


def describe_value(value: object) -> str:
    """Describe a value, briefly enough for an error message."""
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


def expected(name: str, expectation: str, value: object) -> FieldError:
    return FieldError(f"{name}: expected {expectation}, found {describe_value(value)}")


def decode_json(text: str) -> Any:
    """Decode JSON. Raises FieldError for NaN and Infinity, which are not JSON, and for a key that occurs twice."""
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object. Refuses a key that it has twice: whichever value were taken, the other would be lost unseen."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise FieldError(f"the key {visible(key[:100])!r} occurs twice in one object; give each key once")
    return fields


# strict=False accepts raw control characters (a tab in a text), which many loggers forget to escape.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False, object_pairs_hook=_object)


def may_need_repair(line: bytes) -> bool:
    """Check cheaply whether a line may hold unstorable characters. Never wrongly False."""
    return b"\x00" in line or _MAY_BE_UNSTORABLE.search(line) is not None


def repair(value: Any) -> Repaired:
    """Replace each NUL and lone surrogate with U+FFFD, one for one, so that offsets into the text stay valid."""
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
    """Read a short text that the store indexes. An empty one becomes None, a whole number text."""
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
    """Read a moment as UTC. Text is ISO 8601 (UTC unless it has an offset); a number is time since 1970.

    The number's magnitude decides its unit: below 1e11 seconds (until the year 5138), below 1e14 milliseconds, below
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
        expectation = "a time (ISO 8601 such as 2026-01-31T12:00:00Z, or seconds since 1970)"
        raise expected("timestamp", expectation, value) from None


def _from_epoch(number: float) -> datetime:
    if not 0 <= number < 1e20:
        raise ValueError
    for limit, per_second in ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000)):
        if number < limit:
            return _EPOCH + timedelta(seconds=number / per_second)
    return _EPOCH + timedelta(seconds=number / 1_000_000_000)


def check_tree(value: Any, name: str) -> None:
    """Raise FieldError for JSON nested too deeply or with a number out of range (1e999 decodes to infinity)."""
    level = [value]
    for _ in range(MAX_DEPTH):
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
    raise FieldError(f"{name}: nested deeper than {MAX_DEPTH} levels")
