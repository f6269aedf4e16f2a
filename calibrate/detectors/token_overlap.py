"""Token overlap: the share of the answer's content words that the context has too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.text.lexical import analyse_answer, stem, stems
from calibrate.backends.text.segments import words
from calibrate.backends.text.wordlists import stop_words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.scoring import by_number, claiming, explain_no_claims, limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace


@dataclass(frozen=True)
class TokenOverlap:
    """Measures how many of the answer's distinct content words also appear in the sources. A low share means the
    answer says things in words the sources never use.

    Needs an answer and sources (or a context). Value: |words(answer) ∩ words(context)| / |words(answer)| over distinct
    words without stop words and citation marks; a unigram precision as in ROUGE-1 (Lin 2004).
    """

    name: ClassVar[str] = "token_overlap"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Token overlap"
    unit: ClassVar[str] = "share of the answer's content words found in the context"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is the recipe found in many notebooks: it compares the answer's words with the context's "
            "characters and strips punctuation, so that 3-5 reads 35. No better than chance; here to compare."
        },
    )
    stemming: bool = field(
        default=True, metadata={"help": "Count English word forms as one word: “tablets” is found in “tablet”."}
    )
    aggregate: Literal["answer", "mean", "min"] = field(
        default="answer",
        metadata={"help": "Over the whole answer at once, or the mean or the lowest of its sentences' shares."},
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        answer = analyse_answer(trace.answer, *by_number(trace.sources))
        dropped = stop_words(answer.tokens)
        vocabulary = self._source_forms(trace)
        forms = {token: stem(token) if self.stemming else token for token in set(answer.tokens) - dropped}
        whole = _measure_share(answer.tokens, forms, vocabulary)
        if whole is None:
            return abstained(trace, "no content words in the answer")
        parts = [
            (part, _measure_share(answer.tokens[places.start : places.stop], forms, vocabulary))
            for part, places in answer.within(claiming(trace))
        ]
        values = [share.value for _, share in parts if share]
        if self.aggregate != "answer" and not values:
            return abstained(trace, explain_no_claims(trace))
        if self.aggregate == "answer":
            value = whole.value
        else:
            value = min(values) if self.aggregate == "min" else sum(values) / len(values)
        evidence = [
            Evidence(share.remark, share.value, part.start, part.end) for part, share in parts if share and share.absent
        ]
        return scored(trace, value, limit_evidence(sorted(evidence, key=lambda item: item.value or 0.0)))

    def _source_forms(self, trace: Trace) -> set[str]:
        vocabulary = stems if self.stemming else _distinct
        return set().union(*map(vocabulary, trace.context_texts))

    def _plain(self, trace: Trace) -> Score:
        """The common recipe: `for t in context: tokens.update(clean(t).split())` where `context` is one string."""
        answer = set(_strip_punctuation(trace.answer).split())
        if not answer:
            return abstained(trace, "no words in the answer")
        characters = {
            token for letter in set("\n".join(trace.context_texts)) for token in _strip_punctuation(letter).split()
        }
        return scored(trace, len(answer & characters) / len(answer))


@dataclass(frozen=True, slots=True)
class _Share:
    """The number of distinct words, and those of them that the context lacks."""

    n: int
    absent: list[str]

    @property
    def value(self) -> float:
        return 1 - len(self.absent) / self.n

    @property
    def remark(self) -> str:
        shown = ", ".join(self.absent[:8]) + (", …" if len(self.absent) > 8 else "")
        return f"{self.n - len(self.absent)} of {self.n} content words are in the sources; not: {shown}"


def _distinct(text: str) -> tuple[str, ...]:
    return words(text).tokens


def _measure_share(tokens: Sequence[str], forms: Mapping[str, str], vocabulary: Set[str]) -> _Share | None:
    """Of the words among `tokens` that have a form, which lack it in `known`; None without any."""
    distinct = {forms[token]: token for token in tokens if token in forms}
    if not distinct:
        return None
    return _Share(len(distinct), [token for form, token in distinct.items() if form not in vocabulary])


def _strip_punctuation(text: str) -> str:
    return re.sub(r"[^\w\s]", "", text.lower())
