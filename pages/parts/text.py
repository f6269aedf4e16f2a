"""Trace text is hostile: it may hold terminal codes, invisible and direction-changing characters, HTML, Markdown."""

from __future__ import annotations

import re

# Controls (but not tab and newline), bidirectional marks and overrides, zero-width characters, byte-order mark.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_NAMES = {"\x1b": "ESC", "\u202e": "RLO", "\u202d": "LRO", "\u2066": "LRI", "\u2067": "RLI", "\u2069": "PDI"}


def visible(text: str | None, limit: int | None = None) -> str:
    """The text with every character that would act unseen shown by name, cut to `limit` characters with an ellipsis.

    For places that show plain text (table cells, st.text). It does not escape HTML or Markdown: use places that
    interpret neither.
    """
    if not text:
        return ""
    cut = text if limit is None or len(text) <= limit else text[: limit - 1] + "…"
    return _UNSEEN.sub(_name, cut)


def plain(text: str | None, limit: int | None = None) -> str:
    """`visible`, with Markdown's own characters escaped, for labels that Streamlit reads as Markdown."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|~:$<>&])", r"\\\1", visible(text, limit).replace("\n", " "))


def _name(match: re.Match[str]) -> str:
    character = match.group()
    return f"⟦{_NAMES.get(character, f'U+{ord(character):04X}')}⟧"
