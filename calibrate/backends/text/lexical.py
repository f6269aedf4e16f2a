"""What two texts share in words: stems, n-grams and longest common subsequences."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import TypeVar

from calibrate.backends.memo import Memo
from calibrate.backends.text.citations import Citation, citations
from calibrate.backends.text.segments import Part, Words, sentences, words

Gram = TypeVar("Gram", bound=Hashable)
Run = tuple[str, ...]
ABSENT = "\0"  # stands for every word that has no character of its own


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


stems = Memo(lambda text: frozenset(map(stem, set(words(text).tokens))), characters=2_000_000)
"""The distinct stems of a text; the same source comes with many answers."""


def blank_marks(text: str, marks: Sequence[Citation]) -> str:
    """The text with its citation marks blanked: offsets stay, and the 1 of "[1]" is no word of the answer."""
    pieces, position = [], 0
    for mark in marks:
        pieces += [text[position : mark.start], " " * (mark.end - mark.start)]
        position = mark.end
    return "".join([*pieces, text[position:]])


def without_citations(text: str, sources: Collection[str]) -> str:
    """The text with its citation marks blanked; `known` holds the sources' numbers."""
    # Every mark opens with one of these; most answers have none.
    return blank_marks(text, citations(text, sources=sources)) if any(mark in text for mark in "[【［") else text


@dataclass(frozen=True, slots=True)
class Analysis:
    """A text's words and its sentences, and which words, by position, each sentence has."""

    tokens: tuple[str, ...]
    sentences: tuple[Part, ...]
    places: list[range]


def _analyse(text: str, written: str) -> Analysis:
    tokens, parts = words(written), sentences(text)
    return Analysis(tokens.tokens, parts, tokens.places(parts))


analyse = Memo(lambda text: _analyse(text, text), characters=4_000_000)
"""How a source reads."""
analyse_answer = Memo(lambda text, *sources: _analyse(text, without_citations(text, sources)), characters=1_000_000)
"""How an answer reads without its citation marks; after the text come the sources' numbers."""


def ngrams(tokens: Sequence[str], n: int) -> Iterator[Run]:
    """Every run of `n` words, in order; none where there are fewer words."""
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def highest_counts(
    grams: Collection[tuple[str, ...]], texts: Iterable[Sequence[str]], n: int
) -> dict[tuple[str, ...], int]:
    """How often each of `grams` (n words each) occurs in the text that has it most often; those in none are left out.

    What a text has beside `grams` is passed over, so that memory does not grow with the texts.
    """
    best: dict[Run, int] = {}
    for tokens in texts:
        raise_counts(best, filter(grams.__contains__, ngrams(tokens, n)))
    return best


def raise_counts(best: dict[Gram, int], grams: Iterable[Gram]) -> None:
    """Raises the counts in `best` to those of one more text."""
    for gram, count in Counter(grams).items():
        if count > best.get(gram, 0):
            best[gram] = count


def token_places(tokens: Words, part: Part) -> range:
    """Which words, by position, begin in that part of the text."""
    return range(bisect_left(tokens.starts, part.start), bisect_left(tokens.starts, part.end))


def abbreviate_list(words: Sequence[str], limit: int = 8) -> str:
    """The first words of a list, for a remark."""
    return ", ".join(words[:limit]) + (", …" if len(words) > limit else "")


def longest_common_subsequence(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the longest common subsequence of two sequences of word ids."""
    from rapidfuzz.distance import LCSseq

    return int(LCSseq.similarity(first, second))


def assign_letters(tokens: Iterable[str]) -> dict[str, str]:
    """A character of its own for every distinct word, so that texts can be compared as strings of characters."""
    return {token: chr(place) for place, token in enumerate(dict.fromkeys(tokens), 1)}


def spell(tokens: Iterable[str], letters: Mapping[str, str], absent: str = "") -> str:
    """The words in order, one character each, and `absent` for those that have none."""
    return "".join(map(letters.get, tokens, repeat(absent)))


def longest_common_with_any(text: str, candidates: Sequence[str]) -> tuple[int, int]:
    """Length of the longest common subsequence with any of `others`, and the place of the first that has it."""
    from rapidfuzz.distance import LCSseq
    from rapidfuzz.process import extractOne

    match = extractOne(text, candidates, scorer=LCSseq.similarity, processor=None)
    return (int(match[1]), int(match[2])) if match else (0, 0)
