"""Text of traces, shown as text whatever it holds. `visible` is for places that show plain text."""

from __future__ import annotations

import re
from html import escape

from calibrate.sanitize import one_line, visible

__all__ = ["charted", "label", "middle", "plain", "spoken", "visible"]

# Where Markdown would act on a character. A hyphen within a word, a colon before a blank and the like stay as they are.
_ACTS = re.compile(r"[\\`*\[\]<>$~|&]|(?<!\w)_|_(?!\w)|:(?=\S)|^[#+\-=]|(?<=\d)[.)](?=\s)")


# Where Streamlit's Markdown would make a link of an address, escaped or not, unless something parts it.
_LINKS = re.compile(r"(?<=https:)(?=//)|(?<=http:)(?=//)|(?<=www)(?=\.)|(?<=[-.+\w])(?=@[-\w]+\.[-\w])", re.IGNORECASE)
_ESCAPED = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&])")
_NOTHING = ":small[]"  # to Streamlit an empty piece of small text: it parts what is around it, and nobody copies it
_JOINER = "\u2060"  # parts, and shows as nothing; who copies the text copies it too


def plain(text: str | None, limit: int | None = None) -> str:
    """`visible` on one line, with Markdown's characters escaped, for what Streamlit reads as Markdown."""
    return _NOTHING.join(_ESCAPED.sub(r"\\\1", piece) for piece in _LINKS.split(one_line(text, limit)))


def spoken(text: str | None, limit: int | None = None) -> str:
    """`plain`, but what stands between two backticks in a sentence of ours is set as code: commands and parameters."""
    pieces = one_line(text, limit).split("`")
    if len(pieces) % 2 == 0:  # an odd one out is a character of a name
        return plain(text, limit)
    return "".join(f"`{piece}`" if place % 2 and piece else plain(piece) for place, piece in enumerate(pieces))


def label(text: str | None, limit: int | None = None) -> str:
    """`visible` on one line as the label of a widget.

    Screen readers read it out as it is written, so only characters that Markdown would act on are escaped.
    """
    return _ACTS.sub(r"\\\g<0>", _LINKS.sub(_JOINER, one_line(text, limit)))


def charted(text: str) -> str:
    """`visible` for the names in a chart: plotly reads a kind of HTML there, of which quotes are no part.

    A name goes into a hover template as `%{fullData.name}`, never as text: `%{y}` in it would be replaced by the value.
    """
    return escape(visible(text), quote=False)


def middle(text: str, limit: int) -> str:
    """The text cut in the middle: names of models differ at their ends."""
    return text if len(text) <= limit else f"{text[: limit // 2 - 1]}…{text[-(limit - limit // 2) :]}"
