"""Text in Markdown that GitHub and others render: names that people chose are shown as they are, and do nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calibrate.sanitize import one_line

WIDTH = 100
_ACTING = re.compile(r"([!-/:-@\[-`{-~])")  # every ASCII punctuation character may be escaped
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def escape(text: str, limit: int = WIDTH) -> str:
    """Escape every character that Markdown or HTML could act on; one line, at most `limit` characters."""
    return _ACTING.sub(lambda match: _ENTITIES.get(match[1], f"\\{match[1]}"), one_line(text, limit))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table whose cells are escaped here; the first row is the head."""
    head, *body = [[escape(cell, 300) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
