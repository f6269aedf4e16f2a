"""BLEU's n-gram precision: how many of the answer's runs of one to four words the context has too."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.memo import Memo
from calibrate.backends.text.lexical import (
    ABSENT,
    abbreviate_list,
    analyse_answer,
    assign_letters,
    highest_counts,
    ngrams,
    raise_counts,
    spell,
)
from calibrate.backends.text.segments import words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.scoring import by_number, claiming, explain_no_claims, limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace

ORDERS = 4
SHOWN = 6  # runs that a remark names
_PIECE = re.compile(f"[^{ABSENT}]{{2,}}")


@dataclass(frozen=True)
class Bleu:
    """Measures how many of the answer's single words, pairs, triples and quadruples of words stand in the sources too.
    A low value means the answer is not worded after the sources, whatever its length.

    Needs an answer and sources (or a context). Value: mean over n = 1..4 of the modified n-gram precision, every source
    a reference (Papineni et al. 2002), without brevity penalty; fewer words than n leave order n out.
    """

    name: ClassVar[str] = "bleu"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "BLEU precision"
    unit: ClassVar[str] = "mean share of the answer's runs of 1 to 4 words found in the context"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.3

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is sentence BLEU of the whole answer against the whole context: the brevity penalty "
            "makes it all but 0 for every answer shorter than its context. Here to compare."
        },
    )
    aggregate: Literal["answer", "mean", "min"] = field(
        default="answer",
        metadata={"help": "Over the whole answer at once, or the mean or the lowest of its sentences' precisions."},
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        answer = analyse_answer(trace.answer, *by_number(trace.sources))
        texts = [words(text).tokens for text in trace.context_texts]
        if not answer.tokens or not any(texts):
            return abstained(trace, f"no words in the {'context' if answer.tokens else 'answer'}")
        runs = _Runs(answer.tokens, texts)
        evidence = [
            Evidence(runs.remark(span), runs.precision(span), part.start, part.end)
            for part, span in answer.within(claiming(trace))
            if span
        ]
        values = [item.value for item in evidence if item.value is not None]
        if self.aggregate != "answer" and not values:
            return abstained(trace, explain_no_claims(trace))
        if self.aggregate == "answer":
            value = runs.precision(range(len(answer.tokens)))
        else:
            value = min(values) if self.aggregate == "min" else sum(values) / len(values)
        return scored(trace, value, limit_evidence(sorted(evidence, key=lambda item: item.value or 0.0)))

    def _plain(self, trace: Trace) -> Score:
        if not trace.answer.split() or not any(text.split() for text in trace.context_texts):
            return abstained(trace, f"no words in the {'context' if trace.answer.split() else 'answer'}")
        return scored(trace, sentence_bleu("\n".join(trace.context_texts), trace.answer))


class _Runs:
    """The runs of 1 to 4 words of an answer, and which of them the sources have."""

    def __init__(self, tokens: Sequence[str], texts: Iterable[Sequence[str]]) -> None:
        # One character per word: a run is a substring, and words that the answer lacks split the sources into pieces.
        letters = assign_letters(tokens)
        spelling = spell(tokens, letters)
        sources = [spell(text, letters, ABSENT) for text in texts]
        pieces = [_PIECE.findall(source) for source in sources]
        self._tokens = tokens
        self._runs: list[list[str]] = []
        self._present: list[bytes] = []  # for each run, whether a source has it
        self._over: list[dict[str, int]] = []  # runs that the answer has too often, and how often they may count
        for n in range(1, min(ORDERS, len(tokens)) + 1):
            runs = _runs([spelling], n)
            again = {run: count for run, count in Counter(runs).items() if count > 1}
            present: set[str] = set()
            most: dict[str, int] = {}
            for source_runs in (
                sources if n == 1 else [_runs(pieces_of_source, n) for pieces_of_source in pieces if pieces_of_source]
            ):
                present.update(source_runs)
                if repeated := list(filter(again.__contains__, source_runs)):
                    raise_counts(most, repeated)
            self._runs.append(runs)
            self._present.append(bytes(map(present.__contains__, runs)))
            self._over.append({run: count for run, count in most.items() if again[run] > count})

    def precision(self, span: range) -> float:
        """Average, over n, the modified precision of the words in `span`."""
        shares = [self._count_matches(n, span) / (len(span) - n) for n in range(min(len(self._runs), len(span)))]
        return sum(shares) / len(shares)

    def _count_matches(self, n: int, span: range) -> int:
        """Count the runs of n + 1 words that the sources have too, each at most as often as one source has it."""
        matched = self._present[n].count(1, span.start, span.stop - n)
        if over := self._over[n]:
            counted = list(filter(over.__contains__, self._runs[n][span.start : span.stop - n]))
            if len(counted) > len(set(counted)):  # each may count once
                matched -= sum([max(0, count - over[run]) for run, count in Counter(counted).items()])
        return matched

    def remark(self, span: range) -> str:
        """Say how many words are in the sources, and name the shortest runs that are not."""
        text = f"{self._count_matches(0, span)} of {len(span)} words are in the sources"
        for n in range(min(len(self._runs), len(span))):
            at = self._present[n].find(0, span.start, span.stop - n)
            if at >= 0:
                absent: dict[str, None] = {}
                while at >= 0 and len(absent) <= SHOWN:
                    absent[f"“{' '.join(self._tokens[at : at + n + 1])}”"] = None
                    at = self._present[n].find(0, at + 1, span.stop - n)
                return f"{text}; {'not in this order' if n else 'not'}: {abbreviate_list(list(absent), SHOWN)}"
        return f"{text}, in the same runs"


def _runs(pieces: Iterable[str], n: int) -> list[str]:
    return [piece[at : at + n] for piece in pieces for at in range(len(piece) - n + 1)]


# ------------------------------------------------------------------------------------------------ the plain recipe

_RULES = (  # the 13a tokenisation of mteval, which knows ASCII punctuation only
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}


def _split(text: str) -> list[str]:
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    text = f" {text} "
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.split()


_tokens = Memo(_split, characters=1_000_000)


def sentence_bleu(reference: str, prediction: str) -> float:
    """Compute BLEU, 0 to 1, of a text against one reference, as `sacrebleu.sentence_bleu` defines it.

    That is with 13a tokens, effective order, and exponential smoothing of orders without a match (Chen and Cherry 2014,
    method 3).
    """
    reference_tokens, tokens = _tokens(reference), _tokens(prediction)
    logs, smoothing = [], 1.0
    for n in range(1, min(ORDERS, len(tokens)) + 1):
        grams = Counter(ngrams(tokens, n))
        matches = highest_counts(grams, [reference_tokens], n)
        matched = sum(min(grams[gram], count) for gram, count in matches.items())
        if n == 1 and not matched:
            return 0.0
        smoothing *= 1 if matched else 2
        logs.append(math.log((matched or 1 / smoothing) / grams.total()))
    if not logs:
        return 0.0
    penalty = min(0.0, 1 - len(reference_tokens) / len(tokens))
    return math.exp(penalty + sum(logs) / len(logs))
