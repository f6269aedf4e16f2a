"""Split a text into sentences, words and windows, each with exact code-point offsets: `text[start:end]`.

Why not pysbd: this splitter is linear in the text (a megabyte takes about a second; pysbd is quadratic in a line), its
offsets are exact, it has one set of rules for every script, and a citation mark after a full stop stays with its
sentence. `tests/backends/test_text.py` compares both on tricky cases.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import regex

from calibrate.backends.memo import Memo
from calibrate.backends.text.wordlists import ABBREVIATIONS, OPENERS, TRAILING_ABBREVIATIONS


class Part(NamedTuple):
    """A part of a text, in code points: text[start:end]."""

    start: int
    end: int


# ---------------------------------------------------------------------------------------------------- sentences

# A mark such as [1], [2, 3], [^4], 【5†source】: what may follow a full stop and still belong to the sentence.
MARK = r"[\[【［]\^?\p{Nd}[\p{Nd}\s,;:–—\-^]{0,60}(?:†[^\]】\n]{0,40})?[\]】］](?:\(https?://[^\s()]{1,300}\))?"
_STOP = (
    r"(?:(?P<wide>[。！？｡]+)|(?P<dot>[.!?…‽]+|[؟۔।॥։።။។]+))"
    r"(?P<close>[\"'”’»)\]」』）*_]{0,4})"
)
_END = regex.compile(_STOP + rf"(?P<marks>(?:[^\S\n]{{0,2}}{MARK}){{0,20}})")
_END_LEADING = regex.compile(_STOP + r"(?P<marks>)")
_LINE = re.compile(r"[^\n\r\v\f\x85\u2028\u2029]+")
_ITEM = regex.compile(r"\s*+(?:>\s*+){0,8}+(?:(?:[-*+•‣◦▪·–—]|#{1,6}|\p{Nd}{1,3}[.)、]|\(?[a-z]\))\s++){1,3}+")
_LEADING = regex.compile(rf"(?:{MARK}\s*)+\S")
_ONLY_MARKS = regex.compile(rf"(?:{MARK}|\W)*+")
_WORD_CHARACTER = regex.compile(r"[\p{L}\p{N}]")
_LINE_ENDS = frozenset(".!?…:;。！？؟۔।॥|")
_OPENER = regex.compile(r"[\p{L}']+")
_NUMBERED = frozenset(("no", "nr", "nos", "art", "sec", "vol", "p", "pp", "ch", "fig", "figs", "eq"))
_NEXT_SENTENCE = regex.compile(r"\p{Lu}\p{Ll}*[\s,]")


def _blocks(text: str) -> Iterator[Part]:
    """Join lines that belong together: a wrapped line joins the previous one; a list item or paragraph does not."""
    start = end = -1
    for line in _LINE.finditer(text):
        if line.group().isspace():
            continue
        if start >= 0 and _continues(text, start, end, line):
            end = line.end()
            continue
        if start >= 0:
            yield Part(start, end)
        start, end = line.span()
    if start >= 0:
        yield Part(start, end)


def _continues(text: str, start: int, end: int, line: re.Match[str]) -> bool:
    gap = text[end : line.start()].replace("\r\n", "\n")
    last = text[start:end].rstrip()[-1:] if end - start < 400 else text[end - 400 : end].rstrip()[-1:]
    if len(gap) > 1 or last in _LINE_ENDS or _ITEM.match(line.group()):
        return False
    first = line.group().lstrip()[0]
    if first.islower():
        return True
    # Hard-wrapped prose is cut at 60 or more columns; headings and table rows are shorter.
    return line.start() - max(start, text.rfind("\n", 0, end) + 1) > 60 and first not in "|[【"


def _ends_here(text: str, stop: regex.Match[str], *, cased: bool) -> bool:
    """Tell whether a stop ends a sentence. Most rules are about '.', which has other uses."""
    after = stop.end()
    if stop["wide"]:
        return True
    following = text[after : after + 40]
    if not following[:1].isspace():
        # "drug manufacturing.Succinic acid": scraped text has lost the blank. File names and code look different.
        before = text[max(0, stop.start() - 3) : stop.start()]
        return (
            len(before) == 3 and before.isalpha() and before.islower() and _NEXT_SENTENCE.match(following) is not None
        )
    following = following.lstrip().lstrip("\"'“‘«([*_¿¡-–—• ")
    first = following[:1]
    if cased and first.islower() and not following[1:2].isupper():
        return False
    if stop["marks"] or stop["dot"] != ".":
        return True
    return not _abbreviates(text, stop.start(), following)


def _abbreviates(text: str, dot: int, following: str) -> bool:
    """Tell whether the '.' at `dot` only ends an abbreviation: "Dr. Smith", "e.g. this", "J. K. Rowling", "No. 5"."""
    word = text[max(0, dot - 16) : dot].split()[-1:] or [""]
    token = word[0].lstrip("\"'“‘«([*_").casefold()
    if token in ABBREVIATIONS:
        return True
    if token in _NUMBERED:
        return following[:1].isdigit()
    if token in TRAILING_ABBREVIATIONS:
        return not following[:1].isupper()
    single = len(token) == 1 and token.isalpha() and word[0][-1:].isupper()
    dotted = "." in token and all(len(part) <= 1 for part in token.split("."))
    if not single and not dotted:
        return False
    opener = _OPENER.match(following)
    return opener is None or opener.group() not in OPENERS


def _split_sentences(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    for block in _blocks(text):
        item = _ITEM.match(text, block.start, block.end)
        start = item.end() if item else block.start
        # "[1] First claim. [2] Second claim.": a line that opens with a mark puts its marks in front.
        leading = _LEADING.match(text, _skip_blanks(text, start, block.end), block.end) is not None
        cased = any(character.isupper() for character in text[start : min(block.end, start + 2000)])
        for stop in (_END_LEADING if leading else _END).finditer(text, start, block.end):
            if stop.end() == block.end or _ends_here(text, stop, cased=cased):
                _add_part(parts, text, start, stop.end())
                start = stop.end()
        _add_part(parts, text, start, block.end)
    return tuple(parts)


def _skip_blanks(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _add_part(parts: list[Part], text: str, start: int, end: int) -> None:
    start = _skip_blanks(text, start, end)
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end and text[start].isalpha():  # as almost every sentence begins; none of the rules below is for it
        parts.append(Part(start, end))
        return
    if _WORD_CHARACTER.search(text, start, end) is None:
        return
    if _ONLY_MARKS.fullmatch(text, start, end) and parts:
        parts[-1] = Part(parts[-1].start, end)  # marks alone belong to the sentence before them
        return
    parts.append(Part(start, end))


sentences = Memo(_split_sentences)
"""The sentences of a text in order, without list bullets. A part without a letter or digit is not a sentence."""


def windows(text: str, *, sentences_per_window: int = 2) -> tuple[Part, ...]:
    """Cut a text into overlapping windows of so many sentences; each next one starts a sentence later."""
    all_sentences = sentences(text)
    size = min(sentences_per_window, len(all_sentences))
    return (
        tuple(
            Part(all_sentences[i].start, all_sentences[i + size - 1].end) for i in range(len(all_sentences) - size + 1)
        )
        if all_sentences
        else ()
    )


# -------------------------------------------------------------------------------------------------------- words

# Scripts written without blanks yield one token per character, so that lexical measures have something to count.
_NO_BLANKS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(
    rf"(?P<number>\p{{Nd}}{{1,3}}(?:,\p{{Nd}}{{3}})+(?:\.\p{{Nd}}+)?(?![\p{{L}}\p{{N}}])|\p{{Nd}}+(?:[.,]\p{{Nd}}+)+)"
    rf"|[{_NO_BLANKS}]\p{{M}}*"
    rf"|(?:(?![{_NO_BLANKS}])[\p{{L}}\p{{M}}\p{{N}}\u200c\u200d])+(?:['’](?:(?![{_NO_BLANKS}])[\p{{L}}\p{{M}}])+)*"
)


@dataclass(frozen=True)
class Words:
    """The words of a text, normalised and casefolded. `pattern` finds them in `text`, at the original's offsets."""

    tokens: tuple[str, ...]
    text: str
    pattern: re.Pattern[str] | regex.Pattern[str]

    @cached_property
    def starts(self) -> array[int]:
        return array("L", [match.start() for match in self.pattern.finditer(self.text)])

    @cached_property
    def ends(self) -> array[int]:
        return array("L", [match.end() for match in self.pattern.finditer(self.text)])

    def between(self, start: int, end: int) -> tuple[str, ...]:
        """The words that begin in text[start:end]."""
        return self.tokens[bisect_left(self.starts, start) : bisect_left(self.starts, end)]

    def places(self, parts: Iterable[Part]) -> list[range]:
        """Positions of the words of each part. Parts must be in order, disjoint, and not end inside a word."""
        if self.pattern is not _BLANKED:
            return [range(bisect_left(self.starts, start), bisect_left(self.starts, end)) for start, end in parts]
        ranges: list[range] = []
        at = position = 0
        for start, end in parts:  # counting what stands between blanks takes half the time of finding every offset
            first = at + len(self.text[position:start].split())
            at, position = first + len(self.text[start:end].split()), end
            ranges.append(range(first, at))
        return ranges


# Most texts are in Latin script, where the standard library's engine finds the same words in a fraction of the time.
_NOT_LATIN = re.compile("[^\\0-\u024f\u2010-\u2027\u2030-\u205e]")
_LATIN_LETTER = "A-Za-zªµºÀ-ÖØ-öø-\u024f"
_LATIN_WORD = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"
    rf"(?![{_LATIN_LETTER}0-9²³¹¼-¾])|[0-9]+(?:[.,][0-9]+)+"
    rf"|[{_LATIN_LETTER}0-9²³¹¼-¾]+(?:['’][{_LATIN_LETTER}]+)*"
)
# Latin texts without words that touch, such as "1.5mg": blanks for whatever is in no word leave only the words.
_NUMBER = re.compile("[0-9][.,][0-9]")
_APOSTROPHE_NUMBER = re.compile(rf"'[{_LATIN_LETTER}]+[0-9²³¹¼-¾]")
_APOSTROPHE = re.compile(rf"'(?<=[{_LATIN_LETTER}0-9²³¹¼-¾]')(?=[{_LATIN_LETTER}])")
_NO_LETTER = re.compile(rf"[^{_LATIN_LETTER}²³¹¼-¾\0-\x7f]")
_BLANKS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)} | {1: "'"}
_BLANKED = re.compile(r"\S+")
_THOUSANDS = regex.compile(r",\p{Nd}{3}")


def _normalize(word: str) -> str:
    if "," in word or "." in word:  # only numbers hold these
        return unicodedata.normalize("NFKC", word.replace(",", "") if _THOUSANDS.search(word) else word)
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word).replace("’", "'")
    word = word.casefold()
    return word[:-2] if word.endswith("'s") else word


def _split_words(text: str) -> Words:
    ascii_only = text.isascii()
    if not ascii_only and _NOT_LATIN.search(text):
        return Words(tuple([_normalize(match.group()) for match in _WORD.finditer(text)]), text, _WORD)
    blanked = text if ascii_only else text.replace("’", "'")
    apostrophes = "'" in blanked
    if _NUMBER.search(text) or (apostrophes and _APOSTROPHE_NUMBER.search(blanked)):
        return Words(
            tuple(
                [
                    word if word.isascii() and word.isalpha() and word.islower() else _normalize(word)
                    for word in _LATIN_WORD.findall(text)
                ]
            ),
            text,
            _LATIN_WORD,
        )
    if not ascii_only:
        blanked = _NO_LETTER.sub(" ", blanked)
    blanked = blanked.replace("\1", " ")
    if apostrophes:  # those inside words outlast the blanks as \1
        blanked = _APOSTROPHE.sub("\1", blanked)
    blanked = blanked.translate(_BLANKS)
    tokens = blanked.split()
    if apostrophes or not blanked.isascii():
        tokens = [word if word.isalnum() and word.isascii() else _normalize(word) for word in tokens]
    return Words(tuple(tokens), blanked, _BLANKED)


words = Memo(_split_words, characters=4_000_000, entries=32_768)  # of single sentences, too
"""The words of a text. "3-5" has the words 3 and 5, never 35; "1,000" equals "1000"; 中文 has one per character."""
