"""What two texts share in words: stems and longest common subsequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from calibrate.backends.citations import Citation


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """An English word without its commonest endings: "tablets" and "tablet" count as one. Other scripts stay whole."""
    if len(word) <= 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def masked(text: str, marks: Sequence[Citation]) -> str:
    """The text with its citation marks blanked: offsets stay, and the 1 of "[1]" is no word of the answer."""
    pieces, position = [], 0
    for mark in marks:
        pieces += [text[position : mark.start], " " * (mark.end - mark.start)]
        position = mark.end
    return "".join([*pieces, text[position:]])


def longest_common_subsequence(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the longest common subsequence of two sequences of word ids."""
    from rapidfuzz.distance import LCSseq

    return int(LCSseq.similarity(one, other))
