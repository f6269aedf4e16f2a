"""Parse a judge's replies. A reply that is not clearly in the requested form is Unparsed: it never becomes a value.

Only the model's own text is parsed here, never the prompt or the trace.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibrate.types import Token

MAX_CHARACTERS = 200_000  # characters of a reply worth reading


class Unparsed(ValueError):
    """The reply is not in the requested form; the message says why."""


# --------------------------------------------------------------------------------------------------------- JSON


@dataclass(frozen=True, slots=True)
class ParsedObject:
    """A JSON object and the text it was read from."""

    value: dict[str, Any]
    text: str


def only_object(text: str) -> ParsedObject:
    """Parse the one JSON object of a reply. Prose or a code fence around it is allowed, another brace is not.

    Raises Unparsed for none, more than one, or one with a repeated key, NaN or Infinity.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unparsed(f"a reply of {len(text):,} characters")
    start = text.find("{")
    if start < 0:
        raise Unparsed("no JSON object")
    if text[:start].rstrip().endswith("["):
        raise Unparsed("a JSON array, not one object")
    decoder = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)
    try:
        value, end = decoder.raw_decode(text, start)
    except Unparsed:
        raise
    except (ValueError, RecursionError):
        raise Unparsed("malformed or unfinished JSON") from None
    if "{" in text[end:] or "}" in text[end:]:
        raise Unparsed("more than one JSON object")
    return ParsedObject(value, text[start:end])


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Unparsed("a JSON object that gives a key twice")
    return fields


def _refuse_constant(name: str) -> Any:
    raise Unparsed(f"{name}, which is not JSON")


# ------------------------------------------------------------------------------------------------------- numbers

_NUMBER = re.compile(
    r"(?:score\s*[:=]\s*)?[*_`]{0,3}(?P<number>[0-9]{1,9}(?:\.[0-9]{1,20})?|\.[0-9]{1,20})[*_`]{0,3}\.?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Rating:
    """A score from 0 to 1 with its reason."""

    value: float
    reason: str


def rating(text: str, read: Callable[[str], dict[str, Any]] = lambda text: only_object(text).value) -> Rating:
    """Parse the score of a reply that is one JSON object {"score": …, "reason": …}, or one number and nothing else.

    A number inside prose is Unparsed ("I would not give 0.9"), as is one outside 0..1.
    """
    if bare := _NUMBER.fullmatch(text.strip()):
        return Rating(_check_unit(float(bare["number"])), "")
    document = read(text)
    value, reason = document.get("score"), document.get("reason", "")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unparsed('JSON without a number as "score"')
    return Rating(_check_unit(value), reason if isinstance(reason, str) else "")


def _check_unit(value: float) -> float:
    if not 0 <= value <= 1:
        raise Unparsed(f"the score {value:.6g} is not from 0 to 1")
    return float(value)


# ------------------------------------------------------------------------------------------------------- YES / NO

Word = Literal["yes", "no", "n/a"]
_WORD = re.compile(
    r"[\s*_`\"'“”‘’#>(\[]{0,20}(?:(?:final\s+)?answer\s*[*_]{0,2}\s*[:=][\s*_`\"'“”‘’]{0,10})?"
    r"(?P<word>yes|no|n/a)(?![\w'’/-])",
    re.IGNORECASE,
)
_EITHER = re.compile(
    r"[\W_]{0,4}(?:(?:\bor\b|[/|])[\W_]{0,4}(?:yes|no|n/a)|,[\W_]{0,4}(?-i:YES|NO|N/A))\b", re.IGNORECASE
)
_STOPPED = re.compile(r"\s*(?:\Z|[.,:;!*_`\"'“”‘’)\]…—–-]|\n)")
_CAPITALS = re.compile(r"\s+[A-Z]{2,}\b")


@dataclass(frozen=True, slots=True)
class FirstWord:
    """The word a reply begins with, its offset in the reply, and what follows it."""

    word: Word
    start: int
    rest: str


def first_word(text: str, *, cut: bool = False) -> FirstWord:
    """Parse YES, NO or N/A at the beginning of a reply, as a word of its own: `**YES**`, "No, …", "Answer: NO".

    "Not sure", "NONE", "No idea" and "YES or NO" are Unparsed. So is a word at the end of a reply that was `cut`: it
    may be the beginning of another word.
    """
    match = _WORD.match(text)
    if match is None:
        raise Unparsed("it does not begin with the asked word")
    word, after = match["word"], text[match.end() :]
    if _EITHER.match(after):
        raise Unparsed("it repeats the choice")
    if not _STOPPED.match(after) and (word != word.upper() or _CAPITALS.match(after)):
        raise Unparsed(f"{word!r} is part of a phrase")
    if cut and not after:
        raise Unparsed("it was cut off")
    words: dict[str, Word] = {"yes": "yes", "no": "no", "n/a": "n/a"}
    return FirstWord(words[word.lower()], match.start("word"), re.sub(r"^[\W_]+", "", after).strip())


@dataclass(frozen=True, slots=True)
class Odds:
    """P(NO) among YES and NO (or other two words) at one token, and the probability of both together there."""

    no: float
    mass: float


def odds(tokens: Sequence[Token] | None, text: str, start: int, words: tuple[str, str] = ("yes", "no")) -> Odds | None:
    """Compute P(NO) from the log-probabilities of the token at text[start:], over all spellings (" NO", "No", "no").

    `words` are other words for YES and NO, in lower case.

    None if there are no usable ones: none returned, tokens of another text, a token there that does not begin the word,
    or values that are not log-probabilities (above 0, NaN).
    """
    token = _token_at(tokens or (), text, start)
    if token is None or not token.top:
        return None
    spellings = {token.text: token.logprob} | dict(token.top)
    if any(math.isnan(value) or value > 1e-3 for value in spellings.values()):
        return None
    whole = frozenset(map(_bare, spellings))
    yes, no = words
    mass = {yes: 0.0, no: 0.0}
    for spelling, value in spellings.items():
        if word := _word_of(_bare(spelling), whole, words):
            mass[word] += math.exp(value)
    total = mass[yes] + mass[no]
    if total <= 0 or _word_of(_bare(token.text), whole, words) is None:
        return None
    return Odds(mass[no] / total, min(total, 1.0))


def _word_of(token: str, whole: Collection[str], words: tuple[str, str]) -> str | None:
    """The word that a token is, or begins if the vocabulary lacks the word.

    Many vocabularies have "NO" but write "YES" as "Y", "ES"; without that piece every answer would look like NO.
    `whole` are the tokens beside it.
    """
    for word in words:
        if token.casefold() == word:
            return word
        cased = word.upper() if token.isupper() else word.title() if token[:1].isupper() else word
        if token and cased.startswith(token) and cased not in whole:
            return word
    return None


def _token_at(tokens: Sequence[Token], text: str, start: int) -> Token | None:
    joined = "".join(token.text for token in tokens)
    shift = joined.find(text.strip())
    if shift < 0 or not text.strip():
        return None
    offset = start - (len(text) - len(text.lstrip())) + shift
    end = 0
    for token in tokens:
        end += len(token.text)
        if end > offset:
            return token
    return None


def _bare(token: str) -> str:
    return re.sub(r"^[\W_]+|[\W_]+$", "", token)


# ---------------------------------------------------------------------------------------------------------- lists

_ITEM = re.compile(
    r"[^\S\n]*(?:[-*+•‣◦▪–—・][^\S\n]+|\(\d{1,3}\)[^\S\n]*|\d{1,3}(?:[.)][^\S\n]+|、\s*))(?P<claim>\S.*)"
)
_NONE = re.compile(r"[\W_]*none[\W_]*", re.IGNORECASE)


def items(text: str) -> list[str]:
    """Parse the distinct items of a list: `1. `, `1) `, `(1)`, `- `, `* `, `• `.

    Lines around the list ("Sure, here are:") are ignored; an indented line continues the previous item. The reply NONE
    yields an empty list; any other reply without items raises Unparsed.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unparsed(f"a reply of {len(text):,} characters")
    claims: list[str] = []
    open_item = False
    for line in text.splitlines():
        if item := _ITEM.fullmatch(line):
            claims.append(item["claim"].strip())
        elif open_item and line[:1].isspace() and line.strip():
            claims[-1] += f" {line.strip()}"
            continue
        open_item = item is not None
    if not claims and not _NONE.fullmatch(text):
        raise Unparsed("no list")
    return list({claim.casefold(): claim for claim in reversed(claims) if not _NONE.fullmatch(claim)}.values())[::-1]
