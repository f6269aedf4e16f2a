"""Text cut into pieces that a browser can show as text. Offsets are counted here, in code points."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from calibrate.report.numbers import count
from calibrate.sanitize import UNSEEN, name_of, visible

LONGEST = 400_000  # characters shown of one text
MOST_CHIPS = 2_000  # unseen characters shown as chips of their own; the rest by name within the text

# Joiners that a script or an emoji needs are not shown: between two characters beyond ASCII they are spelling.
_JOINER = re.compile(r"(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\s+')


@dataclass(frozen=True, slots=True)
class Mark:
    """text[start:end] is a citation, a labelled span or evidence; `about` goes to the browser with it."""

    start: int
    end: int
    kind: str
    about: Mapping[str, Any] = field(default_factory=dict)


def segments(text: str, marks: Sequence[Mark] = ()) -> list[dict[str, Any]]:
    """The text in order as pieces.

    A piece has `t`, its characters, or `u`, the name of invisible ones, and `n`, how many. `k` are the kinds of the
    marks that cover it, beside what they hold; `first` is the evidence that begins there.
    """
    shown = text[:LONGEST]
    marks = [mark for mark in marks if 0 <= mark.start < mark.end and mark.start < len(shown)]
    breaks = line_breaks(shown) if shown == text else {}
    edges = {0, len(shown), *breaks}
    for mark in marks:
        edges |= {mark.start, min(mark.end, len(shown))}
    cuts = sorted(edges)
    pieces: list[dict[str, Any]] = []
    chips = MOST_CHIPS
    for start, end in pairwise(cuts):
        covering = [mark for mark in marks if mark.start <= start and end <= mark.end]
        about = _about(covering, start)
        if start in breaks:
            pieces.append({"t": breaks[start]})
        for piece in _pieces(shown[start:end], chips):
            chips -= "u" in piece
            pieces.append({**piece, **about})
            about.pop("first", None)
    if len(text) > len(shown):
        pieces.append({"t": f"\n… {count(len(text) - len(shown))} more characters are not shown.", "k": ["cut"]})
    return pieces


def line_breaks(text: str) -> dict[int, str]:
    """Where to break a JSON document that is on one line: offset to line break and indent. Empty for anything else.

    Not a character of the document is changed or left out.
    """
    if not re.match(r"\s*[\[{]", text) or "\n" in text.strip():
        return {}
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return {}
    breaks: dict[int, str] = {}
    tokens = [match for match in _JSON_TOKEN.finditer(text) if not match.group().isspace()]
    depth = 0
    before = ""
    for token in tokens:
        part = token.group()
        depth -= part in ("}", "]")
        empty = before in ("{", "[") and part in ("}", "]")
        if before and not empty and (before in ("{", "[", ",") or part in ("}", "]")):
            breaks[token.start()] = "\n" + "  " * depth
        depth += part in ("{", "[")
        before = part
    return breaks


def _about(covering: Sequence[Mark], start: int) -> dict[str, Any]:
    if not covering:
        return {}
    about: dict[str, Any] = {"k": list(dict.fromkeys(mark.kind for mark in covering))}
    for mark in covering:
        for key, value in mark.about.items():
            about.setdefault(key, []).extend(value)
        if mark.start == start and mark.kind == "evidence":
            about.setdefault("first", []).extend(mark.about["evidence"])
    return about


def _pieces(text: str, chips: int) -> list[dict[str, Any]]:
    """A run of one invisible character becomes one chip with a count; once the chips are used up, names in the text."""
    joiners = {match.start() for match in _JOINER.finditer(text)}
    hits = [match for match in UNSEEN.finditer(text) if match.start() not in joiners]
    pieces: list[dict[str, Any]] = []
    start = 0
    for (character, _), run in groupby(enumerate(hits), key=lambda hit: (hit[1].group(), hit[1].start() - hit[0])):
        if chips == 0:
            break
        matches = [match for _, match in run]
        pieces += [{"t": text[start : matches[0].start()]}, {"u": name_of(character), "n": len(matches)}]
        start = matches[-1].end()
        chips -= 1
    pieces.append({"t": visible(text[start:]) if chips == 0 else text[start:]})
    return [piece for piece in pieces if piece.get("t") != ""]
