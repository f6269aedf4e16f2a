"""Recognize answers that decline to answer: there is nothing in them that could be right or wrong.

An answer is a refusal if it declines and does nothing else. It is cut into clauses at the ends of sentences, at colons
and at words such as "but". At least one clause must decline, and every other one must decline too or only accompany a
refusal (an apology, "please contact …", a question back). With any clause of substance, the answer is not a refusal.
The phrases are in `files/refusals/*.txt`, one list per language; every answer is compared with all of them.
`tests/backends/test_refusals.py` measures what they catch in real answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import regex

from calibrate.backends import files
from calibrate.backends.memo import Memo
from calibrate.backends.text.segments import Part, Words, sentences, words
from calibrate.errors import BadInput

MAX_LENGTH = 600  # code points; a longer answer says something of substance
MAX_CLAUSE_WORDS = 60  # words
MAX_GAP = 12  # words that an ellipsis inside a phrase may stand for
SECTIONS = ("declines", "beside", "but")

_COLON = regex.compile(r"[;:](?=\s)|[；：؛]")
_QUESTION = regex.compile(r"[?？؟\u037e][\"'”’»)\]」』）*_\s]*\Z")

Item = tuple[tuple[str, ...], ...]  # alternatives, each one or more words


def find_refusal(answer: str) -> str | None:
    """Find the sentence in which the answer declines, or None. Teams may edit the lists in `files/refusals/*.txt`."""
    if len(answer) > MAX_LENGTH:
        answer = answer.strip()
        if len(answer) > MAX_LENGTH:
            return None
    return _parse_lists(_texts()).find(answer)


def words_beyond_refusal(sentence: str) -> tuple[str, ...] | None:
    """Find the words of a sentence that declines, without the phrase that declines; None if it does not decline."""
    return _parse_lists(_texts()).beyond(sentence) if find_refusal(sentence) else None


def version() -> str:
    """The start of the lists' digest if the team has changed one, "" for the packaged lists."""
    texts = _texts()
    if texts == tuple(map(files.packaged, _names())):
        return ""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Items in order; None is an ellipsis. `optional` says which items may be missing.

    A clause without any of the words in `anchor` cannot contain the phrase.
    """

    items: tuple[Item | None, ...]
    optional: tuple[bool, ...]
    anchor: frozenset[str]

    def ends(self, tokens: tuple[str, ...], start: int) -> set[int]:
        """Positions where the phrase may end if it begins at `start`."""
        at = {start}
        for number, (item, optional) in enumerate(zip(self.items, self.optional, strict=True)):
            if item is None:
                reach = MAX_GAP if number else len(tokens)  # verb-final languages decline at the end of a clause
                last = len(tokens) if number + 1 == len(self.items) else min(len(tokens), max(at) + reach)
                at = set(range(min(at), last + 1))
            else:
                at = (at if optional else set()) | {
                    place + len(alternative)
                    for place in at
                    for alternative in item
                    if tokens[place : place + len(alternative)] == alternative
                }
            if not at:
                break
        return at

    @property
    def openers(self) -> Iterator[str | None]:
        """The words that it may begin with; None means any."""
        for item, optional in zip(self.items, self.optional, strict=True):
            yield from [None] if item is None else {alternative[0] for alternative in item}
            if not optional:
                return


class _Index:
    """Phrases by the word that they may begin with."""

    def __init__(self, phrases: Iterable[_Phrase]) -> None:
        self._by_opener: dict[str, list[_Phrase]] = {}
        self._anywhere: list[_Phrase] = []
        for phrase in phrases:
            for opener in set(phrase.openers):
                (self._anywhere if opener is None else self._by_opener.setdefault(opener, [])).append(phrase)

    def ends(self, tokens: tuple[str, ...], start: int) -> set[int]:
        """Positions where a phrase ends that begins at `start`."""
        candidates: Sequence[_Phrase] = self._by_opener.get(tokens[start], ())
        if self._anywhere:
            remaining = set(tokens[start:])
            candidates = (
                *candidates,
                *(phrase for phrase in self._anywhere if not phrase.anchor.isdisjoint(remaining)),
            )
        return {end for phrase in candidates for end in phrase.ends(tokens, start) if end > start}


@dataclass(frozen=True)
class _Lists:
    declines: _Index
    beside: _Index
    but: _Index
    find: Memo[str | None] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "find", Memo(self._find, characters=2_000_000))

    def _find(self, answer: str) -> str | None:
        tokens_of_answer: Words | None = None
        declined: Part | None = None
        for part in sentences(answer):
            tokens_of_answer = tokens_of_answer or words(answer)
            asks = _QUESTION.search(answer, part.start, part.end) is not None
            for tokens in self._clauses(answer, part, tokens_of_answer):
                kind = self._kind(tokens)
                if kind == "declines":
                    declined = declined or part
                elif kind is None and not asks:
                    return None
        return answer[declined.start : declined.end] if declined else None

    def beyond(self, sentence: str) -> tuple[str, ...]:
        """The words of a refusal that are in none of the phrases with which its clauses decline."""
        tokens_of_sentence = words(sentence)
        beyond: list[str] = []
        for part in sentences(sentence):
            for tokens in self._clauses(sentence, part, tokens_of_sentence):
                phrase = self._declining_phrase(tokens) or range(0)
                beyond += [*tokens[: phrase.start], *tokens[phrase.stop :]]
        return tuple(beyond)

    def _clauses(self, answer: str, part: Part, tokens_of_answer: Words) -> Iterator[tuple[str, ...]]:
        start = part.start
        for end in [*(mark.start() for mark in _COLON.finditer(answer, *part)), part.end]:
            yield from self._split_at_but(tokens_of_answer.between(start, end))
            start = end

    def _split_at_but(self, tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Cut a clause at "but" and its like, which are left out."""
        start = at = 0
        while at < len(tokens):
            end = max(self.but.ends(tokens, at), default=0)
            if end:
                yield from [tokens[start:at]] if at > start else []
                start = end
            at = end or at + 1
        if start < len(tokens):
            yield tokens[start:]

    def _kind(self, tokens: tuple[str, ...]) -> str | None:
        """Classify a clause: it declines, stands beside a refusal, or (None) says something of substance."""
        if len(tokens) > MAX_CLAUSE_WORDS:
            return None
        if self._declining_phrase(tokens):
            return "declines"
        # "Please call 555 0199" is a statement that may be wrong.
        numbers = any(character.isdigit() for token in tokens for character in token)
        return "beside" if len(tokens) in self._reached(tokens) and not numbers else None

    def _declining_phrase(self, tokens: tuple[str, ...]) -> range | None:
        """The shortest phrase that declines, behind nothing but what may stand beside a refusal; None without one."""
        for at in sorted(self._reached(tokens)):
            if at < len(tokens) and (ends := self.declines.ends(tokens, at)):
                return range(at, min(ends))
        return None

    def _reached(self, tokens: tuple[str, ...]) -> set[int]:
        """Positions before which there is nothing but what may stand beside a refusal."""
        reached = {0}
        for at in range(len(tokens)):
            if at in reached:
                reached |= self.beside.ends(tokens, at)
        return reached


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    return tuple(name for name in files.names() if name.startswith("refusals/"))


def _texts() -> tuple[str, ...]:
    return tuple(map(files.read, _names()))


@lru_cache(maxsize=8)
def _parse_lists(texts: tuple[str, ...]) -> _Lists:
    phrases: dict[str, list[_Phrase]] = {section: [] for section in SECTIONS}
    for name, text in zip(_names(), texts, strict=True):
        section = SECTIONS[0]
        for number, line in enumerate(text.splitlines(), 1):
            line = line.partition("#")[0].strip()
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1].strip().lower()
                if section not in SECTIONS:
                    sections = ", ".join(f"[{name_of_section}]" for name_of_section in SECTIONS)
                    raise BadInput(f"{name}, line {number}: there is no section [{section}]; there are {sections}")
            elif phrase := _parse_phrase(line):
                phrases[section].append(phrase)
    return _Lists(_Index(phrases["declines"]), _Index(phrases["beside"]), _Index(phrases["but"]))


def _parse_phrase(line: str) -> _Phrase | None:
    """Parse `i|we cannot|can_not really? answer …`. Returns None for a line without a required word."""
    items: list[Item | None] = []
    optional: list[bool] = []
    for word in line.replace("...", "…").replace("…", " … ").split():
        alternatives = tuple(
            tokens for alternative in word.split("|") if (tokens := words(alternative.replace("_", " ")).tokens)
        )
        if alternatives or word == "…":
            items.append(alternatives or None)
            optional.append(word.endswith("?"))
    needed = next((item for item, free in zip(items, optional, strict=True) if item and not free), None)
    if needed is None:
        return None
    return _Phrase(tuple(items), tuple(optional), frozenset(alternative[0] for alternative in needed))
