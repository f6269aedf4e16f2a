"""What an embedding detector compares: the answer's claims and the sources' windows, within a budget.

A trace of ordinary size is compared in full. One whose texts exceed the budget would take minutes: then the claims the
sources cover least (where the lowest cosine is to be expected) and the windows that share most with the claims are
taken, and the evidence says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from calibrate.backends.text.citations import CitedSentence, attribute_citations, without_marks
from calibrate.backends.text.segments import Part, words

CLAIM_CHARACTERS = 40_000
WINDOW_CHARACTERS = 200_000


class Cuts(Protocol):
    """Knows what fits its model: the embedder and the NLI model are such."""

    def fit(self, text: str, parts: Iterable[Part]) -> list[Part]: ...

    def windows(self, text: str, *, sentences_per_window: int) -> Sequence[Part]: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """What one sentence says, without its marks, and the numbers it cites. answer[start:end] is the sentence."""

    start: int
    end: int
    text: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """A passage of the source at `place` in the list it was cut from."""

    place: int
    start: int
    end: int
    text: str


def claims(answer: str, cutter: Cuts, *, known: Collection[str] = (), cited_only: bool = False) -> list[Claim]:
    """The answer's claims in order; a sentence longer than the model reads gives several."""
    found: list[Claim] = []
    for sentence in attribute_citations(answer, known=known):
        if cited_only and not sentence.citations:
            continue
        found += _claims_of(answer, sentence, cutter)
    return found


def _claims_of(answer: str, sentence: CitedSentence, cutter: Cuts) -> list[Claim]:
    text, numbers = without_marks(answer, sentence), sentence.numbers
    if not words(text).tokens:
        return []
    parts = cutter.fit(text, [Part(0, len(text))])
    if len(parts) == 1:
        return [Claim(sentence.start, sentence.end, text, numbers)]
    # With marks taken out the pieces' offsets are the claim's, not the answer's: the sentence as a whole is shown.
    shift = sentence.start if not sentence.citations else None
    return [
        Claim(
            sentence.start if shift is None else part.start + shift,
            sentence.end if shift is None else part.end + shift,
            text[part.start : part.end],
            numbers,
        )
        for part in parts
    ]


def cut(texts: Iterable[str], cutter: Cuts, *, sentences_per_window: int) -> list[Window]:
    """The windows of all these texts."""
    return [
        Window(place, part.start, part.end, text[part.start : part.end])
        for place, text in enumerate(texts)
        for part in cutter.windows(text, sentences_per_window=sentences_per_window)
    ]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """What is compared, and a sentence about what is not (None when everything is)."""

    claims: list[Claim]
    windows: list[Window]
    remark: str | None


def shortlist(found: Sequence[Claim], passages: Sequence[Window]) -> Shortlist:
    """Everything, or where that exceeds the budget the part that is likely to decide. Depends on this trace only."""
    said, held = sum(len(one.text) for one in found), sum(len(one.text) for one in passages)
    if said <= CLAIM_CHARACTERS and held <= WINDOW_CHARACTERS:
        return Shortlist(list(found), list(passages), None)
    kept_claims, kept_windows = list(found), list(passages)
    if said > CLAIM_CHARACTERS:
        covered = {token for window in passages for token in words(window.text).tokens}
        kept_claims = _within(found, CLAIM_CHARACTERS, lambda claim: -_share(claim.text, covered))
    if held > WINDOW_CHARACTERS:
        wanted = {token for claim in kept_claims for token in words(claim.text).tokens}
        spread = Counter(token for window in passages for token in wanted.intersection(words(window.text).tokens))
        weights = {token: math.log(1 + len(passages) / count) for token, count in spread.items()}
        kept_windows = _within(passages, WINDOW_CHARACTERS, lambda window: _weight(window.text, weights))
    remark = (
        f"too long to compare in full: {len(kept_claims)} of {len(found)} sentences (those the sources cover least) "
        f"with {len(kept_windows)} of {len(passages)} passages (those sharing most words)"
    )
    return Shortlist(kept_claims, kept_windows, remark)


Piece = TypeVar("Piece", Claim, Window)


def _within(pieces: Sequence[Piece], characters: int, rank: Callable[[Piece], float]) -> list[Piece]:
    """The highest ranked pieces that fit, in their first order."""
    order = sorted(range(len(pieces)), key=lambda i: (-rank(pieces[i]), i))
    kept: list[int] = []
    held = 0
    for i in order:
        held += len(pieces[i].text)
        if held > characters and kept:
            break
        kept.append(i)
    return [pieces[i] for i in sorted(kept)]


def _share(text: str, covered: Collection[str]) -> float:
    tokens = words(text).tokens
    return sum(token in covered for token in tokens) / len(tokens) if tokens else 1.0


def _weight(text: str, weights: dict[str, float]) -> float:
    tokens = set(words(text).tokens)
    return sum(weights.get(token, 0.0) for token in tokens) / math.sqrt(len(tokens) or 1)
