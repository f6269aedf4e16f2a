"""Compare texts by their words: stems, n-grams and longest common subsequences."""

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
    """Remove common endings from an English word, so that "tablets" equals "tablet". Other scripts are unchanged."""
    if len(word) <= 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


stems = Memo(lambda text: frozenset(map(stem, set(words(text).tokens))), characters=2_000_000)
"""The distinct stems of a text. Cached, because the same source comes with many answers."""


def blank_marks(text: str, marks: Sequence[Citation]) -> str:
    """Replace citation marks with blanks: offsets stay valid, and the 1 of "[1]" is not a word of the answer."""
    pieces, position = [], 0
    for mark in marks:
        pieces += [text[position : mark.start], " " * (mark.end - mark.start)]
        position = mark.end
    return "".join([*pieces, text[position:]])


def without_citations(text: str, sources: Collection[str]) -> str:
    """Replace the text's citation marks with blanks; `sources` holds the sources' numbers."""
    # Every mark begins with one of these characters, and most answers have none.
    return blank_marks(text, citations(text, sources=sources)) if any(mark in text for mark in "[【［") else text


@dataclass(frozen=True, slots=True)
class Analysis:
    """A text's words, its sentences, and the positions of each sentence's words."""

    words: Words
    sentences: tuple[Part, ...]
    places: list[range]

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.words.tokens

    def within(self, parts: tuple[Part, ...]) -> Iterator[tuple[Part, range]]:
        """Each of these parts, sentences or ends of sentences in order, with the positions of its words."""
        return zip(parts, self.places if parts == self.sentences else self.words.places(parts), strict=True)


def _analyse(text: str, written: str) -> Analysis:
    tokens, parts = words(written), sentences(text)
    return Analysis(tokens, parts, tokens.places(parts))


analyse = Memo(lambda text: _analyse(text, text), characters=4_000_000)
"""The analysis of a source."""
analyse_answer = Memo(lambda text, *sources: _analyse(text, without_citations(text, sources)), characters=1_000_000)
"""The analysis of an answer without its citation marks. Arguments: the answer, then the sources' numbers."""


def ngrams(tokens: Sequence[str], n: int) -> Iterator[Run]:
    """Every run of `n` words, in order."""
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def highest_counts(
    grams: Collection[tuple[str, ...]], texts: Iterable[Sequence[str]], n: int
) -> dict[tuple[str, ...], int]:
    """Count each of `grams` (n words each) in the text that has it most often. Those in no text are left out.

    Other runs of the texts are skipped, so that memory does not grow with the texts.
    """
    best: dict[Run, int] = {}
    for tokens in texts:
        raise_counts(best, filter(grams.__contains__, ngrams(tokens, n)))
    return best


def raise_counts(best: dict[Gram, int], grams: Iterable[Gram]) -> None:
    """Raise the counts in `best` to those of one more text, where they are higher."""
    for gram, count in Counter(grams).items():
        if count > best.get(gram, 0):
            best[gram] = count


def token_places(tokens: Words, part: Part) -> range:
    """Find the positions of the words that begin in this part of the text."""
    return range(bisect_left(tokens.starts, part.start), bisect_left(tokens.starts, part.end))


def abbreviate_list(words: Sequence[str], limit: int = 8) -> str:
    """Join the first words of a list, for a remark."""
    return ", ".join(words[:limit]) + (", …" if len(words) > limit else "")


def longest_common_subsequence(first: Sequence[int], second: Sequence[int]) -> int:
    """Compute the length of the longest common subsequence of two sequences of word ids."""
    from rapidfuzz.distance import LCSseq

    return int(LCSseq.similarity(first, second))


def assign_letters(tokens: Iterable[str]) -> dict[str, str]:
    """Assign a character to every distinct word, so that texts can be compared as strings."""
    return {token: chr(place) for place, token in enumerate(dict.fromkeys(tokens), 1)}


def spell(tokens: Iterable[str], letters: Mapping[str, str], absent: str = "") -> str:
    """Spell words in order, one character each, and `absent` for those without a character."""
    return "".join(map(letters.get, tokens, repeat(absent)))


def longest_common_with_any(text: str, candidates: Sequence[str]) -> tuple[int, int]:
    """Length of the longest common subsequence with any of `others`, and the place of the first that has it."""
    from rapidfuzz.distance import LCSseq
    from rapidfuzz.process import extractOne

    match = extractOne(text, candidates, scorer=LCSseq.similarity, processor=None)
    return (int(match[1]), int(match[2])) if match else (0, 0)
