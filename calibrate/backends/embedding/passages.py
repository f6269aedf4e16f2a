"""Cut answers into claims and sources into windows to compare, within a budget.

A trace of ordinary size is compared in full. One beyond the budget would take minutes: then only the claims that the
sources cover least (where the lowest cosine is to be expected) and the windows that share most words with the claims
are compared, and the evidence says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from calibrate.backends.text.citations import CitedSentence, attribute_citations, without_marks
from calibrate.backends.text.segments import Part, words

CLAIM_CHARACTERS = 40_000
WINDOW_CHARACTERS = 200_000


class Cuts(Protocol):
    """A model that can cut texts to what it reads: the embedder and the NLI model."""

    def fit(self, text: str, parts: Iterable[Part]) -> list[Part]: ...

    def windows(self, text: str, *, sentences_per_window: int) -> Sequence[Part]: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence's text without its marks, and the numbers it cites. answer[start:end] is the sentence."""

    start: int
    end: int
    text: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """A passage, text[start:end], of the source at `place` in the list of sources."""

    place: int
    start: int
    end: int
    text: str


def claims(
    answer: str,
    cutter: Cuts,
    *,
    sources: Collection[str] = (),
    among: Iterable[Part] | None = None,
    cited_only: bool = False,
) -> list[Claim]:
    """Cut an answer into claims, in order; only the sentences `among` these, whose ends are those of sentences.

    A sentence longer than the model reads yields several.
    """
    starts = None if among is None else {part.end: part.start for part in among}
    extracted: list[Claim] = []
    for sentence in attribute_citations(answer, sources=sources):
        if (cited_only and not sentence.citations) or (starts is not None and sentence.end not in starts):
            continue
        start = sentence.start if starts is None else starts[sentence.end]
        extracted += _split_claim(answer, replace(sentence, start=start), cutter)
    return extracted


def _split_claim(answer: str, sentence: CitedSentence, cutter: Cuts) -> list[Claim]:
    text, numbers = without_marks(answer, sentence), sentence.numbers
    if not words(text).tokens:
        return []
    parts = cutter.fit(text, [Part(0, len(text))])
    if len(parts) == 1:
        return [Claim(sentence.start, sentence.end, text, numbers)]
    # Without the marks, the pieces' offsets are the claim's, not the answer's: the whole sentence is shown instead.
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
    """Cut texts into windows."""
    return [
        Window(place, part.start, part.end, text[part.start : part.end])
        for place, text in enumerate(texts)
        for part in cutter.windows(text, sentences_per_window=sentences_per_window)
    ]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The claims and windows to compare, and a sentence about what is left out (None if nothing is)."""

    claims: list[Claim]
    windows: list[Window]
    remark: str | None


def shortlist(claims: Sequence[Claim], passages: Sequence[Window]) -> Shortlist:
    """Choose what to compare: everything, or the part that probably decides if everything exceeds the budget."""
    claim_size, window_size = (
        sum(len(text_of.text) for text_of in claims),
        sum(len(text_of.text) for text_of in passages),
    )
    if claim_size <= CLAIM_CHARACTERS and window_size <= WINDOW_CHARACTERS:
        return Shortlist(list(claims), list(passages), None)
    chosen_claims, chosen_windows = list(claims), list(passages)
    if claim_size > CLAIM_CHARACTERS:
        covered = {token for window in passages for token in words(window.text).tokens}
        chosen_claims = _take_within(claims, CLAIM_CHARACTERS, lambda claim: -_covered_share(claim.text, covered))
    if window_size > WINDOW_CHARACTERS:
        claim_words = {token for claim in chosen_claims for token in words(claim.text).tokens}
        spread = Counter(token for window in passages for token in claim_words.intersection(words(window.text).tokens))
        weights = {token: math.log(1 + len(passages) / count) for token, count in spread.items()}
        chosen_windows = _take_within(passages, WINDOW_CHARACTERS, lambda window: _shared_weight(window.text, weights))
    remark = (
        f"too long to compare in full: {len(chosen_claims)} of {len(claims)} sentences (those the sources cover least) "
        f"with {len(chosen_windows)} of {len(passages)} passages (those sharing most words)"
    )
    return Shortlist(chosen_claims, chosen_windows, remark)


Piece = TypeVar("Piece", Claim, Window)


def _take_within(pieces: Sequence[Piece], characters: int, rank: Callable[[Piece], float]) -> list[Piece]:
    """Take the highest-ranked pieces that fit, in their original order."""
    order = sorted(range(len(pieces)), key=lambda i: (-rank(pieces[i]), i))
    chosen: list[int] = []
    size = 0
    for i in order:
        size += len(pieces[i].text)
        if size > characters and chosen:
            break
        chosen.append(i)
    return [pieces[i] for i in sorted(chosen)]


def _covered_share(text: str, covered: Collection[str]) -> float:
    tokens = words(text).tokens
    return sum(token in covered for token in tokens) / len(tokens) if tokens else 1.0


def _shared_weight(text: str, weights: dict[str, float]) -> float:
    tokens = set(words(text).tokens)
    return sum(weights.get(token, 0.0) for token in tokens) / math.sqrt(len(tokens) or 1)
