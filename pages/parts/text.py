"""Trace text on pages: shown as text, whatever it holds. `visible` is for places that show plain text."""

from __future__ import annotations

import re

from calibrate.hostile import visible

__all__ = ["label", "middle", "plain", "visible"]

# Where Markdown would act on a character. A hyphen within a word, a colon before a blank and the like stay as they are.
_ACTS = re.compile(r"[\\`*\[\]<>$~|&]|(?<!\w)_|_(?!\w)|:(?=\S)|^[#+\-=]|(?<=\d)[.)](?=\s)")


# Streamlit's Markdown makes links of addresses, escaped or not; a word joiner shows nothing and parts them.
_LINKS = re.compile(r"(?<=https:)(?=//)|(?<=http:)(?=//)|(?<=www)(?=\.)|(?<=\w)(?=@)", re.IGNORECASE)


def plain(text: str | None, limit: int | None = None) -> str:
    """`visible` on one line, with Markdown's own characters escaped, for labels that Streamlit reads as Markdown."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|~:$<>&])", r"\\\1", _line(text, limit))


def label(text: str | None, limit: int | None = None) -> str:
    """`visible` on one line as the label of a widget, which screen readers read out as it is written: only what
    Markdown would act on is escaped."""
    return _ACTS.sub(r"\\\g<0>", _line(text, limit))


def _line(text: str | None, limit: int | None) -> str:
    return _LINKS.sub("\u2060", visible(text, limit).replace("\n", " "))


def middle(text: str, limit: int) -> str:
    """The text cut in the middle: names of models differ at their ends."""
    return text if len(text) <= limit else f"{text[: limit // 2 - 1]}…{text[-(limit - limit // 2) :]}"
