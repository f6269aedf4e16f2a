"""Where a span lies: offsets in code points, as Python counts, and in UTF-16 units, as a browser counts.

A character beyond U+FFFF, such as most emoji, is one code point and two UTF-16 units. A combining mark and a letter of
a script written from right to left are one of either; both count in the order in which the text is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from calibrate.ingest.labels.base import Units
from calibrate.ingest.values import FieldError
from calibrate.types import Span

# Label Studio writes a line break of a quoted span as the two characters \ and n, and a \r\n as two breaks.
_SPACE = re.compile(r"(?:\s|\\n)+")


def to_utf16(text: str, index: int) -> int:
    """Count the UTF-16 units before a code point.

    >>> to_utf16("a🚀b", 2)
    3
    """
    return index + sum(character > "\uffff" for character in text[:index])


def from_utf16(text: str, units: int) -> int | None:
    """Count the code points in this many UTF-16 units: None beyond the text's end, or amid a character.

    >>> from_utf16("a🚀b", 3), from_utf16("a🚀b", 2), from_utf16("a🚀b", 5)
    (2, None, None)
    """
    if text.isascii():
        return units if 0 <= units <= len(text) else None
    passed = 0
    for index, character in enumerate(text):
        if passed >= units:
            return index if passed == units else None
        passed += 2 if character > "\uffff" else 1
    return len(text) if passed == units else None


def place_spans(
    spans: Sequence[Span], quotes: Sequence[str | None], answer: str, *, units: Units = "code points"
) -> tuple[Span, ...]:
    """Find spans of a file in the answer, in code points.

    A span that comes with its text must have it in the answer; where it does not in these units, it may in the others
    (Label Studio counted UTF-16 units before version 1.5).

    Raises
    ------
    FieldError
        A span that is no part of the answer, or has another text there than the file says.
    """
    others: Units = "utf-16" if units == "code points" else "code points"
    placed = []
    for at, span in enumerate(spans):
        quote = quotes[at] if at < len(quotes) else None
        readings = [_read(span, answer, units)]
        if quote is not None:
            readings.append(_read(span, answer, others))
        parts = [each for each in readings if each is not None]
        if not parts:
            raise FieldError(
                f"spans[{at}]: {span.start} to {span.end} is not a part of the answer of {len(answer)} characters"
            )
        fitting = [each for each in parts if quote is None or _alike(answer[each.start : each.end], quote)]
        if not fitting:
            text = answer[parts[0].start : parts[0].end]
            raise FieldError(
                f"spans[{at}]: {span.start} to {span.end} is {text[:60]!r} in the answer, the file says "
                f"{(quote or '')[:60]!r}"
            )
        placed.append(fitting[0])
    return tuple(placed)


def _read(span: Span, answer: str, units: Units) -> Span | None:
    """The span in code points, None where it is no part of the answer."""
    start, end = span.start, span.end
    if units == "utf-16":
        first, last = from_utf16(answer, start), from_utf16(answer, end)
        if first is None or last is None:
            return None
        start, end = first, last
    return Span(start, end, span.kind) if 0 <= start <= end <= len(answer) else None


def _alike(text: str, quote: str) -> bool:
    return text == quote or _SPACE.sub(" ", text).strip() == _SPACE.sub(" ", quote).strip()
