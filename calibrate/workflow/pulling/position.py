"""How far a pull came in its cursor column: which values may be the cursor, and which never are.

The cursor decides what the next pull reads. A value that is none of its kind (no time, no number), or a time that is
still to come, would hide every later row: it never becomes the cursor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line
from db.exchange.foreign import Shape, as_json

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d.*)?")
_DAY = timedelta(days=1)


@dataclass(slots=True)
class Position:
    """The cursor of one run. `column` is its name, `now` the time of the pull, `stored` what the last page left.

    `ahead` counts the rows of a page that are dated after the pull; `mixed`: times are written in ways that do not sort
    as text.
    """

    column: str
    shape: Shape
    now: datetime
    stored: Mapping[str, Any] = field(default_factory=dict)
    ahead: int = 0
    mixed: bool = False
    _value: Any = None
    _before: Any = None
    _at: datetime | None = None
    _spelling: tuple[str, timedelta | None] | None = None
    _times: bool = False

    def __post_init__(self) -> None:
        value = self.stored.get("value")
        self._before, self.mixed = self.stored.get("before"), bool(self.stored.get("mixed"))
        self._times = is_time(self.shape) or (self.shape.kind in ("text", None) and moment_of(value) is not None)
        if isinstance(value, str) and self.shape.kind in ("text", None) and moment_of(value) is not None:
            self._spelling = _spelling_of(value)

    def take(self, cell: Any) -> FieldError | None:
        """Move on to a row's value, where it may be the cursor. The reason for which the row is refused, or None."""
        if cell is None:
            return None
        if self._times:
            moment = moment_of(cell)
            if moment is None:
                return FieldError(f"{self.column}: {one_line(repr(cell), 60)} is no time that can be compared")
            if isinstance(cell, str):
                spelling = _spelling_of(cell)
                self.mixed = self.mixed or (self._spelling is not None and self._spelling != spelling)
                self._spelling = spelling
            if moment > self.now:
                self.ahead += 1
                return None
            if self._at is not None and moment < self._at:
                return None
            self._at = moment
        elif self.shape.kind == "number" and not _is_number(cell):
            return FieldError(f"{self.column}: {one_line(str(cell), 60)!r} is no number that can be compared")
        if cell != self._value:
            self._before, self._value = self._value if self._value is not None else self._before, cell
        return None

    @property
    def cursor(self) -> Mapping[str, Any] | None:
        """What the store keeps; None where there is nothing to go on from."""
        if self._value is None:
            return None
        at = {"value": as_json(self._value), "before": as_json(self._before)}
        return {**at, "mixed": True} if self.mixed else at


def is_time(shape: Shape) -> bool:
    """Whether the cursor column holds times: by its type, or as texts."""
    return shape.kind in ("time", "date") or example_of(shape) is not None


def example_of(shape: Shape) -> str | None:
    """A text that writes out a time, as the column has them; None where it has none."""
    return next((value for value in shape.examples if isinstance(value, str) and moment_of(value) is not None), None)


def moment_of(value: Any) -> datetime | None:
    """The time that a value is, or writes out in a text; None for any other."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, str) or not _WRITTEN.fullmatch(value):
        return None
    try:
        return moment_of(datetime.fromisoformat(value))
    except ValueError:
        return None


def like(moment: datetime, example: str, *, mixed: bool = False) -> str:
    """Write a time as the column does, so that texts compare as times do. Of mixed ones the day before sorts first."""
    pattern = moment_of(example)
    assert pattern is not None
    if mixed:
        return (moment if moment.year == 1 else moment - _DAY).date().isoformat()
    local = moment if moment.year == 1 else moment.astimezone(pattern.tzinfo)
    text = local.replace(microsecond=0, tzinfo=None).isoformat(sep=example[10:11] or " ")
    return text[: 10 if len(example) == 10 else 16 if not re.match(r".{16}:\d\d", example) else 19]


def _spelling_of(text: str) -> tuple[str, timedelta | None]:
    """What must be the same for texts to sort as times: the sign between day and hour, and the offset from UTC."""
    return text[10:11], datetime.fromisoformat(text).utcoffset()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and math.isfinite(value)
