"""Make text from traces safe to show: it may hold terminal codes and invisible or direction-changing characters."""

from __future__ import annotations

import re
import unicodedata

# Controls (but not tab and newline), bidirectional marks, zero-width and filler characters, tags, byte-order mark.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0"
    "\U000e0000-\U000e007f]"
)
# A spreadsheet runs a cell that begins with one of these as a formula, and a formula can send data away.
FORMULA = "=+-@\t\r\n＝＋－＠"
_NAMES = {"\x1b": "ESC", "\u202e": "RLO", "\u202d": "LRO", "\u2066": "LRI", "\u2067": "RLI", "\u2069": "PDI"}


TURNS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the direction of the text after them."""


def is_plain(name: str) -> bool:
    """Whether a name can stand in a line of text: it holds no line end, no control character, and turns nothing."""
    return not any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNS for character in name
    )


def name_of(character: str) -> str:
    """Name an invisible character: RLO, ESC, U+200B."""
    return _NAMES.get(character, f"U+{ord(character):04X}")


def visible(text: str | None, limit: int | None = None) -> str:
    """Replace every invisible or acting character with its name, and cut to `limit` characters with an ellipsis.

    For places that show plain text (a terminal, table cells). It does not escape HTML or Markdown.
    """
    if not text:
        return ""
    cut = text if limit is None or len(text) <= limit else text[: limit - 1] + "…"
    return UNSEEN.sub(lambda match: f"⟦{name_of(match.group())}⟧", cut)


def one_line(text: str | None, limit: int | None = None) -> str:
    """`visible` on one line."""
    return visible(text, limit).replace("\n", " ")


def cell(value: object) -> object:
    """Prepare a value for a CSV cell: a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] and value[0] in FORMULA else value
